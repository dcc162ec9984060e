"""Completes results with hints, metadata and a message."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from math import ceil
from time import time
from typing import Any, cast

from toolcrib.errors import CODES
from toolcrib.gateway.author_actions import resolved_actions
from toolcrib.gateway.generated_hints import (
    MIN_JUDGED_CALLS,
    PLAIN_OUTCOME,
    CallOutcome,
    ToolRecord,
    for_outcome,
    with_record,
    with_repair,
)
from toolcrib.gateway.hint_reasoning import age_text
from toolcrib.gateway.related_tools import NO_RELATED_TOOLS, RelatedTools
from toolcrib.gateway.result_pages import page_of
from toolcrib.hints.rules import smoothed_success
from toolcrib.interfaces import Followers
from toolcrib.model import PROMISES, Ask, Hints, Json, JsonObject, Metadata, Origin, Result, Tool
from toolcrib.model.hints import NextAction
from toolcrib.version import VERSION

# --- Cache of generated hints for one tool ---

_FAST_SECONDS, _MEDIUM_SECONDS = PROMISES["fast"], PROMISES["medium"]
_MAX_CACHED_HINTS = 256
"""The cache of a tool is cleared when it has this many hints."""
_MAX_CHECKED_FIELDS = 16
"""Fields of an output schema that are checked for completeness."""
_DEFAULT_STALE_SECONDS = 86_400.0
"""Time until a stored result counts as stale, in seconds, for tools without a cache TTL."""
_EMPTY_RESULT_COMPLETENESS = 0.5
"""Completeness of a result that is empty: an empty list, an empty text."""

_HintKey = tuple[Any, ...]


class HintCache:
    """Hints are equal for equal outcomes, so they are generated and serialized once for each."""

    def __init__(self, tool: Tool | None) -> None:
        self.tool = tool
        self._stale_seconds = (tool.cache_ttl if tool is not None else None) or _DEFAULT_STALE_SECONDS
        self._completeness = _completeness_of(tool)
        self._cached: dict[_HintKey, Hints] = {}

    def hints(
        self,
        result: Result,
        record: tuple[float, float, int],
        now_seconds: float,
        followers: Followers,
        related: RelatedTools,
    ) -> Hints:
        """Return the hints of a result: the tool's own with its record added, else generated ones."""
        made = result.made
        # Rounded to tenths and twentieths: an agent gains nothing from more, and the cache would rarely hit.
        freshness_twentieths = 20 if not made else self._freshness(now_seconds - made)
        age = age_text(now_seconds - made) if made and result.cached else ""
        if result.hints is not None and self.tool is not None:
            own = resolved_actions(result.hints, self.tool, related.callable_tools)
            shown_tool = related.without_hidden_replacement(self.tool)
            outcome = _own_outcome(result, age)
            return with_record(own, shown_tool, ToolRecord(*record), freshness_twentieths / 20, outcome)
        rate, seconds, calls = record
        problem = result.problem
        completeness_tenths = (
            int(10 * self._completeness(result.data)) if problem is None and not result.content else 10
        )
        key: _HintKey = (
            int(rate * 100 + 0.5),
            int(smoothed_success(rate, calls) * 100 + 0.5),
            calls if calls < MIN_JUDGED_CALLS else MIN_JUDGED_CALLS,  # noqa: FURB136 - `min` costs twice as much, on every call
            0 if seconds <= _FAST_SECONDS else 1 if seconds <= _MEDIUM_SECONDS else 2,
            problem if problem is None else (problem.code, problem.path, problem.retryable),
            result.ask is None,
            result.cached,
            freshness_twentieths,
            completeness_tenths,
            age,
            page_of(result.data) if problem is None else None,
            followers,
            related,
        )
        return self._cached.get(key) or self._generate(key, result, ToolRecord(*record), followers, related)

    def _freshness(self, age: float) -> int:
        """Return the freshness of a stored result in twentieths; clamped, as clocks of replicas differ."""
        return ceil(20 * min(1.0, max(0.0, 1.0 - age / self._stale_seconds)))

    def _generate(
        self, key: _HintKey, result: Result, record: ToolRecord, followers: Followers, related: RelatedTools
    ) -> Hints:
        if len(self._cached) >= _MAX_CACHED_HINTS:
            self._cached.clear()
        outcome = CallOutcome(
            problem=result.problem,
            asks=result.ask is not None,
            cached=result.cached,
            freshness=key[7] / 20,
            completeness=key[8] / 10,
            age=key[9],
            page=key[10],
        )
        tool = self.tool
        shown_tool = None if tool is None else related.without_hidden_replacement(tool)
        related_tools = () if tool is None else related.of(followers)
        hints = self._cached[key] = for_outcome(shown_tool, record, outcome, related_tools)
        return hints


def _own_outcome(result: Result, age: str) -> CallOutcome:
    """Return what the gateway adds about the outcome to a tool's own hints; mostly there is nothing."""
    if result.problem is None and not result.cached:
        return PLAIN_OUTCOME
    return CallOutcome(problem=result.problem, cached=result.cached, age=age)


def _completeness_of(tool: Tool | None) -> Callable[[Any], float]:
    """Return a function for the completeness of a result: the part of its required fields that are set."""
    schema: JsonObject = (tool.output_schema if tool is not None else None) or {}
    field_names: tuple[str, ...] = tuple(schema.get("required") or schema.get("properties") or ())[
        :_MAX_CHECKED_FIELDS
    ]

    def completeness(data: Any) -> float:
        if type(data) is dict and field_names:
            fields = cast("JsonObject", data)
            missing = 0
            for name in field_names:
                if fields.get(name) is None:
                    missing += 1
            return 1.0 - missing / len(field_names)
        return 1.0 if data or data == 0 else _EMPTY_RESULT_COMPLETENESS

    return completeness


# --- Completes every result with hints, metadata and a message, also where no step has run ---

_UNSPEAKABLE = re.compile(r"https?://|[/\\{}\[\]<>_@`]|[A-Z]{3,}|\d{5,}|\b\w+\.\w+\.\w+")
"""Text that a voice cannot read out: URLs, paths, markup, acronyms, long numbers, dotted names."""
_MAX_SPOKEN_CHARACTERS = 500
_NO_RECORD = (1.0, 0.0, 0)
_QUESTION_MESSAGE = "I need some information first."

Rate = Callable[[str], tuple[float, float, int]]
"""Returns the recent record of a tool: success rate, usual seconds, number of calls."""


class Completion:
    """Holds a hint cache for each tool, and reads the tool's record and followers."""

    def __init__(
        self,
        record: Rate,
        followers: Callable[[str], Followers] = lambda _tool: (),
        called_tools: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._record_of, self._followers, self._called_tools = record, followers, called_tools
        self._caches: dict[str, HintCache] = {}
        self._cached_second: tuple[int, str] = (0, "")
        self._cached_timestamp: tuple[int, str] = (0, "")

    def complete(
        self,
        result: Result,
        tool: Tool | None,
        origin: Origin,
        seconds: float,
        related: RelatedTools | None = NO_RELATED_TOOLS,
        *,
        repair: NextAction | None = None,
    ) -> Result:
        """Fill in what is missing; `related` are tools the caller may see, None leaves out all hints."""
        now_seconds = time()
        now_milliseconds = int(now_seconds * 1000)
        metadata = Metadata.of(
            {
                "tool_version": tool.version if tool is not None else "0.0.0",
                "timestamp": self._cached_timestamp[1]
                if now_milliseconds == self._cached_timestamp[0]
                else self._timestamp(now_milliseconds),
                "execution_time": int(seconds * 1e6 + 0.5) / 1e3,
                "service_version": VERSION,
                "trace_id": origin.trace_id,
                "correlation_id": origin.correlation_id,
                "cached": result.cached,
            }
        )
        message = result.message or _speech_message(result)
        if related is None:
            return result.replace(message=message, hints=None, metadata=metadata)
        name = tool.name if tool is not None else ""
        cache = self._caches.get(name)
        if cache is None or cache.tool is not tool:  # the catalog changed during the call
            cache = self._caches[name] = HintCache(tool)
        record, followers = (self._record_of(name), self._followers(name)) if name else (_NO_RECORD, ())
        hints = cache.hints(result, record, now_seconds, followers, related)
        if repair is not None:  # it depends on the arguments, so it is no part of the cached hints
            hints = with_repair(hints, repair)
        return result.replace(message=message, hints=hints, metadata=metadata)

    def used(self) -> dict[str, int]:
        """Return the number of recent calls of each tool that had any."""
        return {tool: self._record_of(tool)[2] for tool in self._called_tools()}

    def forget(self) -> None:
        """Invalidate the hint caches: the catalog has changed."""
        self._caches.clear()

    def _timestamp(self, now_milliseconds: int) -> str:
        """Format a timestamp in UTC with milliseconds; the part up to the second is cached."""
        second, milliseconds = divmod(now_milliseconds, 1000)
        if second != self._cached_second[0]:
            self._cached_second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        self._cached_timestamp = (now_milliseconds, f"{self._cached_second[1]}.{milliseconds:03d}Z")
        return self._cached_timestamp[1]


def _speech_message(result: Result) -> str:
    """Return the message for speech: the tool's own where it can be spoken, else a fixed sentence."""
    problem = result.problem
    if problem is not None:
        own_message = problem.message if problem.tool_code is not None else ""
        return own_message if _is_speakable(own_message) else CODES[problem.code].speak
    return "Done." if result.ask is None else _question_message(result.ask)


def _question_message(ask: Ask) -> str:
    """Return the message of a form where it is the only question and can be spoken."""
    params: Json = next(iter(ask.questions.values())).get("params") if len(ask.questions) == 1 else None
    message: Json = cast("JsonObject", params).get("message") if isinstance(params, dict) else None
    return message if isinstance(message, str) and _is_speakable(message) else _QUESTION_MESSAGE


def _is_speakable(text: str) -> bool:
    return 0 < len(text) <= _MAX_SPOKEN_CHARACTERS and not _UNSPEAKABLE.search(text)
