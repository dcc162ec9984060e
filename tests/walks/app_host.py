"""A gateway that listens, with apps, users and sessions made through its routes, as their owners would."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

from tests.gateways import InProcessGateway, Reply, listening, open_gateway
from tests.walks.fake_app import FakeApp

QUICK = "apps: {activation_ms: 1500, timeout_ms: 1500, grace_ms: 300}\n"
TOOL = {
    "name": "note",
    "description": "Writes a note down for the user, and says what it wrote.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "what to write"}},
        "required": ["text"],
    },
}


class AppHost:
    """The doors of a gateway that listens, and the usual errands."""

    def __init__(self, gateway: InProcessGateway, url: str) -> None:
        self.gateway, self.url = gateway, url

    async def made(self, method: str, target: str, body: Any = None, **more: Any) -> Any:
        """Ask for something that must work."""
        reply = await self.gateway.request(method, target, body=body, **more)
        assert reply.status in (200, 201), (reply.status, reply.body)
        return reply.json

    async def register(
        self,
        package: str,
        url: str | None,
        *,
        tools: Sequence[Any] = (TOOL,),
        hardware: Sequence[Any] = (),
        kind: str = "background",
    ) -> str:
        """Make an app with its tools; the answer is its key."""
        body = {"name": package, "publicUrl": url, "appType": kind, "hardwareRequirements": list(hardware)}
        made = await self.made("PUT", f"/api/apps/{package}", body)
        if tools:
            await self.made("POST", f"/api/apps/{package}/tools", {"tools": list(tools)})
        return made["apiKey"]

    async def admit(self, fake_app: FakeApp, user: str = "ann", **more: Any) -> None:
        """Register a puppet and install it."""
        fake_app.key = await self.register(fake_app.package, fake_app.address, **more)
        await self.install(user, fake_app.package)

    async def install(self, user: str, package: str) -> None:
        """Install an app for a user."""
        await self.made("PUT", f"/api/users/{quote(user, safe='')}/apps/{package}")

    async def session(self, user: str = "ann", device: Any = "Even Realities G1", **more: Any) -> Any:
        """Begin a session."""
        body = {**({} if device is None else {"device": device}), **more}
        return await self.made("PUT", f"/api/users/{quote(user, safe='')}/session", body)

    async def call(self, name: str, arguments: Any = None, user: str = "ann", **more: Any) -> Reply:
        """Call a tool for a user."""
        return await self.gateway.call(name, arguments or {"text": "x"}, headers={"x-user-id": user}, **more)

    async def names(self, user: str = "ann") -> set[str]:
        """Return the names of the tools of apps a user may use."""
        reply = await self.gateway.request("GET", "/api/tools", headers={"x-user-id": user})
        assert reply.status == 200, reply.body
        return {tool["name"] for tool in reply.json["tools"] if "." in tool["name"]}

    async def state(self, package: str, user: str = "ann") -> str:
        """Return how an app stands for a user."""
        found = await self.made("GET", f"/api/users/{quote(user, safe='')}")
        return next(each["running"]["state"] for each in found["apps"] if each["packageName"] == package)


@asynccontextmanager
async def app_host(config: str = QUICK, **more: Any) -> AsyncGenerator[AppHost]:
    """Open a house that listens on a port of its own."""
    async with open_gateway(config, **more) as gateway, listening(gateway.server) as url:
        gateway.runtime.sessions.address = url
        yield AppHost(gateway, url)


@asynccontextmanager
async def host_with_apps(
    *packages: str, config: str = QUICK, user: str = "ann", **more: Any
) -> AsyncGenerator[tuple[AppHost, list[FakeApp]]]:
    """Open a house with puppets, each installed for a user who is here."""
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(app_host(config))
        fake_apps = [await stack.enter_async_context(FakeApp(each).running()) for each in packages]
        for each in fake_apps:
            await host.admit(each, user, **more)
        await host.session(user)
        yield host, fake_apps


def contents(reply: Reply) -> Any:
    """Return what a call gave, where it went well."""
    assert reply.status == 200, (reply.status, reply.body)
    return json.loads(reply.body)["content"]
