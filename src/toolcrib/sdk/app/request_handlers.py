"""Handlers of a gateway's HTTP requests: tool calls, session webhooks, settings, health."""

import logging
from collections.abc import Callable
from functools import partial

from toolcrib.errors import Refused
from toolcrib.model import Progress, Report
from toolcrib.sdk.app.asgi import AppResponse, Headers, RouteHandler, json_reply
from toolcrib.sdk.app.authentication import GatewayAuthentication
from toolcrib.sdk.app.connection import Unreachable
from toolcrib.sdk.app.context import AppContext
from toolcrib.sdk.app.outgoing_messages import SessionAddress
from toolcrib.sdk.app.requests import StopRequest, ToolRequest, read_settings, read_tool, read_webhook
from toolcrib.sdk.app.session import AppSession
from toolcrib.sdk.app.session_table import NotRunning, SessionTable
from toolcrib.sdk.app.tool_responses import answered
from toolcrib.sdk.app.tool_table import ToolTable

log = logging.getLogger(__name__)

_DONE = json_reply({"status": "success"})


class RequestHandlers:
    """Authenticates requests and dispatches them to tools and sessions."""

    def __init__(
        self,
        package: str,
        *,
        gate: GatewayAuthentication,
        toolbox: ToolTable,
        sessions: SessionTable,
        clock: Callable[[], float],
    ) -> None:
        self._package, self._clock = package, clock
        self._gate, self._toolbox, self._sessions = gate, toolbox, sessions

    def doors(self) -> dict[tuple[str, str], RouteHandler]:
        """Return the routes."""
        return {
            ("POST", "/tool"): self._tool,
            ("POST", "/webhook"): self._webhook,
            ("POST", "/settings"): self._settings,
            ("GET", "/health"): self._health,
        }

    async def _tool(self, headers: Headers, body: bytes) -> AppResponse:
        signed = self._gate.check(headers, body)
        request = read_tool(body)
        self._gate.match(signed, user=request.user, tool=request.name)
        work = self._toolbox.get(request.name)
        if work is None:
            raise Refused("TOOL_NOT_FOUND", f"this app has no tool {request.name[:200]!r}")
        session = await self._sessions.ready(request.user)
        context = self._context(request, session)
        return AppResponse(200, await answered(partial(work, request.arguments, context), request.name))

    def _context(self, request: ToolRequest, session: AppSession | None) -> AppContext:
        spoken = request.language or (session.language if session is not None else None)
        return AppContext(
            user_id=request.user,
            session_id=request.session_id,
            at=self._clock() if request.at is None else request.at,
            language=spoken or "en",
            activated_for_tool=request.activated,
            call_id=request.call_id,
            session=session,
            _tell=_report(session, request.call_id),
        )

    async def _webhook(self, headers: Headers, body: bytes) -> AppResponse:
        signed = self._gate.check(headers, body) if self._gate.signed else None
        try:
            asked = read_webhook(body)
        except Refused as refused:
            return _trouble(400, str(refused))
        if asked is None:
            return _trouble(400, "the type is neither session_request nor stop_request")
        self._gate.match(signed, user=asked.user)
        if isinstance(asked, StopRequest):
            await self._sessions.stop(asked.user, asked.session, asked.reason)
            return _DONE
        return await self._begun(asked)

    async def _begun(self, place: SessionAddress) -> AppResponse:
        if not self._gate.leads_home(place.url):
            return _trouble(400, "the WebSocket's address is not one of this app's gateway")
        try:
            await self._sessions.begin(place)
        except (Unreachable, NotRunning) as error:
            return _trouble(500, str(error))
        except Exception:  # boundary to the app's own handlers, which may raise anything
            log.exception("on_session failed")
            return _trouble(500, "the app failed to begin a session; its log says how")
        return _DONE

    async def _settings(self, headers: Headers, body: bytes) -> AppResponse:
        signed = self._gate.check(headers, body)
        asked = read_settings(body)
        self._gate.match(signed, user=asked.user)
        session = self._sessions.now(asked.user)
        if session is not None:
            session.settings.take(asked.settings)
        return _DONE

    async def _health(self, headers: Headers, body: bytes) -> AppResponse:
        return json_reply({"status": "healthy", "app": self._package, "activeSessions": len(self._sessions)})


def _report(session: AppSession | None, call_id: str) -> Report | None:
    if session is None or not call_id:
        return None

    async def tell(progress: Progress) -> None:
        await session.report(call_id, progress)

    return tell


def _trouble(status: int, message: str) -> AppResponse:
    return json_reply({"status": "error", "message": message}, status)
