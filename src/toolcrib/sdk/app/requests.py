"""HTTP requests that an app server handles: webhooks and tool calls, authenticated."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, cast

import orjson

from toolcrib.apps.messages import SESSION_REQUEST, STOP_REQUEST
from toolcrib.errors import Refused
from toolcrib.model import Json, JsonObject, Progress, Report
from toolcrib.schemas.subschemas import MAX_JSON_DEPTH, too_deep
from toolcrib.sdk.app.asgi import MAX_BODY_BYTES, AppResponse, Headers, RouteHandler, json_response
from toolcrib.sdk.app.authentication import GatewayAuthentication
from toolcrib.sdk.app.connection import SessionAddress, Unreachable
from toolcrib.sdk.app.session import AppContext, AppSession
from toolcrib.sdk.app.session_table import NotRunning, SessionTable
from toolcrib.sdk.app.tools import ToolTable, call_response

# --- Parsing; malformed requests are refused with the path of the fault ---

_WEBSOCKET_FIELDS = ("mentraOSWebsocketUrl", "augmentOSWebsocketUrl")
"""Current and legacy field name."""
_MAX_DEPTH = MAX_JSON_DEPTH + 8
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


def parse_tool_request(body: bytes) -> ToolRequest:
    """Parse a tool call; null or missing arguments are empty."""
    message = _object(body)
    context = _member(message, "context")
    return ToolRequest(
        name=_required_text(message, "name"),
        arguments={} if message.get("arguments") is None else _member(message, "arguments"),
        user=_required_text(context, "userId", "context."),
        at=_parse_time(context.get("timestamp")),
        activated=context.get("activatedForTool") is True,
        call_id=_optional_text(context, "callId") or "",
        session_id=_optional_text(context, "sessionId"),
        language=_optional_text(context, "language"),
    )


def parse_webhook(body: bytes) -> SessionAddress | StopRequest | None:
    """Parse a session webhook; None for an unknown type."""
    message = _object(body)
    kind = message.get("type")
    if kind == SESSION_REQUEST:
        url = next((message[name] for name in _WEBSOCKET_FIELDS if message.get(name)), None)
        if not isinstance(url, str):
            raise _invalid(_WEBSOCKET_FIELDS[0], "must be a WebSocket URL")
        return SessionAddress(
            user=_required_text(message, "userId"), session=_required_text(message, "sessionId"), url=url
        )
    if kind == STOP_REQUEST:
        reason = _optional_text(message, "reason") or "unknown"
        return StopRequest(
            user=_required_text(message, "userId"),
            session=_required_text(message, "sessionId"),
            reason=reason[:100],
        )
    return None


def parse_settings(body: bytes) -> SettingsRequest:
    """Parse a user's settings."""
    message = _object(body)
    return SettingsRequest(
        user=_required_text(message, "userIdForSettings"), settings=message.get("settings")
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _invalid(None, "is not JSON") from None
    if not isinstance(value, dict):
        raise _invalid(None, "must be an object")
    found = too_deep(value, _MAX_DEPTH, MAX_BODY_BYTES)
    if found is not None:
        raise _invalid(None, found)
    return cast("dict[str, Any]", value)


def _member(message: JsonObject, name: str) -> dict[str, Any]:
    value = message.get(name)
    if not isinstance(value, dict):
        raise _invalid(name, "must be an object")
    return cast("dict[str, Any]", value)


def _required_text(message: JsonObject, name: str, above: str = "") -> str:
    value = message.get(name)
    if not isinstance(value, str) or not value:
        raise _invalid(above + name, "must be a non-empty string")
    return value


def _optional_text(message: JsonObject, name: str) -> str | None:
    value = message.get(name)
    return value if isinstance(value, str) and value else None


def _parse_time(timestamp: Json) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp() if isinstance(timestamp, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def _invalid(path: str | None, what: str) -> Refused:
    return Refused("INVALID_REQUEST", f"{path or 'the body'} {what}", path=path)


# --- Request handlers ---

log = logging.getLogger(__name__)

_SUCCESS = json_response({"status": "success"})


class RequestHandlers:
    """Authenticates requests and dispatches them to tools and sessions."""

    def __init__(
        self,
        package: str,
        *,
        authentication: GatewayAuthentication,
        tools: ToolTable,
        sessions: SessionTable,
        clock: Callable[[], float],
    ) -> None:
        self._package, self._clock = package, clock
        self._authentication, self._tools, self._sessions = authentication, tools, sessions

    def routes(self) -> dict[tuple[str, str], RouteHandler]:
        """Return the routes."""
        return {
            ("POST", "/tool"): self._tool,
            ("POST", "/webhook"): self._webhook,
            ("POST", "/settings"): self._settings,
            ("GET", "/health"): self._health,
        }

    async def _tool(self, headers: Headers, body: bytes) -> AppResponse:
        signed = self._authentication.check(headers, body)
        request = parse_tool_request(body)
        self._authentication.match(signed, user=request.user, tool=request.name)
        work = self._tools.get(request.name)
        if work is None:
            raise Refused("TOOL_NOT_FOUND", f"this app has no tool {request.name[:200]!r}")
        session = await self._sessions.ready(request.user)
        context = self._context(request, session)
        return AppResponse(200, await call_response(partial(work, request.arguments, context), request.name))

    def _context(self, request: ToolRequest, session: AppSession | None) -> AppContext:
        language = request.language or (session.language if session is not None else None)
        return AppContext(
            user_id=request.user,
            session_id=request.session_id,
            at=self._clock() if request.at is None else request.at,
            language=language or "en",
            activated_for_tool=request.activated,
            call_id=request.call_id,
            session=session,
            _tell=_report(session, request.call_id),
        )

    async def _webhook(self, headers: Headers, body: bytes) -> AppResponse:
        signed = self._authentication.check(headers, body) if self._authentication.signed else None
        try:
            request = parse_webhook(body)
        except Refused as refused:
            return _error(400, str(refused))
        if request is None:
            return _error(400, "the type must be session_request or stop_request")
        self._authentication.match(signed, user=request.user)
        if isinstance(request, StopRequest):
            await self._sessions.stop(request.user, request.session, request.reason)
            return _SUCCESS
        return await self._start_session(request)

    async def _start_session(self, address: SessionAddress) -> AppResponse:
        if not self._authentication.is_gateway_url(address.url):
            return _error(400, "the WebSocket URL does not belong to this app's gateway")
        try:
            await self._sessions.begin(address)
        except (Unreachable, NotRunning) as error:
            return _error(500, str(error))
        except Exception:  # boundary to the app's own handlers, which may raise anything
            log.exception("on_session failed")
            return _error(500, "the app failed to start the session; see its log")
        return _SUCCESS

    async def _settings(self, headers: Headers, body: bytes) -> AppResponse:
        signed = self._authentication.check(headers, body)
        request = parse_settings(body)
        self._authentication.match(signed, user=request.user)
        session = self._sessions.now(request.user)
        if session is not None:
            session.settings.take(request.settings)
        return _SUCCESS

    async def _health(self, headers: Headers, body: bytes) -> AppResponse:
        return json_response(
            {"status": "healthy", "app": self._package, "activeSessions": len(self._sessions)}
        )


def _report(session: AppSession | None, call_id: str) -> Report | None:
    if session is None or not call_id:
        return None

    async def send_progress(progress: Progress) -> None:
        await session.report(call_id, progress)

    return send_progress


def _error(status: int, message: str) -> AppResponse:
    return json_response({"status": "error", "message": message}, status)
