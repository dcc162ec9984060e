"""Operator overrides of tool fields, applied when a tool enters the catalog."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any

from toolcrib.model import Category, Deprecation, JsonObject, RateLimit, ResponseTime, Slow, Speech, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOverride:
    """The fields an operator can override; None leaves the tool's own value."""

    description: str | None = None
    title: str | None = None
    permissions: frozenset[str] | None = None
    category: Category | None = None
    response_time: ResponseTime | None = None
    idempotent: bool | None = None
    cache_ttl: float | None = None
    shared_cache: bool | None = None
    tags: tuple[str, ...] | None = None
    energy_cost: float | None = None
    rate_limit: RateLimit | None = None
    timeout: float | None = None
    aliases: tuple[str, ...] | None = None
    deprecated: Deprecation | None = None
    expose_as: str | None = None
    hidden: bool | None = None
    speech_field: str | None = None
    speech_template: str | None = None
    slow_threshold: float | None = None
    slow_message: str | None = None

    def apply(self, tool: Tool) -> Tool:
        """Return the tool with the overrides applied."""
        changes: dict[str, Any] = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if getattr(self, f.name) is not None and not f.name.startswith(("speech_", "slow_"))
        }
        if self.category is not None:
            changes["declared_mutation"] = self.category == "mutation"
        if self.speech_field is not None or self.speech_template is not None:
            changes["speech"] = Speech(template=self.speech_template, field=self.speech_field)
        if self.slow_threshold is not None or self.slow_message is not None:
            changes["slow"] = self._slow(tool.slow)
        return replace(tool, annotations=self._unsaid(tool.annotations), **changes)

    def _slow(self, own: Slow | None) -> Slow | None:
        threshold = self.slow_threshold
        if threshold is None and own is not None:
            threshold = own.threshold
        if threshold is None:
            return None
        slow = Slow(threshold=threshold) if own is None else replace(own, threshold=threshold)
        return replace(slow, message=self.slow_message or slow.message)

    def _unsaid(self, claims: JsonObject) -> JsonObject:
        """Return the server's annotations without the hints that this override replaces."""
        said = {"readOnlyHint": self.category, "idempotentHint": self.idempotent}
        return {key: value for key, value in claims.items() if said.get(key) is None}


class Overrides:
    """Overrides by canonical name or glob; later ones take precedence."""

    def __init__(self, overrides: Mapping[str, ToolOverride]) -> None:
        self.overrides = dict(overrides)

    def matching(self, tool: Tool) -> tuple[str, ...]:
        """Return the patterns that match this tool, in order."""
        return tuple(each for each in self.overrides if each == tool.name or fnmatchcase(tool.name, each))

    def apply(self, tool: Tool) -> Tool:
        """Apply every override that matches this tool."""
        for pattern in self.matching(tool):
            tool = self.overrides[pattern].apply(tool)
        return tool
