"""Completes every result at the door: hints, metadata and a message, also where no step was met."""

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
_LONGEST = 500
_UNTRIED = (1.0, 0.0, 0)
_ASKING = "I need to know something first."

Rate = Callable[[str], tuple[float, float, int]]
"""How a tool has done lately: rate of success, usual seconds, number of calls."""


def _nothing(_tool: str) -> Followers:
    return ()


class Completion:
    """Knows how each tool has done and what followed it, and keeps what was prepared for each."""

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
        """Fill in what is missing; what the tool itself gave stays. `near` are the tools the caller sees."""
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
        # A call that began before the catalog changed ends with the tool as it was.
        if known is None or known.tool is not tool:
            known = self._known[name] = HintCache(tool)
        past, followers = (self._past(name), self._followers(name)) if name else (_UNTRIED, ())
        return result.replace(
            message=result.message or _spoken(result),
            hints=known.hints(result, past, clock, followers, near),
            metadata=metadata,
        )

    def used(self) -> dict[str, int]:
        """Return how often each tool was tried lately, of those that were."""
        return {tool: self._past(tool)[2] for tool in self._tried()}

    def forget(self) -> None:
        """Drop what was prepared: the tools have changed."""
        self._known.clear()

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
