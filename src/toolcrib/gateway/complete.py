"""Completes every result at the door: hints, metadata and a message, also where no step was met."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from time import time

from toolcrib.errors import CODES
from toolcrib.gateway.hints import Past, for_outcome
from toolcrib.model import Hints, Metadata, Origin, Problem, Result, Tool
from toolcrib.version import VERSION

_UNSPEAKABLE = re.compile(r"https?://|[/\\{}\[\]<>_@`]|[A-Z]{3,}|\d{5,}|\b\w+\.\w+\.\w+")
_MOST_KEPT = 256
_UNTRIED = (1.0, 0.0, 0)
_BLANK = Metadata(
    tool_version="", timestamp="", execution_time=0.0, service_version=VERSION, trace_id="", correlation_id=""
)

Key = tuple[str | None, bool, float, bool]


class Completion:
    """Knows how each tool has done, and keeps the hints it has already put together."""

    def __init__(self, past: Callable[[str], tuple[float, float, int]]) -> None:
        self._past = past
        self._hints: dict[str, dict[Key, Hints]] = {}
        self._second = (0, "")

    def complete(self, result: Result, tool: Tool | None, origin: Origin, seconds: float) -> Result:
        """Fill in what is missing; what the tool itself gave stays."""
        return result.but(
            message=result.message or _spoken(result.problem),
            hints=result.hints or self._prepared(result, tool),
            metadata=_BLANK.but(
                tool_version=tool.version if tool is not None else "0.0.0",
                timestamp=self._now(),
                execution_time=round(seconds * 1000, 3),
                trace_id=origin.trace_id,
                correlation_id=origin.correlation_id,
                cached=result.cached,
            ),
        )

    def forget(self) -> None:
        """Drop what was prepared: the tools have changed."""
        self._hints.clear()

    def _prepared(self, result: Result, tool: Tool | None) -> Hints:
        success, seconds, calls = self._past(tool.name) if tool is not None else _UNTRIED
        problem = result.problem
        key = (problem.code if problem is not None else None, result.cached, round(success, 2), seconds > 1.0)
        name = tool.name if tool is not None else ""
        kept = self._hints.get(name)
        if kept is None:
            kept = self._hints[name] = {}
        hints = kept.get(key)
        if hints is None:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            past = Past(key[2], seconds, calls)
            hints = kept[key] = for_outcome(tool, past, problem, cached=result.cached)
        return hints

    def _now(self) -> str:
        """Tell the time in UTC; what changes once a second is spelled once a second."""
        now = time()
        second = int(now)
        if second != self._second[0]:
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        return f"{self._second[1]}.{int((now - second) * 1000):03d}Z"


def _spoken(problem: Problem | None) -> str:
    """The sentence for the ear: the tool's own where it can be spoken, else the one of its code."""
    if problem is None:
        return "Done."
    own = problem.message if problem.tool_code is not None else ""
    return own if own and not _UNSPEAKABLE.search(own) else CODES[problem.code].speak
