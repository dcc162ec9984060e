"""Fast JSON log lines: the fields that calls share are redacted and serialized once, then cached."""

from datetime import UTC, datetime
from typing import Any

import orjson

from toolcrib.model import Caller, Origin, Tool
from toolcrib.observe.call_entry import CallEntry, CallStart, summary_of
from toolcrib.observe.lines import call_event, json_line, start_event
from toolcrib.observe.logged_arguments import LoggedArguments
from toolcrib.observe.redact import Redactor

_MOST_KEPT = 10_000
UNREADABLE = b'"[unreadable]"'
"""Placeholder for arguments that cannot be serialized."""
_CHANGING = ("ts", "call_id", "trace_id", "correlation_id", "duration_ms", "items", "bytes")


class FastLines:
    """Produces the lines of `json_line(call_event(…))`, with the fields that vary per call placed first."""

    def __init__(self, redactor: Redactor, arguments: LoggedArguments | None = None) -> None:
        self._redactor = redactor
        self._arguments = arguments
        self._learned = redactor.learned
        self._kept: dict[tuple[object, ...], str] = {}
        self._second = (0, "")

    def line(self, entry: CallEntry) -> bytes:
        """Return the line of a finished call."""
        call_id, tool, caller, origin, problem, cached, seconds, at, _, _, arguments = entry
        ids = self._ids(call_id, origin)
        if ids is None:
            event = call_event(entry, self._redactor)
            asked = {} if arguments is None else {"arguments": orjson.Fragment(self._asked(entry))}
            return json_line(event | asked)
        code = problem.code if problem is not None else None
        sort, items, size = summary_of(entry)
        key = (_whose(tool, caller, origin), code, cached, tool.deprecated is None, sort)
        rest = self._kept.get(key)
        if rest is None:
            rest = self._keep(key, call_event(entry, self._redactor))
        counted = f'"items":{"null" if items is None else items},"bytes":{"null" if size is None else size}'
        took = f'"duration_ms":{seconds * 1000.0:.3f}'
        head = f'{{"ts":"{self._spelled(at)}",{ids},{took},{counted},'
        if arguments is None:
            return f"{head}{rest}\n".encode()
        return f'{head}"arguments":{self._asked(entry).decode()},{rest}\n'.encode()

    def start(self, start: CallStart) -> bytes:
        """Return the line of a call that starts."""
        ids = self._ids(start.id, start.origin)
        asked = self._asked(start)
        if ids is None:
            event = start_event(start, self._redactor)
            return json_line(event | {"arguments": orjson.Fragment(asked)})
        key = _whose(start.tool, start.caller, start.origin)
        rest = self._kept.get(key)
        if rest is None:
            rest = self._keep(key, start_event(start, self._redactor))
        head = f'{{"ts":"{self._spelled(start.at)}",{ids},"arguments":'.encode()
        return b"%b%b,%b\n" % (head, asked, rest.encode())

    def _asked(self, call: CallStart | CallEntry) -> bytes:
        if self._arguments is None:
            return b"null"
        try:
            return self._arguments.spell(call)
        except Exception:  # noqa: BLE001 - boundary: arguments may be anything, and the line is worth more
            return UNREADABLE

    def _ids(self, call_id: str, origin: Origin) -> str | None:
        """Return the ids of a call as JSON fields; None if they are not plain hexadecimal ids."""
        if self._learned != self._redactor.learned or len(self._kept) >= _MOST_KEPT:
            self._learned, self._kept = self._redactor.learned, {}
        trace, correlation = origin.trace_id, origin.correlation_id
        ids = f"{call_id}\n{trace}" if trace == correlation else f"{call_id}\n{trace}\n{correlation}"
        if not self._redactor.is_id(ids):
            return None
        return f'"call_id":"{call_id}","trace_id":"{trace}","correlation_id":"{correlation}"'

    def _keep(self, key: tuple[object, ...], event: dict[str, Any]) -> str:
        fields = {name: value for name, value in event.items() if name not in _CHANGING}
        rest = self._kept[key] = orjson.dumps(fields).decode()[1:]
        return rest

    def _spelled(self, at: float) -> str:
        """Format a timestamp; the part down to the second is formatted once per second."""
        second = int(at)
        if second != self._second[0]:
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        return f"{self._second[1]}.{int((at - second) * 1_000_000):06d}Z"


def _whose(tool: Tool, caller: Caller, origin: Origin) -> tuple[object, ...]:
    about = (origin.face, origin.agent_id, origin.provider)
    return (tool.name, tool.exposed, caller.id, caller.user, caller.context, *about)
