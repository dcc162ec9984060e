"""Completes every result at the door: hints, metadata and a message, also where no step was met."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from time import time
from typing import cast

from toolcrib.errors import CODES
from toolcrib.gateway.hints import Past, for_outcome
from toolcrib.model import Ask, Hints, Json, JsonObject, Metadata, Origin, Result, Tool
from toolcrib.version import VERSION

_UNSPEAKABLE = re.compile(r"https?://|[/\\{}\[\]<>_@`]|[A-Z]{3,}|\d{5,}|\b\w+\.\w+\.\w+")
_LONGEST = 500
_MOST_KEPT = 256
_UNTRIED = (1.0, 0.0, 0)
_ASKING = "I need to know something first."

Key = tuple[str | None, bool, bool, int, bool]


class Completion:
    """Knows how each tool has done, and keeps the hints it has already put together."""

    def __init__(self, past: Callable[[str], tuple[float, float, int]]) -> None:
        self._past = past
        self._hints: dict[str, dict[Key, Hints]] = {}
        self._second: tuple[int, str] = (0, "")
        self._moment: tuple[int, str] = (0, "")

    def complete(self, result: Result, tool: Tool | None, origin: Origin, seconds: float) -> Result:
        """Fill in what is missing; what the tool itself gave stays."""
        now = int(time() * 1000)
        metadata = Metadata.of(
            {
                "tool_version": tool.version if tool is not None else "0.0.0",
                "timestamp": self._moment[1] if now == self._moment[0] else self._spelled(now),
                "execution_time": int(seconds * 1e6 + 0.5) / 1e3,
                "service_version": VERSION,
                "trace_id": origin.trace_id,
                "correlation_id": origin.correlation_id,
                "cached": result.cached,
            }
        )
        return result.but(
            message=result.message or _spoken(result),
            hints=result.hints or self._prepared(result, tool),
            metadata=metadata,
        )

    def forget(self) -> None:
        """Drop what was prepared: the tools have changed."""
        self._hints.clear()

    def _prepared(self, result: Result, tool: Tool | None) -> Hints:
        success, seconds, calls = self._past(tool.name) if tool is not None else _UNTRIED
        problem = result.problem
        code, asks = None if problem is None else problem.code, result.ask is not None
        key = (code, asks, result.cached, int(success * 100 + 0.5), seconds > 1.0)
        name = tool.name if tool is not None else ""
        kept = self._hints.get(name)
        if kept is None:
            kept = self._hints[name] = {}
        hints = kept.get(key)
        if hints is None:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            past = Past(key[3] / 100, seconds, calls)
            hints = kept[key] = for_outcome(tool, past, problem, cached=result.cached, asks=asks)
        return hints

    def _spelled(self, now: int) -> str:
        """Spell a moment in UTC, in milliseconds; what changes once a second is spelled once a second."""
        second, rest = divmod(now, 1000)
        if second != self._second[0]:
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        self._moment = (now, f"{self._second[1]}.{rest:03d}Z")
        return self._moment[1]


def _spoken(result: Result) -> str:
    """The sentence for the ear: the tool's own where it can be spoken, else one that always can."""
    problem = result.problem
    if problem is not None:
        own = problem.message if problem.tool_code is not None else ""
        return own if _can_be_said(own) else CODES[problem.code].speak
    return "Done." if result.ask is None else _asked(result.ask)


def _asked(ask: Ask) -> str:
    """What a form says above its fields, where it is the one thing to answer."""
    params: Json = next(iter(ask.questions.values())).get("params") if len(ask.questions) == 1 else None
    said: Json = cast("JsonObject", params).get("message") if isinstance(params, dict) else None
    return said if isinstance(said, str) and _can_be_said(said) else _ASKING


def _can_be_said(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and not _UNSPEAKABLE.search(text)
