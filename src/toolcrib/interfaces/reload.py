"""Protocol between the admin API and the config: configured servers, and hot reload."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolcrib.model import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """An MCP server in the config, running or not."""

    id: str
    transport: str
    enabled: bool = True
    added: bool = False
    """Whether it was added at run time and is stored in the overlay."""
    barred: str = ""
    """Reason why it is not started although it is enabled."""
    pin: Literal["strict", "notify", "off"] = "notify"
    """Effective pin mode: the reaction to a changed tool definition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadPlan:
    """The changes of a reload: ids of servers, then names of the other config sections."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    deferred: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Servers that stop only after running calls have ended, with the ids of those calls."""
    applied: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    """Changed sections that take effect only after a restart of the gateway."""
    warnings: tuple[str, ...] = ()


class ConfigReload(Protocol):
    """Applies config changes to the running gateway (hot reload)."""

    @property
    def enabled(self) -> bool:
        """Whether MCP servers are enabled at all."""
        ...

    @property
    def pins(self) -> Mapping[str, str]:
        """Approved definition hashes by tool, from config and overlay."""
        ...

    def servers(self) -> Mapping[str, ServerEntry]:
        """Return every server of the active config, by id."""
        ...

    def warnings(self) -> tuple[str, ...]:
        """Return warnings for the operator about the active config."""
        ...

    async def reload(
        self, *, dry_run: bool = False, applied: Callable[[ReloadPlan], None] = ...
    ) -> ReloadPlan:
        """Reload file and overlay and apply the difference; an invalid config is refused as a whole."""
        ...

    async def amend(
        self, change: Callable[[JsonObject], JsonObject], applied: Callable[[ReloadPlan], None] = ...
    ) -> ReloadPlan:
        """Change and apply the overlay; nothing is stored if the resulting config would be refused."""
        ...
