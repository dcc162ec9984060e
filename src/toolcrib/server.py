"""The gateway as an ASGI application: guard, routing, authentication, authorization, and the frontends."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio

from toolcrib.background_tasks import background_tasks, keep_running
from toolcrib.config import with_bind_address as moved
from toolcrib.errors import Refused, ToolcribError, problem
from toolcrib.formats.rest import encode
from toolcrib.frontends.apps import AppSockets
from toolcrib.frontends.mcp import StreamableHttpFrontend
from toolcrib.frontends.mcp.openapi import document as mcp_document
from toolcrib.frontends.rest import RestFrontend, describe
from toolcrib.frontends.web import Page, PageSessions
from toolcrib.frontends.web.page import SECRET_HEADER
from toolcrib.http import (
    AllowedHosts,
    CallOrigins,
    ClientAddresses,
    Disconnected,
    HttpResponse,
    Receive,
    Request,
    RequestGuard,
    Route,
    Router,
    Scope,
    Send,
    json_response,
    result_response,
    send_response,
    sent_whole,
)
from toolcrib.http.request import WholeMessages
from toolcrib.http.runner import DRAIN_SECONDS, OnListening, PortTaken, address_of, listen, run
from toolcrib.identity import Failure, PageSession, Untried, require_fresh, require_whole
from toolcrib.model import SIGNAL, Actor, Caller, Credential, Problem
from toolcrib.observe import new_id
from toolcrib.observe.loop_lag import LoopLag
from toolcrib.runtime import Runtime
from toolcrib.runtime.pressure import make_intake, memory_watch, watch_intake

__all__ = ["GatewayApp", "PortTaken", "serve"]

log = logging.getLogger(__name__)

_DRAIN_RETRY_SECONDS = 5.0


class GatewayApp:
    """The ASGI application of a running gateway."""

    def __init__(self, runtime: Runtime, *, host: str | None = None) -> None:
        settings = runtime.document.server
        self._gateway, self._identity = runtime.gateway, runtime.identity
        host, public_url = host or settings.host, settings.public_url
        hosts = AllowedHosts(host, allowed=settings.allowed_hosts, public_url=public_url)
        self._guard, self._clients = RequestGuard(hosts), ClientAddresses(settings.trusted_proxies)
        self._origins = CallOrigins(new_id, self._clients.address)
        self._audit, self._failed_logins = runtime.console.audit, runtime.failed_logins
        self._find_app = runtime.console.apps.find
        self._sessions = PageSessions(runtime.identity.sign_in, public_url)
        key, store = runtime.secret("mcp session"), runtime.console.store
        self.mcp = StreamableHttpFrontend(runtime.gateway, key, store)
        runtime.identity.ring.listen(self.mcp.end)
        self.draining, self.active = False, 0
        self.memory, self._loop_lag = memory_watch(runtime), LoopLag()
        self.intake = make_intake(runtime.document.limits, self._clients, self.memory, runtime.large_results)
        watch_intake(runtime.console.journal, self.intake)
        self._loop_lag.show(runtime.console.journal.watch)
        self._idle = anyio.Event()
        rest = RestFrontend(
            runtime.gateway,
            runtime.console,
            runtime.identity,
            body_bytes=runtime.document.limits.body_bytes,
            draining=lambda: self.draining,
            short_of_memory=self.memory.check,
            openapi=self._openapi,
            legacy=runtime.document.legacy,
        )
        self._rest = rest
        runtime.identity.ring.listen(rest.end)
        page = self._page(public_url)
        sockets = AppSockets(
            runtime.sessions.accept,
            heartbeat=runtime.document.apps.heartbeat_ms / 1000,
            rejected=self._on_wrong_app_key,
        )
        self.router = Router((*rest.routes(), *self._mcp_routes(), *sockets.routes(), *page.routes()))
        self._description = json_response(describe(self.router.routes))

    def _page(self, public_url: str | None) -> Page:
        return Page(
            self._sessions,
            self._identity.make_link,
            public_url,
            audited=self._audit.action,
            actor=self._page_actor,
            link_failed=self._link_failed,
        )

    def _openapi(self, request: Request) -> HttpResponse:
        del request
        return self._description

    def _mcp_routes(self) -> tuple[Route, ...]:
        verbs = {"GET": "stream of server messages", "POST": "send a message", "DELETE": "end the session"}
        contexts = {"/mcp": "in the caller's home context", "/contexts/{name}/mcp": "in a named context"}
        return tuple(
            Route(
                method=method,
                path=path,
                handler=self._speak_mcp,
                summary=f"MCP {context}: {verb}.",
                cookie=False,
                face="mcp",
                calls=method != "DELETE",
                stays=method == "GET",
                document=mcp_document(method),
            )
            for path, context in contexts.items()
            for method, verb in verbs.items()
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the background tasks of the server."""
        async with background_tasks() as tasks, self._loop_lag.measuring(), self.mcp.run():
            tasks.start_soon(keep_running, self.memory.run)
            yield

    def drain(self) -> None:
        """Accept no new calls, and end all event streams."""
        self.draining = True
        self.mcp.end()
        self._rest.end()
        if not self.active:
            self._idle.set()

    async def idle(self) -> None:
        """Return when the last request has been answered, after `drain`."""
        await self._idle.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection: respond to an HTTP request."""
        if scope["type"] != "http":
            await self._not_http(scope, receive, send)
            return
        self.active += 1
        try:
            request = Request(scope, receive, send, self.intake)
            response = await self._respond(request)
            if response is not None and not sent_whole(request, response):
                await send_response(request, response)
        finally:
            self.active -= 1
            if self.draining and not self.active:
                self._idle.set()

    async def _respond(self, request: Request) -> HttpResponse | None:
        route = None
        try:
            self._guard.admit(request)
            route = self.router.find(request)
            if route.access not in {"open", "app"}:
                self._authorize(request, route)
                if request.caller.user is not None:
                    await self._load_user(request, route)
            short = request.short
            if short is not None and short.connection.principal != request.caller.key:
                self._assign_connection(request, short)
            if self.memory.is_high and not request.caller.operator and not route.is_small:
                self.memory.check()
            return await route.handler(request)
        except ToolcribError as error:
            return self._refused(await self._failed(error, request, route), request)
        except Disconnected:
            return None
        except Exception:  # boundary: an unexpected error is logged, and the response reveals no details
            log.exception("%s %s failed unexpectedly", request.method, request.path[:200])
            message = "the gateway failed; the operator has the details"
            return self._refused(problem("EXECUTION_ERROR", message), request)

    def _authorize(self, request: Request, route: Route) -> None:
        """Authenticate and authorize the caller of a request."""
        if route.calls:
            if self.draining:
                message = "the gateway is stopping; retry in a few seconds"
                raise Refused("OVERLOADED", message, retry_after=_DRAIN_RETRY_SECONDS)
            request.origin = self._origins.of(request, route.face)
        if route.access == "loopback" and self._clients.is_local(request):
            return
        headers = request.headers
        authorization = headers.get(b"authorization")
        caller = None if authorization is None else self._identity.ring.seen.get(authorization)
        if caller is None or b"x-user-id" in headers:
            caller = self._authenticate(request, route)
        request.caller = caller
        if route.action is not None:
            request.actor = self._actor(request, route)
            # Not cancelled by a disconnect: a change could be left half applied.
            request.scope["toolcrib.outlives"] = True
        if route.needs is not None:
            _check_permission(caller, route)

    def _authenticate(self, request: Request, route: Route) -> Caller:
        """Authenticate a request; an unknown key is not tried while too many failures are delayed."""
        authorization, named = request.headers.get(b"authorization"), request.headers.get(b"x-user-id")
        user = None if named is None else _decode_header(named)
        if authorization is None:
            session = self._sessions.verified(request) if route.cookie else None
            cookie, local = None if session is None else session.cookie, self._clients.is_local(request)
            return self._identity.caller(Credential(user=user, session=cookie, loopback=local))
        if self._identity.may_be_a_guess(authorization):
            self._failed_logins.refuse_untried(self._clients.address(request))
        caller = self._identity.bearer(authorization)
        return caller if user is None else self._identity.acting_for(caller, user)

    def _actor(self, request: Request, route: Route) -> Actor:
        """Return the caller as the audit names it; a request of the page has a session secret and no key."""
        of_page = SECRET_HEADER in request.headers and b"authorization" not in request.headers
        return Actor.of(request.caller, "page" if of_page else route.face, self._clients.address(request))

    async def _failed(self, error: ToolcribError, request: Request, route: Route | None) -> Problem:
        """Audit a refused administrative action or a failed authentication; return the problem to send."""
        action = None if route is None else route.action
        unknown = request.actor.kind == "unknown"
        if route is not None and unknown and error.problem.code == "UNAUTHENTICATED":
            return await self._unauthenticated(error.problem, request, route)
        if route is not None and isinstance(error, Untried):
            await self._failed_logins.count(Failure(route.face, self._clients.address(request), "key", ""))
            return error.problem
        if action is not None and not error.recorded:
            actor = request.actor
            if unknown:
                actor = Actor.unknown(route.face if route else "rest", self._clients.address(request))
            await self._audit.refused(actor, action, "/".join(request.params.values()), error.problem.code)
        return error.problem

    async def _unauthenticated(self, problem: Problem, request: Request, route: Route) -> Problem:
        authorization = request.header(b"authorization")
        address = self._clients.address(request)
        if authorization is None:
            if SECRET_HEADER not in request.headers:
                return problem  # no credential was sent: clients probe first whether they need a key
            failure = Failure("page", address, "session", "")
        elif route.access == "app":
            package = authorization.partition(" ")[2].strip().partition(":")[0]
            failure = Failure(route.face, address, "app", self._known_app(package))
        else:
            failure = Failure(route.face, address, "key", self._identity.ended_name(authorization))
        return await self._delayed(failure) or problem

    async def _delayed(self, failure: Failure) -> Problem | None:
        """Record a failed authentication and delay its response; return a problem if too many are delayed."""
        try:
            await self._failed_logins.failed(failure)
        except Refused as error:
            return error.problem
        return None

    def _on_wrong_app_key(self, request: Request) -> Callable[[str], Awaitable[None]]:
        """Return a callback that records an app's wrong key on its WebSocket, and delays the response."""
        address = self._clients.address(request)

        async def rejected(package: str) -> None:
            await self._delayed(Failure("apps", address, "app", self._known_app(package)))

        return rejected

    def _known_app(self, package: str) -> str:
        """Return a package if it is an app's; other names from unauthenticated clients are not recorded."""
        return "" if self._find_app(package) is None else package

    async def _link_failed(self, request: Request) -> None:
        """Record an invalid sign-in link and delay its response; refuse if too many are delayed already."""
        await self._failed_logins.failed(Failure("page", self._clients.address(request), "link", ""))

    def _page_actor(self, request: Request, session: PageSession) -> Actor:
        """Return the actor of a sign-in: the key that made the link."""
        caller = self._identity.session_caller(session)
        if caller is None:
            message = "the key that created this link is no longer valid; create a link with another key"
            raise Refused("UNAUTHENTICATED", message, path="token")
        return Actor.of(caller, "page", self._clients.address(request))

    def _assign_connection(self, request: Request, short: WholeMessages) -> None:
        """Count the connection against the principal of this request."""
        if short.connection.principal == request.caller.principal:
            return  # already counted: a user named by a trusted proxy
        try:
            self.intake.assign(short.connection, request)
        except Refused:
            short.keep_alive = False
            raise

    async def _load_user(self, request: Request, route: Route) -> None:
        """Load the user that the caller acts for."""
        people = self._identity.people
        meet = people.here if route.present else people.present
        request.caller = await meet(request.caller)

    def _refused(self, problem: Problem, request: Request) -> HttpResponse:
        origin = request.origin
        if not origin.trace_id:
            origin = self._origins.of(request, "rest")
        return result_response(self._gateway.refusal(problem, origin))

    def _speak_mcp(self, request: Request) -> Awaitable[HttpResponse | None]:
        """Dispatch to the MCP frontend, in the context that the path names."""
        request.caller = self._gateway.enter(request.caller, request.params.get("name"))
        return self.mcp.answer(request)

    async def _not_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Implement the lifespan protocol for other ASGI servers; refuse every other protocol."""
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
        """Return the body of the response to a malformed HTTP request."""
        return encode(self._gateway.refusal(problem("INVALID_REQUEST", message)))

    async def interrupted(self, send: Send) -> None:
        """Respond to a call that was cancelled because the gateway stops."""
        message = "the gateway stopped before the call ended; it may have taken effect"
        response = result_response(self._gateway.refusal(problem("OUTCOME_UNKNOWN", message)))
        headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})


def _decode_header(header: bytes) -> str:
    """Decode a header as UTF-8, as clients send names today, else as ISO 8859-1."""
    try:
        return header.decode()
    except UnicodeDecodeError:
        return header.decode("latin-1")


def _check_permission(caller: Caller, route: Route) -> None:
    if route.needs is not None and not caller.may(route.needs):
        raise Refused("SCOPE_DENIED", f"this needs a key with the permission {route.needs}")
    if route.whole:
        require_whole(caller)
    if route.fresh:
        require_fresh(caller)


async def serve(
    runtime: Runtime,
    *,
    host: str | None = None,
    port: int | None = None,
    on_listening: OnListening | None = None,
    drain_seconds: float = DRAIN_SECONDS,
) -> None:
    """Serve a running gateway until a signal arrives, in the event loop of the caller.

    `host` and `port` override the config; without a port, it is the first free one of 6740 to 6749.
    Raises PortTaken if none is free, and ConfigError if the address would expose the gateway unsafely.
    """
    settings = moved(runtime.document, host=host, port=port).server
    listening = listen(settings.host, settings.port)
    with listening:
        await runtime.listens(settings.public_url or address_of(listening))
        server = GatewayApp(runtime, host=settings.host)
        async with server.running():
            await run(
                server,
                listening,
                on_listening=on_listening,
                on_hangup=partial(hung_up, runtime),
                drain_seconds=drain_seconds,
            )


async def hung_up(runtime: Runtime) -> None:
    """Handle SIGHUP: reload the config; an invalid one is logged, and the running one stays in force."""
    try:
        await runtime.console.servers.reload(actor=SIGNAL)
    except ToolcribError as error:
        log.error("SIGHUP: %s", error)  # noqa: TRY400 - the traceback would add nothing
    except Exception:  # boundary: an unexpected error in a reload must not end the gateway
        log.exception("SIGHUP: the reload failed unexpectedly")
