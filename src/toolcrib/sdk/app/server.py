"""`AppServer`: a mini-app with its tools, session hooks and HTTP server."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from time import time
from typing import Any, ParamSpec, TypeVar, overload

import anyio

from toolcrib.model import JsonObject
from toolcrib.sdk.app.asgi import AppEndpoints, Receive, Scope, Send
from toolcrib.sdk.app.authentication import GatewayAuthentication
from toolcrib.sdk.app.connection import RECONNECT_DELAYS, AppCredentials
from toolcrib.sdk.app.requests import RequestHandlers
from toolcrib.sdk.app.session import AppSession
from toolcrib.sdk.app.session_table import Hooks, OnSession, OnStop, OnTranscription, SessionTable
from toolcrib.sdk.app.tools import ToolTable
from toolcrib.sdk.decorator import (
    AnyTool,
    AppCategory,
    FunctionTool,
    HandledTool,
    Phrases,
    create_tool,
    extensions_of,
)
from toolcrib.sdk.options import Options

HOST, PORT = "127.0.0.1", 7010

P = ParamSpec("P")
R = TypeVar("R")
Hook = TypeVar("Hook", bound=Callable[..., Any])
AnyToolOfAnApp = TypeVar("AnyToolOfAnApp", HandledTool, AnyTool)


class AppServer:
    """An app, identified at its gateway by package and API key.

    It accepts requests only from its gateway, which authenticates by the key's hash and signs every
    request. For a gateway that does not sign, use `signed=False`; then `gateway` is required and limits
    the addresses of sessions, which it may also do with signatures.
    """

    def __init__(
        self,
        *,
        package: str,
        api_key: str,
        gateway: str | None = None,
        signed: bool = True,
        reconnect: Sequence[float] = RECONNECT_DELAYS,
        clock: Callable[[], float] = time,
    ) -> None:
        if not package or not api_key:
            raise ValueError(
                "package and api_key are required: the gateway issues the key when the app is added"
            )
        self.package = package
        self._tools, self._hooks = ToolTable(), Hooks()
        self._sessions = SessionTable(
            AppCredentials(package=package, key=api_key), self._hooks, clock=clock, pauses=reconnect
        )
        authentication = GatewayAuthentication(api_key, gateway=gateway, signed=signed, clock=clock)
        handlers = RequestHandlers(
            package, authentication=authentication, tools=self._tools, sessions=self._sessions, clock=clock
        )
        self._endpoints = AppEndpoints(handlers.routes())

    def __repr__(self) -> str:
        return f"<AppServer {self.package}>"

    # Tools

    def register_tool(
        self,
        tool: AnyToolOfAnApp,
        *,
        activation_phrases: Phrases | None = None,
        category: AppCategory | None = None,
    ) -> AnyToolOfAnApp:
        """Register a tool made with `create_tool(handler=…)`, or a function with `@tool` or `create_tool`."""
        self._tools.add(tool, extensions_of(activation_phrases, category))
        return tool

    @overload
    def tool(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str = "",
        description: str = "",
        activation_phrases: Phrases | None = None,
        category: AppCategory | None = None,
    ) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str = "",
        description: str = "",
        activation_phrases: Phrases | None = None,
        category: AppCategory | None = None,
    ) -> Any:
        """Make a tool of a typed function, and register it."""
        options: Options = {"name": name, "description": description}

        def made(function: Callable[..., Any]) -> AnyTool:
            tool: AnyTool = create_tool(function, **options)
            return self.register_tool(tool, activation_phrases=activation_phrases, category=category)

        return made if function is None else made(function)

    def get_tool_definitions(self) -> list[JsonObject]:
        """Return the tool definitions: the body of `POST /api/apps/{package}/tools`."""
        return self._tools.definitions()

    # Sessions

    def on_session(self, hook: OnSession) -> OnSession:
        """Register a hook called with each new session; tool calls wait until it returns."""
        self._hooks.session.append(hook)
        return hook

    def on_stop(self, hook: OnStop) -> OnStop:
        """Register a hook called with each ended session and the reason."""
        self._hooks.stop.append(hook)
        return hook

    @overload
    def on_transcription(self, hook: OnTranscription, /) -> OnTranscription: ...
    @overload
    def on_transcription(
        self, /, *, language: str | None = None
    ) -> Callable[[OnTranscription], OnTranscription]: ...
    def on_transcription(self, hook: OnTranscription | None = None, /, *, language: str | None = None) -> Any:
        """Register a hook called with a session and each transcription, in one language or in any."""

        def register(hook: OnTranscription) -> OnTranscription:
            self._hooks.transcription.append((hook, language))
            return hook

        return register if hook is None else register(hook)

    def session(self, user_id: str) -> AppSession | None:
        """Return a user's session, if there is one."""
        return self._sessions.now(user_id)

    # Running

    async def asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI application. Sessions need the lifespan protocol, which every common server supports."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._endpoints(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run sessions during a block, for servers that run `asgi` without the lifespan protocol."""
        return self._sessions.running()

    def run(self, *, host: str = HOST, port: int = PORT) -> None:
        """Serve until SIGINT or SIGTERM; sessions are closed gracefully."""
        from toolcrib.sdk.app.serving import run

        run(self.asgi, host, port)

    async def serve(self, *, host: str = HOST, port: int = PORT) -> None:
        """Serve until cancelled."""
        async with self.serving(host=host, port=port):
            await anyio.sleep_forever()

    @asynccontextmanager
    async def serving(self, *, host: str = HOST, port: int = 0) -> AsyncGenerator[str]:
        """Serve during the block; yields the address. Port 0 selects a free port."""
        from toolcrib.sdk.app.serving import serving

        async with serving(self.asgi, host, port) as address:
            yield address

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
