"""Parses the origin of a call from its headers: agent, session, trace and correlation ids, with defaults."""

import re
from collections.abc import Callable
from uuid import NAMESPACE_OID, UUID, uuid5

from toolcrib.http.request import Request
from toolcrib.http.traceparent import TraceParent, joined
from toolcrib.model import Origin

LONGEST_WAIT = 300.0
_UNSAID = Origin()
_PLAIN = re.compile(rb"[!-~](?:[ -~]{0,126}[!-~])?")
_WAIT = re.compile(rb"(?:^|[,;\s])wait=([0-9]{1,9})(?:$|[,;\s])")
_FIELDS = (b"x-agent-id", b"x-agent-version", b"x-session-id", b"x-correlation-id", b"traceparent")


class CallOrigins:
    """Parses the origin headers of calls."""

    def __init__(self, new_id: Callable[[], str], address: Callable[[Request], str] = lambda _: "") -> None:
        self._new_id, self._address = new_id, address

    def of(self, request: Request, face: str) -> Origin:
        """Return the origin of a request. A malformed or too long value is ignored."""
        headers = request.headers
        if headers.keys().isdisjoint(_FIELDS):
            trace = self._new_id()
            return _UNSAID.replace(
                face=face, address=self._address(request), trace_id=trace, correlation_id=trace
            )
        given = {name: found for name in _FIELDS if (found := _plain(headers.get(name))) is not None}
        place = joined(given.get(b"traceparent", "")) or TraceParent(self._new_id(), "", sampled=True)
        correlation = given.get(b"x-correlation-id")
        return Origin(
            face=face,
            address=self._address(request),
            agent_id=given.get(b"x-agent-id", "unknown"),
            agent_version=given.get(b"x-agent-version", "0"),
            session_id=given.get(b"x-session-id"),
            trace_id=place.trace_id,
            parent=place.parent,
            sampled=place.sampled,
            correlation_id=place.trace_id if correlation is None else as_uuid(correlation),
        )


def patience(request: Request) -> float | None:
    """Return the timeout of a call in seconds, from `X-Timeout-Ms` or `Prefer: wait=N`; None without both."""
    stated = request.headers.get(b"x-timeout-ms")
    if stated is not None and stated.isdigit() and len(stated) < 10:
        return min(int(stated) / 1000, LONGEST_WAIT)
    wait = _WAIT.search(request.headers.get(b"prefer", b""))
    return None if wait is None else min(float(wait[1]), LONGEST_WAIT)


def as_uuid(text: str) -> str:
    """Return a UUID: the text itself if it is one, else a UUIDv5 derived from it, equal for equal texts."""
    try:
        return str(UUID(text))
    except ValueError:
        return str(uuid5(NAMESPACE_OID, text))


def _plain(value: bytes | None) -> str | None:
    return value.decode("ascii") if value is not None and _PLAIN.fullmatch(value) else None
