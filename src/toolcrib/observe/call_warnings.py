"""Log warnings about tools in use: deprecated ones, and ones slower than their declared response time."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import cast

from toolcrib.model import PROMISES, Deprecation, Problem, Tool
from toolcrib.observe.call_entry import BLAMELESS, CallEntry

PAUSE = 60.0
"""Minimum seconds between two warnings about the same tool and reason, against log spam."""
MOST_TOOLS = 2_000

SOON = min(PROMISES.values())
"""Shortest promised time of all, in seconds: a call that took no longer is never late."""

_logger = logging.getLogger(__name__)


def is_late(tool: Tool, problem: Problem | None, cached: bool, seconds: float) -> bool:  # noqa: FBT001 - of an entry
    """Whether the tool was called and took longer than its declared response time."""
    promised = tool.promised
    if promised is None or seconds <= promised or cached:
        return False
    return problem is None or problem.kind not in BLAMELESS


def is_deprecated(tool: Tool, problem: Problem | None) -> bool:
    """Whether a deprecated tool was used; a call to an already removed tool does not count."""
    return tool.deprecated is not None and (problem is None or problem.code != "TOOL_REMOVED")


class CallWarnings:
    """Checks finished calls, off the call path, and logs warnings for the operator."""

    def __init__(self, limit: int = MOST_TOOLS) -> None:
        self._limit = limit
        self._told: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()
        """Per tool and reason: time of the last warning, and number of suppressed ones since."""

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Log a warning for each deprecated or late call, debounced per tool."""
        for entry in batch:
            _, tool, _, _, problem, cached, seconds, _, _, _, _ = entry
            if seconds <= SOON and tool.deprecated is None:
                continue
            if is_deprecated(tool, problem):
                self._warn(entry, "deprecated", _on_its_way_out(tool))
            if is_late(tool, problem, cached, seconds):
                self._warn(entry, "late", _broken_promise(tool, seconds))

    def _warn(self, entry: CallEntry, reason: str, said: str) -> None:
        key = (entry.tool.name, reason)
        last, unsaid = self._told.get(key, (float("-inf"), 0))
        if entry.at - last < PAUSE:
            self._told[key] = (last, unsaid + 1)
            return
        self._told[key] = (entry.at, 0)
        self._told.move_to_end(key)
        if len(self._told) > self._limit:
            self._told.popitem(last=False)
        more = f" There were {unsaid} more such calls since this was last said." if unsaid else ""
        _logger.warning("%s%s", said, more, extra=_about(entry))


def _on_its_way_out(tool: Tool) -> str:
    leaving = cast("Deprecation", tool.deprecated)
    until = f" and will be removed on {leaving.removal_date}" if leaving.removal_date else ""
    instead = f"; call {leaving.replacement} instead" if leaving.replacement else ""
    return f"A call used {tool.name}, which is deprecated since {leaving.since}{until}{instead}."


def _broken_promise(tool: Tool, seconds: float) -> str:
    promised = PROMISES[tool.response_time] * 1000
    took = f"A call to {tool.name} took {seconds * 1000:.0f} ms"
    return f"{took}; its response time is {tool.response_time!r}, which promises {promised:.0f} ms at most."


def _about(entry: CallEntry) -> dict[str, str | None]:
    return {
        "call_id": entry.id,
        "tool": entry.tool.name,
        "caller": entry.caller.id,
        "user_id": entry.caller.user,
        "trace_id": entry.origin.trace_id,
        "correlation_id": entry.origin.correlation_id,
    }
