"""Determines the origin of a call: client name and version, session, trace and correlation id."""

from toolcrib.frontends.mcp.request import NOBODY, Peer
from toolcrib.http.call_origin import as_uuid
from toolcrib.http.traceparent import joined
from toolcrib.model import JsonObject, Origin

_LONGEST = 128
"""Longest client name or correlation id, in characters."""
_TOLD = frozenset({"traceparent", "toolcrib/correlationId"})
_SHOWN = 32
"""How much of a session id is logged, in characters."""
NOWHERE = Origin(face="mcp")


def origin_of(outer: Origin, peer: Peer, meta: JsonObject) -> Origin:
    """Combine headers, client info and `_meta`; a client name in the headers has precedence."""
    if peer.client is NOBODY and peer.session is None and _TOLD.isdisjoint(meta) and outer.face == "mcp":
        return outer
    agent, version = outer.agent_id, outer.agent_version
    if agent == NOWHERE.agent_id:
        agent, version = _text(peer.client[0]) or agent, _text(peer.client[1]) or version
    session = outer.session_id
    if session is None and peer.session is not None:
        # The end (its MAC) is distinctive; the whole is a token, and too long for a log.
        session = peer.session.id[-_SHOWN:]
    correlation = _text(meta.get("toolcrib/correlationId"))
    origin = outer.replace(
        agent_id=agent,
        agent_version=version,
        session_id=session,
        correlation_id=as_uuid(correlation) if correlation else outer.correlation_id,
        face="mcp",
    )
    traceparent = meta.get("traceparent")
    place = joined(traceparent) if isinstance(traceparent, str) else None
    return origin if place is None else origin.replace(**place._asdict())


def _text(value: object) -> str:
    """Return a value that is safe in a log line, else an empty string."""
    return value if isinstance(value, str) and len(value) <= _LONGEST and value.isprintable() else ""
