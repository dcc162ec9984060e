"""Completes results with hints, metadata and a message."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from math import ceil
from time import time
from typing import Any, cast

from toolcrib.errors import CODES
from toolcrib.gateway.generated_hints import (
    MIN_JUDGED_CALLS,
    CallOutcome,
    ToolRecord,
    for_outcome,
    with_record,
)
from toolcrib.gateway.related_tools import NO_RELATED_TOOLS, RelatedTools
from toolcrib.hints.rules import smoothed_success
from toolcrib.interfaces import Followers
from toolcrib.model import PROMISES, Ask, Hints, Json, JsonObject, Metadata, Origin, Result, Tool
from toolcrib.version import VERSION

# --- Cache of generated hints for one tool ---

_FAST_SECONDS, _MEDIUM_SECONDS = PROMISES["fast"], PROMISES["medium"]
_MAX_CACHED_HINTS = 256
"""Most hints in the cache of one tool; it is cleared when it is full."""
_MAX_CHECKED_FIELDS = 16
"""Most fields of an output schema that are checked for completeness."""
_DEFAULT_STALE_SECONDS = 86_400.0
"""Time until a stored result counts as stale, in seconds, for tools without a cache TTL."""
_EMPTY_RESULT_COMPLETENESS = 0.5
"""Completeness of a result that is empty: an empty list, an empty text."""

_HintKey = tuple[Any, ...]


class HintCache:
    """Hints are equal for equal outcomes, so they are generated and serialized once for each."""

    def __init__(self, tool: Tool | None) -> None:
        self.tool = tool
        self._lasts = (tool.cache_ttl if tool is not None else None) or _DEFAULT_STALE_SECONDS
        self._fullness = _completeness_of(tool)
        self._kept: dict[_HintKey, Hints] = {}

    def hints(
        self,
        result: Result,
        past: tuple[float, float, int],
        now: float,
        followers: Followers,
        near: RelatedTools,
    ) -> Hints:
        """Return the hints of a result: the tool's own with its record added, else generated ones."""
        tool, made = self.tool, result.made
        # Rounded to tenths and twentieths: an agent gains nothing from more, and the cache would rarely hit.
        fresh = 20 if not made else self._freshness(now - made)
        if result.hints is not None and tool is not None:
            return with_record(result.hints, near.told(tool), ToolRecord(*past), fresh / 20)
        rate, seconds, calls = past
        problem = result.problem
        full = int(10 * self._fullness(result.data)) if problem is None and not result.content else 10
        key: _HintKey = (
            int(rate * 100 + 0.5),
            int(smoothed_success(rate, calls) * 100 + 0.5),
            calls if calls < MIN_JUDGED_CALLS else MIN_JUDGED_CALLS,  # noqa: FURB136 - `min` costs twice as much, on every call
            0 if seconds <= _FAST_SECONDS else 1 if seconds <= _MEDIUM_SECONDS else 2,
            problem if problem is None else (problem.code, problem.path),
            result.ask is None,
            result.cached,
            fresh,
            full,
            followers,
            near,
        )
        return self._kept.get(key) or self._made(key, result, ToolRecord(*past), followers, near)

    def _freshness(self, age: float) -> int:
        """Return the freshness of a stored result in twentieths; clamped, as clocks of replicas differ."""
        return ceil(20 * min(1.0, max(0.0, 1.0 - age / self._lasts)))

    def _made(
        self, key: _HintKey, result: Result, past: ToolRecord, followers: Followers, near: RelatedTools
    ) -> Hints:
        if len(self._kept) >= _MAX_CACHED_HINTS:
            self._kept.clear()
        seen = CallOutcome(
            problem=result.problem,
            asks=result.ask is not None,
            cached=result.cached,
            freshness=key[7] / 20,
            completeness=key[8] / 10,
        )
        tool = self.tool
        if tool is None:
            told, neighbours = None, ()
        else:
            told, neighbours = near.told(tool), near.of(tool, followers)
        hints = self._kept[key] = for_outcome(told, past, seen, neighbours)
        return hints


def _completeness_of(tool: Tool | None) -> Callable[[Any], float]:
    """Return a function for the completeness of a result: the part of its required fields that are set."""
    schema: JsonObject = (tool.output_schema if tool is not None else None) or {}
    names: tuple[str, ...] = tuple(schema.get("required") or schema.get("properties") or ())[
        :_MAX_CHECKED_FIELDS
    ]

    def fullness(data: Any) -> float:
        if type(data) is dict and names:
            given = cast("JsonObject", data)
            missing = 0
            for name in names:
                if given.get(name) is None:
                    missing += 1
            return 1.0 - missing / len(names)
        return 1.0 if data or data == 0 else _EMPTY_RESULT_COMPLETENESS

    return fullness


# --- Completes every result with hints, metadata and a message, also where no step has run ---

_UNSPEAKABLE = re.compile(r"https?://|[/\\{}\[\]<>_@`]|[A-Z]{3,}|\d{5,}|\b\w+\.\w+\.\w+")
"""Text that a voice cannot read out: URLs, paths, markup, acronyms, long numbers, dotted names."""
_MAX_SPOKEN_CHARACTERS = 500
"""Longest spoken message, in characters."""
_NO_RECORD = (1.0, 0.0, 0)
_QUESTION_MESSAGE = "I need to know something first."

Rate = Callable[[str], tuple[float, float, int]]
"""Returns the recent record of a tool: success rate, usual seconds, number of calls."""


def _no_followers(_tool: str) -> Followers:
    return ()


class Completion:
    """Holds a hint cache for each tool, and reads the tool's record and followers."""

    def __init__(
        self,
        past: Rate,
        followers: Callable[[str], Followers] = _no_followers,
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
        past, followers = (self._past(name), self._followers(name)) if name else (_NO_RECORD, ())
        return result.replace(
            message=result.message or _speech_message(result),
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


def _speech_message(result: Result) -> str:
    """Return the message for speech: the tool's own where it can be spoken, else a fixed sentence."""
    problem = result.problem
    if problem is not None:
        own = problem.message if problem.tool_code is not None else ""
        return own if _is_speakable(own) else CODES[problem.code].speak
    return "Done." if result.ask is None else _question_message(result.ask)


def _question_message(ask: Ask) -> str:
    """Return the message of a form where it is the only question and can be spoken."""
    params: Json = next(iter(ask.questions.values())).get("params") if len(ask.questions) == 1 else None
    said: Json = cast("JsonObject", params).get("message") if isinstance(params, dict) else None
    return said if isinstance(said, str) and _is_speakable(said) else _QUESTION_MESSAGE


def _is_speakable(text: str) -> bool:
    return 0 < len(text) <= _MAX_SPOKEN_CHARACTERS and not _UNSPEAKABLE.search(text)
