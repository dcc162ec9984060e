"""The seam between the door of the operators and the config: what is configured, and how it changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolcrib.model import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """An MCP server as the config names it, whether it runs or not."""

    id: str
    transport: str
    enabled: bool = True
    added: bool = False
    """Added while running, and kept in the overlay."""
    barred: str = ""
    """Why it is not started although it is enabled."""
    pin: Literal["strict", "notify", "off"] = "notify"
    """What a changed definition of one of its tools leads to, whether the config says so or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadPlan:
    """What a reload does: ids of servers, then names of the config's other sections."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    deferred: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Servers that are stopped only when calls end, and the ids of those calls."""
    applied: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    """Sections that are different now, and take effect when the gateway is started again."""
    warnings: tuple[str, ...] = ()


class ConfigReload(Protocol):
    """Brings the running gateway in line with its config."""

    @property
    def enabled(self) -> bool:
        """Whether MCP servers are used at all."""
        ...

    @property
    def pins(self) -> Mapping[str, str]:
        """The hashes that are approved, by tool, whoever approved them."""
        ...

    def servers(self) -> Mapping[str, ServerEntry]:
        """Every server the config in force names, by id."""
        ...

    def warnings(self) -> tuple[str, ...]:
        """What an operator should know of the config in force."""
        ...

    async def reload(
        self, *, dry_run: bool = False, applied: Callable[[ReloadPlan], None] = ...
    ) -> ReloadPlan:
        """Read file and overlay again and apply the difference; a faulty config is refused whole."""
        ...

    async def amend(
        self, change: Callable[[JsonObject], JsonObject], applied: Callable[[ReloadPlan], None] = ...
    ) -> ReloadPlan:
        """Change the overlay, and apply it; nothing is stored where the outcome would be refused."""
        ...
