"""A gateway with callers of every kind, a listener that counts connections, and names that lead to it."""

import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from anyio import (
    BrokenResourceError,
    ClosedResourceError,
    EndOfStream,
    create_task_group,
    create_tcp_listener,
)
from anyio.abc import SocketAttribute, SocketStream

from tests.frontends.web.test_sessions import signed_in
from tests.gateways import ADMIN, InProcessGateway, Reply, open_gateway
from tests.walks.app_host import TOOL

BINDS = ("127.0.0.1", "0.0.0.0")
OPERATORS = ("admin key", "page")
OTHERS = ("crib:admin key", "wildcard key", "developer key", "act-as key", "page of a crib:admin key")

NAMES = {
    "loopback.example": "127.0.0.1",
    "loopback6.example": "::1",
    "private.example": "10.1.2.3",
    "metadata.example": "169.254.169.254",
}

_RIGHTS: Mapping[str, Mapping[str, Any]] = {
    "crib:admin key": {"permissions": ["crib:admin"]},
    "wildcard key": {"permissions": ["*"]},
    "developer key": {"permissions": ["crib:apps", "crib:servers"]},
    "act-as key": {"permissions": ["crib:apps", "crib:servers"], "actAs": True},
}


@dataclass
class Canary:
    """Listens on every address of this machine; `connections` counts who came."""

    port: int
    connections: int = 0

    def at(self, url: str) -> str:
        """Return a URL whose `{port}` is the canary's."""
        return url.replace("{port}", str(self.port))


@asynccontextmanager
async def canary() -> AsyncGenerator[Canary]:
    """Listen until the block ends; every connection is answered with an error and closed."""
    listener = await create_tcp_listener()
    made = Canary(listener.extra(SocketAttribute.local_port))  # noqa: S610 -- anyio's, not Django's

    async def answer(stream: SocketStream) -> None:
        async with stream:
            made.connections += 1
            # A probe connects and sends nothing.
            with suppress(EndOfStream, BrokenResourceError, ClosedResourceError):
                await stream.receive()
                await stream.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    async with listener, create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        yield made
        tasks.cancel_scope.cancel()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have NAMES resolve as they say, whatever this machine's resolver knows."""
    look = socket.getaddrinfo

    def look_up(host: Any, *more: Any, **options: Any) -> Any:
        return look(NAMES.get(host, host), *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@dataclass
class Callers:
    """Everyone who may register something, each by the headers of their requests."""

    gateway: InProcessGateway
    headers: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    async def put(self, who: str, url: str, package: str = "com.example.notes") -> Reply:
        """Register an app."""
        body = {"name": "Notes", "publicUrl": url}
        return await self._ask(who, "PUT", f"/api/apps/{package}", body)

    async def add(self, who: str, url: str, server: str = "web", start: str = "lazy") -> Reply:
        """Add a server."""
        arguments = {"server_id": server, "url": url, "start": start}
        body = {"name": "mcp_add_server", "arguments": arguments}
        return await self._ask(who, "POST", "/api/tools/execute", body)

    async def use(self, package: str = "com.example.notes") -> Reply:
        """Have the gateway connect to an app: a user installs it and calls its tool."""
        for method, target, body in (
            ("POST", f"/api/apps/{package}/tools", {"tools": [TOOL]}),
            ("PUT", f"/api/users/ann/apps/{package}", None),
            ("PUT", "/api/users/ann/session", {"device": "Even Realities G1"}),
        ):
            made = await self.gateway.request(method, target, body=body)
            assert made.status in (200, 201), made.body
        return await self.gateway.call(f"{package}:note", {"text": "x"}, headers={"x-user-id": "ann"})

    async def drop(self, package: str = "com.example.notes", server: str = "web") -> None:
        """Remove what was registered."""
        await self.gateway.request("DELETE", f"/api/apps/{package}")
        if server in self.gateway.runtime.console.servers.config.servers():
            await self.gateway.runtime.console.servers.remove(server)

    async def _ask(self, who: str, method: str, target: str, body: Any) -> Reply:
        return await self.gateway.request(method, target, key=None, body=body, headers=self.headers[who])


@asynccontextmanager
async def callers(config: str = "", **more: Any) -> AsyncGenerator[Callers]:
    """Open a gateway with a key of each kind, and the page signed in; in a kept store they are made anew."""
    async with open_gateway(config, **more) as gateway:
        gateway.runtime.sessions.address = "http://127.0.0.1:6740"
        yield await _with_keys(gateway)


async def _with_keys(gateway: InProcessGateway) -> Callers:
    await gateway.begin("bob")
    made = Callers(gateway)
    made.headers["page"] = {**(await signed_in(gateway)).both, "sec-fetch-site": "same-origin"}
    keys = {who: await _key(gateway, f"key-{place}", _RIGHTS[who]) for place, who in enumerate(_RIGHTS)}
    for who, key in {"admin key": ADMIN, **keys}.items():
        made.headers[who] = {"authorization": f"Bearer {key}"}
    made.headers["act-as key"]["x-user-id"] = "bob"
    session = await signed_in(gateway, keys["crib:admin key"])
    made.headers["page of a crib:admin key"] = {**session.both, "sec-fetch-site": "same-origin"}
    return made


async def _key(gateway: InProcessGateway, name: str, rights: Mapping[str, Any]) -> str:
    made = await gateway.request("POST", "/api/keys", body={"name": name, **rights})
    if made.code == "ALREADY_EXISTS":
        made = await gateway.request("POST", f"/api/keys/{name}/rotate")
    return made.json["key"]
