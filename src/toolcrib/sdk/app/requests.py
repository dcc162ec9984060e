"""Parses a gateway's requests to an app; malformed ones are refused with the path of the fault."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import orjson

from toolcrib.apps.messages import SESSION_REQUEST, STOP_REQUEST
from toolcrib.errors import Refused
from toolcrib.model import Json, JsonObject
from toolcrib.schemas.bounds import DEPTH, too_deep
from toolcrib.sdk.app.asgi import BODY_BYTES
from toolcrib.sdk.app.outgoing_messages import SessionAddress

_ADDRESSES = ("mentraOSWebsocketUrl", "augmentOSWebsocketUrl")
"""Current and legacy field name."""
_DEPTH = DEPTH + 8
"""Maximum nesting: the gateway's limit for arguments, plus the enclosing message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A tool call."""

    name: str
    arguments: dict[str, Any]
    user: str
    at: float | None
    activated: bool
    call_id: str
    session_id: str | None
    language: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest:
    """A request to end a session."""

    user: str
    session: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsRequest:
    """A change of a user's settings."""

    user: str
    settings: Json


def read_tool(body: bytes) -> ToolRequest:
    """Parse a tool call; null or missing arguments are empty."""
    given = _object(body)
    context = _inner(given, "context")
    return ToolRequest(
        name=_text(given, "name"),
        arguments={} if given.get("arguments") is None else _inner(given, "arguments"),
        user=_text(context, "userId", "context."),
        at=_moment(context.get("timestamp")),
        activated=context.get("activatedForTool") is True,
        call_id=_optional(context, "callId") or "",
        session_id=_optional(context, "sessionId"),
        language=_optional(context, "language"),
    )


def read_webhook(body: bytes) -> SessionAddress | StopRequest | None:
    """Parse a session webhook; None for an unknown type."""
    given = _object(body)
    kind = given.get("type")
    if kind == SESSION_REQUEST:
        url = next((given[name] for name in _ADDRESSES if given.get(name)), None)
        if not isinstance(url, str):
            raise _wrong(_ADDRESSES[0], "must be the address of a WebSocket")
        return SessionAddress(user=_text(given, "userId"), session=_text(given, "sessionId"), url=url)
    if kind == STOP_REQUEST:
        reason = _optional(given, "reason") or "unknown"
        return StopRequest(
            user=_text(given, "userId"), session=_text(given, "sessionId"), reason=reason[:100]
        )
    return None


def read_settings(body: bytes) -> SettingsRequest:
    """Parse a user's settings."""
    given = _object(body)
    return SettingsRequest(user=_text(given, "userIdForSettings"), settings=given.get("settings"))


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _wrong(None, "is not JSON") from None
    if not isinstance(value, dict):
        raise _wrong(None, "must be an object")
    found = too_deep(value, _DEPTH, BODY_BYTES)
    if found is not None:
        raise _wrong(None, found)
    return cast("dict[str, Any]", value)


def _inner(given: JsonObject, name: str) -> dict[str, Any]:
    value = given.get(name)
    if not isinstance(value, dict):
        raise _wrong(name, "must be an object")
    return cast("dict[str, Any]", value)


def _text(given: JsonObject, name: str, above: str = "") -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise _wrong(above + name, "must be a text that is not empty")
    return value


def _optional(given: JsonObject, name: str) -> str | None:
    value = given.get(name)
    return value if isinstance(value, str) and value else None


def _moment(given: Json) -> float | None:
    try:
        return datetime.fromisoformat(given).timestamp() if isinstance(given, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def _wrong(path: str | None, what: str) -> Refused:
    return Refused("INVALID_REQUEST", f"{path or 'the body'} {what}", path=path)
