"""What the log is told of tools in use: one that is on its way out, one slower than it promises."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import cast

from toolcrib.model import PROMISES, Deprecation, Problem, Tool
from toolcrib.observe.call_entry import BLAMELESS, CallEntry

PAUSE = 60.0
"""So many seconds a tool is spoken of once at most: a log that repeats itself is not read."""
MOST_TOOLS = 2_000

SOON = min(PROMISES.values())
"""Nobody is late who took no longer."""

_logger = logging.getLogger(__name__)


def is_late(tool: Tool, problem: Problem | None, cached: bool, seconds: float) -> bool:  # noqa: FBT001 - of an entry
    """Whether the tool was tried, and took longer than it promises."""
    promised = tool.promised
    if promised is None or seconds <= promised or cached:
        return False
    return problem is None or problem.kind not in BLAMELESS


def is_deprecated(tool: Tool, problem: Problem | None) -> bool:
    """Whether a tool on its way out was used: one that is gone already was not."""
    return tool.deprecated is not None and (problem is None or problem.code != "TOOL_REMOVED")


class CallWarnings:
    """Looks through finished calls, off the call path, and warns of what an operator should know."""

    def __init__(self, limit: int = MOST_TOOLS) -> None:
        self._limit = limit
        self._told: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()
        """When each tool was last spoken of, for which reason, and how often there was reason since."""

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Warn where there is reason to."""
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
