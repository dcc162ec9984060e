"""The JSON line of a call, quickly: what is the same for many calls is spelled, and cleaned, once."""

from datetime import UTC, datetime

import orjson

from toolcrib.observe.entry import Entry
from toolcrib.observe.lines import call_event, json_line
from toolcrib.observe.redact import Redactor

_MOST_KEPT = 10_000
_CHANGING = ("ts", "call_id", "trace_id", "correlation_id", "duration_ms")


class QuickLines:
    """Makes the lines `json_line(call_event(…))` would make, with the fields that change put first."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._learned = redactor.learned
        self._kept: dict[tuple[object, ...], str] = {}
        self._second = (0, "")

    def line(self, entry: Entry) -> bytes:
        """Return one call's line."""
        call_id, tool, caller, origin, problem, cached, seconds, at, _ = entry
        trace, correlation = origin.trace_id, origin.correlation_id
        ids = f"{call_id}\n{trace}" if trace == correlation else f"{call_id}\n{trace}\n{correlation}"
        if not self._redactor.is_id(ids):
            return json_line(call_event(entry, self._redactor))
        if self._learned != self._redactor.learned or len(self._kept) >= _MOST_KEPT:
            self._learned, self._kept = self._redactor.learned, {}
        code = problem.code if problem is not None else None
        about = (origin.face, origin.agent_id, origin.provider, code, cached)
        key = (tool.name, tool.exposed, caller.id, caller.user, caller.context, *about)
        rest = self._kept.get(key)
        if rest is None:
            rest = self._kept[key] = self._unchanging(entry)
        return (
            f'{{"ts":"{self._spelled(at)}","call_id":"{call_id}","trace_id":"{trace}",'
            f'"correlation_id":"{correlation}","duration_ms":{seconds * 1000.0:.3f},{rest}\n'
        ).encode()

    def _unchanging(self, entry: Entry) -> str:
        event = call_event(entry, self._redactor)
        fields = {name: value for name, value in event.items() if name not in _CHANGING}
        return orjson.dumps(fields).decode()[1:]

    def _spelled(self, at: float) -> str:
        """Spell a moment; what changes once a second is spelled once a second."""
        second = int(at)
        if second != self._second[0]:
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        return f"{self._second[1]}.{int((at - second) * 1_000_000):06d}Z"
