"""The gateway over HTTP: guard, route, identity, permission, face; every request gets its answer."""

import logging
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from functools import partial

import anyio

from toolcrib.asgi import (
    Answer,
    Clients,
    Disconnected,
    Guard,
    Hosts,
    Origins,
    Receive,
    Request,
    Route,
    Router,
    Scope,
    Send,
    json_answer,
    result_answer,
    send_answer,
    sent_whole,
)
from toolcrib.asgi.listen import PortTaken, address_of, listen
from toolcrib.asgi.runner import DRAIN_SECONDS, Heard, run
from toolcrib.build import House
from toolcrib.config import listen as moved
from toolcrib.errors import Refused, ToolcribError, problem
from toolcrib.faces.apps import AppSockets
from toolcrib.faces.mcp import McpFace
from toolcrib.faces.page import Page, Sessions
from toolcrib.faces.rest import Rest, describe
from toolcrib.formats.rest import encode
from toolcrib.model import Credential, Problem
from toolcrib.observe import new_id

__all__ = ["PortTaken", "Server", "serve"]

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0


class Server:
    """An ASGI application over a running house."""

    def __init__(self, house: House, *, host: str | None = None) -> None:
        settings = house.document.server
        self._gateway, self._identity = house.gateway, house.identity
        hosts = Hosts(host or settings.host, allowed=settings.allowed_hosts, public_url=settings.public_url)
        self._guard, self._clients = Guard(hosts), Clients(settings.trusted_proxies)
        self._origins = Origins(new_id)
        self._sessions = Sessions(house.identity.sign_in, settings.public_url)
        self.mcp = McpFace(house.gateway, house.conversations, house.secret("mcp session"))
        house.identity.ring.listen(self.mcp.end)
        self.draining, self.active = False, 0
        self._idle = anyio.Event()
        rest = Rest(
            house.gateway,
            house.console,
            house.identity,
            conversations=house.conversations,
            body_bytes=house.document.limits.body_bytes,
            draining=lambda: self.draining,
            openapi=self._described,
            legacy=house.document.legacy,
        )
        self._rest = rest
        house.identity.ring.listen(rest.end)
        page = Page(self._sessions, settings.public_url)
        sockets = AppSockets(house.sessions.accept, heartbeat=house.document.apps.heartbeat_ms / 1000)
        self.router = Router((*rest.routes(), *self._mcp_routes(), *sockets.routes(), *page.routes()))
        self._description = json_answer(describe(self.router.routes))

    def _described(self, request: Request) -> Answer:
        del request
        return self._description

    def _mcp_routes(self) -> tuple[Route, ...]:
        verbs = {"GET": "hears the server", "POST": "sends a message", "DELETE": "ends the session"}
        places = {"/mcp": "in the caller's own context", "/contexts/{name}/mcp": "in a named context"}
        return tuple(
            Route(
                method=method,
                path=path,
                handler=self._speak_mcp,
                summary=f"MCP {place}: {verb}.",
                cookie=False,
                face="mcp",
                calls=method != "DELETE",
                stays=method == "GET",
            )
            for path, place in places.items()
            for method, verb in verbs.items()
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep alive what lives as long as the server."""
        async with self.mcp.run():
            yield

    def drain(self) -> None:
        """Take no new calls from now on; whoever merely listens is let go."""
        self.draining = True
        self.mcp.end()
        self._rest.end()
        if not self.active:
            self._idle.set()

    async def idle(self) -> None:
        """Return when the last request has been answered, after `drain`."""
        await self._idle.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._not_http(scope, receive, send)
            return
        self.active += 1
        try:
            request = Request(scope, receive, send)
            answer = await self._answer(request)
            if answer is not None and not sent_whole(request, answer):
                await send_answer(request, answer)
        finally:
            self.active -= 1
            if self.draining and not self.active:
                self._idle.set()

    async def _answer(self, request: Request) -> Answer | None:
        try:
            self._guard.admit(request)
            route = self.router.find(request)
            if route.access not in {"open", "app"}:
                self._let_in(request, route)
                if request.caller.user is not None:
                    await self._meet(request, route)
            return await route.handler(request)
        except ToolcribError as error:
            return self._refused(error.problem, request)
        except Disconnected:
            return None
        except Exception:  # boundary: what no handler foresaw is logged here, and nobody else is told of it
            log.exception("%s %s failed unexpectedly", request.method, request.path[:200])
            said = "the gateway failed; the operator has the details"
            return self._refused(problem("EXECUTION_ERROR", said), request)

    def _let_in(self, request: Request, route: Route) -> None:
        """Find out who asks, and whether they may."""
        if route.calls:
            if self.draining:
                message = "the gateway is stopping; call again in a moment, or elsewhere"
                raise Refused("OVERLOADED", message, retry_after=_RETRY_SECONDS)
            request.origin = self._origins.of(request, route.face)
        if route.access == "loopback" and self._clients.is_local(request):
            return
        headers = request.headers
        authorization = headers.get(b"authorization")
        if authorization is not None and b"x-user-id" not in headers:
            caller = self._identity.bearer(authorization)
        else:
            caller = self._identity.caller(self._credential(request, route))
        request.caller = caller
        if route.needs is not None and not caller.may(route.needs):
            raise Refused("SCOPE_DENIED", f"this needs a key with the permission {route.needs}")

    async def _meet(self, request: Request, route: Route) -> None:
        """Fill in what is known of the user a caller acts for."""
        people = self._identity.people
        meet = people.here if route.present else people.present
        request.caller = await meet(request.caller)

    def _credential(self, request: Request, route: Route) -> Credential:
        headers = request.headers
        authorization, user = headers.get(b"authorization"), headers.get(b"x-user-id")
        named = None if user is None else _text(user)
        if authorization is not None:
            return Credential(authorization=authorization.decode("latin-1"), user=named)
        session = self._sessions.vouched(request) if route.cookie else None
        return Credential(user=named, session=session, loopback=self._clients.is_local(request))

    def _refused(self, problem: Problem, request: Request) -> Answer:
        origin = request.origin
        if not origin.trace_id:
            origin = self._origins.of(request, "rest")
        return result_answer(self._gateway.refusal(problem, origin))

    def _speak_mcp(self, request: Request) -> Awaitable[Answer | None]:
        """Hand over to MCP, in the context the path names."""
        request.caller = self._gateway.enter(request.caller, request.params.get("name"))
        return self.mcp.answer(request)

    async def _not_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Follow the life of an ASGI server other than ours; refuse what is not HTTP."""
        if scope["type"] != "lifespan":
            await send({"type": "websocket.close", "code": 1008})
            return
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self.drain()
        await send({"type": "lifespan.shutdown.complete"})

    def malformed(self, message: str) -> bytes:
        """Return the body of the answer to what is not an HTTP request."""
        return encode(self._gateway.refusal(problem("INVALID_REQUEST", message)))

    async def interrupted(self, send: Send) -> None:
        """Answer a call that was cut short because the gateway stops."""
        said = "the gateway stopped before the call ended; it may have taken effect"
        answer = result_answer(self._gateway.refusal(problem("OUTCOME_UNKNOWN", said)))
        headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body))]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})


def _text(header: bytes) -> str:
    """Read a name as clients send it today; what is no UTF-8 is of the old kind."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


async def serve(
    house: House,
    *,
    host: str | None = None,
    port: int | None = None,
    on_listening: Heard | None = None,
    drain_seconds: float = DRAIN_SECONDS,
) -> None:
    """Serve a running house until a signal comes; on uvloop it is faster by a sixth.

    `host` and `port` go before the document's; without any port it is the first free of 6740 to 6749.
    Raises PortTaken where there is none, and ConfigError where the address opens what it must not.
    """
    settings = moved(house.document, host=host, port=port).server
    listening = listen(settings.host, settings.port)
    with listening:
        await house.listens(settings.public_url or address_of(listening))
        server = Server(house, host=settings.host)
        async with server.running():
            await run(
                server,
                listening,
                on_listening=on_listening,
                on_hangup=partial(hung_up, house),
                drain_seconds=drain_seconds,
            )


async def hung_up(house: House) -> None:
    """What SIGHUP asks for; a config that cannot be used is logged, and the running one stays."""
    try:
        await house.console.servers.reload()
    except ToolcribError as error:
        log.error("SIGHUP: %s", error)  # noqa: TRY400 - the trace would tell nothing more
    except Exception:  # boundary: a reload that fails as nobody foresaw must not end the gateway
        log.exception("SIGHUP: the reload failed unexpectedly")
