"""Completes every result with hints, metadata and a message, also where no step has run."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from time import time
from typing import cast

from toolcrib.errors import CODES
from toolcrib.gateway.hint_cache import HintCache
from toolcrib.gateway.related_tools import NO_RELATED_TOOLS, RelatedTools
from toolcrib.interfaces import Followers
from toolcrib.model import Ask, Json, JsonObject, Metadata, Origin, Result, Tool
from toolcrib.version import VERSION

_UNSPEAKABLE = re.compile(r"https?://|[/\\{}\[\]<>_@`]|[A-Z]{3,}|\d{5,}|\b\w+\.\w+\.\w+")
"""Text that a voice cannot read out: URLs, paths, markup, acronyms, long numbers, dotted names."""
_LONGEST = 500
"""Longest spoken message, in characters."""
_UNTRIED = (1.0, 0.0, 0)
_ASKING = "I need to know something first."

Rate = Callable[[str], tuple[float, float, int]]
"""Returns the recent record of a tool: success rate, usual seconds, number of calls."""


def _nothing(_tool: str) -> Followers:
    return ()


class Completion:
    """Holds a hint cache for each tool, and reads the tool's record and followers."""

    def __init__(
        self,
        past: Rate,
        followers: Callable[[str], Followers] = _nothing,
        tried: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._past, self._followers, self._tried = past, followers, tried
        self._known: dict[str, HintCache] = {}
        self._second: tuple[int, str] = (0, "")
        self._moment: tuple[int, str] = (0, "")

    def complete(
        self,
        result: Result,
        tool: Tool | None,
        origin: Origin,
        seconds: float,
        near: RelatedTools = NO_RELATED_TOOLS,
    ) -> Result:
        """Fill in what is missing; fields that the tool set stay. `near` are the tools the caller may see."""
        clock = time()
        now = int(clock * 1000)
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
        name = tool.name if tool is not None else ""
        known = self._known.get(name)
        # A call that began before the catalog changed still has the old definition of the tool.
        if known is None or known.tool is not tool:
            known = self._known[name] = HintCache(tool)
        past, followers = (self._past(name), self._followers(name)) if name else (_UNTRIED, ())
        return result.replace(
            message=result.message or _spoken(result),
            hints=known.hints(result, past, clock, followers, near),
            metadata=metadata,
        )

    def used(self) -> dict[str, int]:
        """Return the number of recent calls of each tool that had any."""
        return {tool: self._past(tool)[2] for tool in self._tried()}

    def forget(self) -> None:
        """Invalidate the hint caches: the catalog has changed."""
        self._known.clear()

    def _spelled(self, now: int) -> str:
        """Format a timestamp in UTC with milliseconds; the part up to the second is cached."""
        second, rest = divmod(now, 1000)
        if second != self._second[0]:
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        self._moment = (now, f"{self._second[1]}.{rest:03d}Z")
        return self._moment[1]


def _spoken(result: Result) -> str:
    """Return the message for speech: the tool's own where it can be spoken, else a fixed sentence."""
    problem = result.problem
    if problem is not None:
        own = problem.message if problem.tool_code is not None else ""
        return own if _can_be_said(own) else CODES[problem.code].speak
    return "Done." if result.ask is None else _asked(result.ask)


def _asked(ask: Ask) -> str:
    """Return the message of a form where it is the only question and can be spoken."""
    params: Json = next(iter(ask.questions.values())).get("params") if len(ask.questions) == 1 else None
    said: Json = cast("JsonObject", params).get("message") if isinstance(params, dict) else None
    return said if isinstance(said, str) and _can_be_said(said) else _ASKING


def _can_be_said(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and not _UNSPEAKABLE.search(text)
