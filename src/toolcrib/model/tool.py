"""A tool: what it is, what it needs, how it behaves, and where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from json import dumps
from typing import Any, Literal

from toolcrib.model.device import Requirement
from toolcrib.model.json import JsonObject

Category = Literal["query", "mutation", "analysis", "generation"]
ResponseTime = Literal["fast", "medium", "slow"]
Family = Literal["function", "core", "mcp", "app", "langchain", "openapi"]
APPS = "apps"
"""The id of the source of all apps; their tools are named by package."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many calls at once, refilled evenly over the window."""

    max_calls: int
    window_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """A tool on its way out: since which version, what replaces it, until when it answers (ISO date)."""

    since: str
    replacement: str | None = None
    removal_date: str | None = None
    announced: str | None = None
    """The day its end was made known (ISO date), from which callers have time to change over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One call an author vouches for."""

    description: str
    params: JsonObject
    expected: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """How a result becomes a sentence: a template with `{dotted.paths}`, or one field of the data."""

    template: str | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """What to say while a slow call runs, and after how long."""

    threshold: float
    message: str = "One moment, please."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something that can be called. `name` is canonical: `source:local`."""

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
    """Vendor data in the definition, which passes through: what a tool's page looks like, and the like."""
    hardware: tuple[Requirement, ...] = ()
    """What its app needs of a device."""
    extensions: JsonObject = field(default_factory=dict[str, Any])
    """What its app says to assistants (`mentraExtensions`): activation phrases, a category of its own."""
    hidden: bool = False
    expose_as: str | None = None
    exposed: str = ""
    """The safe name, claimed in the catalog; empty until the tool has entered it."""
    fingerprint: str = ""
    """Hash of the whole definition; empty until the tool has entered the catalog."""
    degraded: bool = False
    """Whether its source is down, so that a call may be refused at once."""
    declared_mutation: bool = False
    """Whether its author or the operator declared that it changes something; else that is only assumed."""
    changed: Literal["", "notify", "strict"] = ""
    """Set where its definition is not the trusted one: how its source is pinned."""

    @property
    def local(self) -> str:
        """The name its own source knows it by."""
        return self.name[len(self.source) + 1 :]

    @property
    def keeper(self) -> str:
        """The id of the source that carries its calls out; all apps share one."""
        return APPS if self.family == "app" else self.source

    @property
    def read_only(self) -> bool:
        """Whether calling it changes nothing, as far as we are told by someone we trust."""
        return self.category in ("query", "analysis")

    @property
    def repeatable(self) -> bool:
        """Whether a call may be made again unasked; what was generated once is not generated again."""
        return (self.read_only or self.idempotent) and self.category != "generation"

    @property
    def inside(self) -> bool:
        """Whether it runs in this process."""
        return self.family in ("function", "core")

    @property
    def promised(self) -> float | None:
        """The seconds it promises to stay below; None where it is slow, or nobody has promised anything."""
        if not self.inside and self.response_time == "medium":
            return None  # what is assumed of tools from outside
        return PROMISES.get(self.response_time)


PROMISES: dict[ResponseTime, float] = {"fast": 0.1, "medium": 1.0}
"""The seconds a response time stands for; what is slow promises nothing."""

_STANDING = frozenset({"exposed", "fingerprint", "degraded", "changed", "declared_mutation"})
"""What a tool is given in the catalog; it is no part of its definition."""


def fingerprint(tool: Tool) -> str:
    """Hash every field of the definition, so that no change, however deep, goes unseen."""
    plain = {f.name: getattr(tool, f.name) for f in fields(tool) if f.name not in _STANDING}
    return sha256(dumps(plain, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(str(item) for item in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    # All that is left are the dataclasses above, which `object` cannot say.
    return {f.name: getattr(value, f.name) for f in fields(value)}  # type: ignore[arg-type]
