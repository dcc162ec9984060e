"""Reads where a call comes from: the client's name, its trace and its correlation id."""

import re
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.asgi.origins import as_uuid
from toolcrib.faces.mcp.era import Request
from toolcrib.model import JsonObject, Origin

_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)"
)
_LONGEST = 128
NOWHERE = Origin(face="mcp")
_NOTHING: JsonObject = {}


def origin_of(request: Request) -> Origin:
    """Put together what the HTTP headers, the client's own name and the request's `_meta` say."""
    http, client = request.request, request.session.client_params
    named = ("", "") if client is None else (client.client_info.name, client.client_info.version)
    carried = meta_of(request)
    if http is None:
        return origin(NOWHERE, named, carried)
    return origin(
        http.scope.get("toolcrib.origin", NOWHERE), named, carried, http.headers.get("mcp-session-id")
    )


def origin(outer: Origin, client: tuple[str, str], carried: JsonObject, session: str | None = None) -> Origin:
    """Put together where a call comes from; an agent that named itself in the headers keeps that name."""
    agent, version = outer.agent_id, outer.agent_version
    if agent == NOWHERE.agent_id:
        agent, version = _text(client[0]) or agent, _text(client[1]) or version
    correlation = _text(carried.get("toolcrib/correlationId"))
    return Origin(
        agent_id=agent,
        agent_version=version,
        session_id=outer.session_id or session,
        trace_id=_trace(carried.get("traceparent")) or outer.trace_id,
        correlation_id=as_uuid(correlation) if correlation else outer.correlation_id,
        face="mcp",
        provider=outer.provider,
        metadata=outer.metadata,
    )


def meta_of(request: Request) -> JsonObject:
    """Return the request's `_meta`, empty where it has none."""
    carried: Any = request.params.get("_meta") if request.params else None
    return cast("JsonObject", carried) if isinstance(carried, Mapping) else _NOTHING


def _trace(traceparent: object) -> str:
    found = _TRACEPARENT.match(traceparent) if isinstance(traceparent, str) else None
    return "" if found is None else as_uuid(found[1])


def _text(value: object) -> str:
    """Return a value that may stand in a log line; any other counts as not given."""
    return value if isinstance(value, str) and len(value) <= _LONGEST and value.isprintable() else ""
