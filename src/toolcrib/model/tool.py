"""The definition of a tool: schema, behaviour, requirements, origin."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from json import dumps
from typing import Any, Literal

from toolcrib.model.caller import Requirement
from toolcrib.model.value import JsonObject

Category = Literal["query", "mutation", "analysis", "generation"]
ResponseTime = Literal["fast", "medium", "slow"]
Family = Literal["function", "core", "mcp", "app", "langchain", "openapi"]
APPS = "apps"
"""Id of the one source that runs all apps; their tools are named by package."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A rate limit: a burst of `max_calls`, refilled evenly over the window."""

    max_calls: int
    window_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """Deprecation of a tool: since which version, its replacement, its removal date (ISO)."""

    since: str
    replacement: str | None = None
    removal_date: str | None = None
    announced: str | None = None
    """Day of the announcement (ISO date), from which callers have time to migrate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example call by the tool's author."""

    description: str
    params: JsonObject
    expected: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """How a result is turned into a spoken sentence: a template with `{dotted.paths}`, or one data field."""

    template: str | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """The progress sentence of a slow call, and after how many seconds it is sent."""

    threshold: float
    message: str = "One moment, please."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A callable tool. `name` is canonical: `source:local`."""

    name: str
    source: str
    family: Family = "function"
    title: str | None = None
    description: str = ""
    input_schema: JsonObject = field(default_factory=lambda: {"type": "object"})
    output_schema: JsonObject | None = None
    category: Category = "mutation"
    response_time: ResponseTime = "medium"
    version: str = "1.0.0"
    permissions: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    cache_ttl: float | None = None
    shared_cache: bool = False
    idempotent: bool = False
    destructive: bool = False
    rate_limit: RateLimit | None = None
    deprecated: Deprecation | None = None
    speech: Speech = Speech()
    slow: Slow | None = None
    timeout: float | None = None
    energy_cost: float | None = None
    aliases: tuple[str, ...] = ()
    annotations: JsonObject = field(default_factory=dict[str, Any])
    icons: tuple[JsonObject, ...] = ()
    meta: JsonObject = field(default_factory=dict[str, Any])
    """Vendor data (`_meta`) of the definition, passed through, such as a UI template."""
    hardware: tuple[Requirement, ...] = ()
    """Hardware its app requires of a device."""
    extensions: JsonObject = field(default_factory=dict[str, Any])
    """Extensions of its app (`mentraExtensions`), such as activation phrases and an own category."""
    hidden: bool = False
    expose_as: str | None = None
    exposed: str = ""
    """The safe name, claimed in the catalog; empty until the tool is registered."""
    fingerprint: str = ""
    """Hash of the whole definition; empty until the tool is registered in the catalog."""
    degraded: bool = False
    """Whether its source is down, so that a call may fail fast."""
    declared_mutation: bool = False
    """Whether its author or the operator declared it a mutation; otherwise that is only the default."""
    changed: Literal["", "notify", "strict"] = ""
    """Pin mode of its source, if its definition differs from the trusted one; otherwise empty."""

    @property
    def local(self) -> str:
        """The name within its source."""
        return self.name[len(self.source) + 1 :]

    @property
    def keeper(self) -> str:
        """Id of the source that executes its calls; all apps share one."""
        return APPS if self.family == "app" else self.source

    @property
    def read_only(self) -> bool:
        """Whether calling it changes nothing, by its category, which only trusted parties declare."""
        return self.category in ("query", "analysis")

    @property
    def repeatable(self) -> bool:
        """Whether a call may be retried automatically; generations are not repeated."""
        return (self.read_only or self.idempotent) and self.category != "generation"

    @property
    def inside(self) -> bool:
        """Whether it runs in this process."""
        return self.family in ("function", "core")

    @property
    def promised(self) -> float | None:
        """Promised maximum seconds per call; None if it is slow or declares no response time."""
        if not self.inside and self.response_time == "medium":
            return None  # the default for external tools, not a declaration
        return PROMISES.get(self.response_time)


PROMISES: dict[ResponseTime, float] = {"fast": 0.1, "medium": 1.0}
"""Promised maximum seconds by response time; slow tools promise nothing."""

_STANDING = frozenset({"exposed", "fingerprint", "degraded", "changed", "declared_mutation"})
"""Fields that the catalog sets; they are no part of the definition."""


def fingerprint(tool: Tool) -> str:
    """Hash every field of the definition, so that any change, at any depth, is detected."""
    plain = {f.name: getattr(tool, f.name) for f in fields(tool) if f.name not in _STANDING}
    return sha256(dumps(plain, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(str(item) for item in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    # Only the dataclasses above are left, which the type `object` does not express.
    return {f.name: getattr(value, f.name) for f in fields(value)}  # type: ignore[arg-type]
