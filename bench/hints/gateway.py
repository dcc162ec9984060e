"""The gateway that the robot calls: flashcards, demo tools and apps, and MCP servers, in one process."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from typing import Any

from bench.hints.own_tools import TOOLS
from bench.hints.toolset import Request, ToolSet
from tests.demo.demo_gateway import open_demo_gateway
from tests.gateways import InProcessGateway, Reply, open_gateway
from tests.parts.install import Missing
from tests.parts.registry import take
from tests.servers.third_party import known
from toolcrib.demo.apps import DEMO_USER
from toolcrib.demo.flashcards import flashcards, registry
from toolcrib.sources.functions import load_module

APP_DEVICE = "Mentra Live"
"""A device with the hardware that all apps of the demo require."""
SERVERS = {
    "everything": "npm_servers",
    "filesystem": "npm_servers",
    "memory": "npm_servers",
    "sequential-thinking": "npm_servers",
    "hello-world": "npm_servers",
    "time": "modern_servers",
    "git": "modern_servers",
    "sqlite": "legacy_servers",
    "calculator": "legacy_servers",
    "duckdb": "legacy_servers",
}
"""The MCP servers that need no network, and the part of tests/parts that each belongs to."""
AUTHORED = frozenset(f"tools:{each.name}" for each in registry.get_all())
"""Tools whose author gives hints; their mutations are suggested on the author's word."""
_START_SECONDS = 60.0
_NO_PAGE = "http://127.0.0.1:1/"


@dataclass
class RobotGateway:
    """A running gateway, all of its tools, and what could not be had for it."""

    gateway: InProcessGateway
    folder: Path
    tools: ToolSet = field(default_factory=lambda: ToolSet(()))
    notes: list[str] = field(default_factory=list[str])
    _visible: dict[str, ToolSet] = field(default_factory=dict[str, ToolSet])

    async def call(self, request: Request, user: str) -> Reply:
        """Call a tool for a user, over REST, once all earlier calls are counted, so that no run differs."""
        self.gateway.runtime.console.journal.drain()
        return await self.gateway.call(request.tool, dict(request.arguments), headers=acting(user))

    async def begin(self, user: str) -> None:
        """Begin a user's session; the user of the apps wears a device."""
        body = {"device": APP_DEVICE} if user == DEMO_USER else {}
        reply = await self.gateway.request("PUT", f"/api/users/{user}/session", body=body)
        assert reply.status == 200, reply.body

    async def end(self, user: str) -> None:
        """End a user's session."""
        reply = await self.gateway.request("DELETE", f"/api/users/{user}/session")
        assert reply.status == 200, reply.body

    async def visible(self, user: str) -> ToolSet:
        """Return the tools that a user is offered; asked once, since nothing here changes them."""
        if user not in self._visible:
            reply = await self.gateway.request("GET", "/api/tools", headers=acting(user))
            assert reply.status == 200, reply.body
            self._visible[user] = self.tools.only(each["name"] for each in reply.json["tools"])
        return self._visible[user]


def acting(user: str) -> dict[str, str]:
    """Return the header that makes the operator act for a user."""
    return {"x-user-id": user}


@asynccontextmanager
async def open_whole(folder: Path) -> AsyncGenerator[RobotGateway]:
    """Open the gateway with everything that can be had on this machine."""
    settings, notes = _servers(folder)
    config = dumps({"mcp": {"servers": settings}})
    async with open_demo_gateway(APP_DEVICE, watched=False, config=config, tools=_tools(folder)) as demo:
        made = RobotGateway(demo.gateway, folder, notes=notes)
        await _settle(made)
        yield made


@asynccontextmanager
async def open_small(folder: Path, tools: Iterable[Any] | None = None) -> AsyncGenerator[RobotGateway]:
    """Open a gateway with the flashcards and demo tools alone, or with these tools."""
    given = _tools(folder) if tools is None else tuple(tools)
    async with open_gateway(tools=given) as gateway:
        made = RobotGateway(gateway, folder)
        await _settle(made)
        yield made


async def _settle(made: RobotGateway) -> None:
    runtime = made.gateway.runtime
    await runtime.settled(_START_SECONDS)
    made.tools = ToolSet(runtime.console.catalog.snapshot.tools.values())


def _tools(folder: Path) -> tuple[Any, ...]:
    cards = flashcards(folder / "flashcards.db").get_all()
    return (*cards, *load_module("toolcrib.demo.tools"), *TOOLS)


def _servers(folder: Path) -> tuple[Mapping[str, Any], list[str]]:
    settings: dict[str, Any] = {}
    notes: list[str] = []
    for name, part in SERVERS.items():
        try:
            take(part)
        except Missing:
            notes.append(f"the MCP server {name} is left out: it could not be had here")
        else:
            settings[name] = known(name, folder, _NO_PAGE).settings()
    return settings, notes
