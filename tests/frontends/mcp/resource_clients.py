"""Servers with resources and prompts behind a real gateway, and clients of both eras."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import orjson
from mcp_types.methods import validate_server_result

from tests.runtime.servers import ROOT, running, write
from toolcrib.frontends.mcp.engine import Engine
from toolcrib.frontends.mcp.request import McpRequest, Peer
from toolcrib.mcp.revisions import LEGACY, MODERN
from toolcrib.model import Caller, JsonObject, Origin
from toolcrib.runtime import Runtime

ERAS = (LEGACY, MODERN)
OVERRIDES = {"new:resources/read": {"permissions": ["papers:read"]}, "hidden:*": {"hidden": True}}
CONTEXTS = {
    "flat": {"tools": ["*"], "style": "flat"},
    "old": {"tools": ["old:*"], "style": "flat"},
    "few": {"tools": ["old:edit", "new:prompts/get"]},
}
ALL = Caller(id="all", permissions=frozenset({"*"}))
POOR = Caller(id="poor")


def librarian(era: str, name: str) -> dict[str, Any]:
    command = [sys.executable, "-ES", "-m", "tests.servers.resource_server", era, name]
    return {"transport": "stdio", "command": command, "cwd": str(ROOT)}


class ResponseWire:
    """A response stream that is inspected only after the answer."""

    streams = True

    def __init__(self) -> None:
        self.sent: list[JsonObject] = []

    async def send(self, message: bytes) -> None:
        self.sent.append(orjson.loads(message))


class Session:
    """A session as a request needs it; answers its questions."""

    def __init__(self) -> None:
        self.id, self.level = "s", cast("str | None", None)
        self.subscribed_uris: set[str] = set()
        self.found_tools: dict[str, None] = {}

    async def ask(self, method: str, params: JsonObject, response: Any) -> JsonObject:
        del params, response
        assert method == "elicitation/create"
        return {"action": "accept", "content": {"name": "Ada"}}


class Client:
    """A client of one revision at a real gateway."""

    def __init__(self, runtime: Runtime, revision: str = LEGACY, caller: Caller = ALL, **more: Any) -> None:
        self.runtime, self.engine = (
            runtime,
            more.pop("engine", None) or Engine(runtime.gateway),
        )
        session = None if revision == MODERN else Session()
        self.session = session
        self.peer = Peer(
            caller=caller,
            revision=revision,
            capabilities={"elicitation": {}},
            session=more.pop("session", session),
        )

    def at(self, context: str) -> "Client":
        caller = self.runtime.gateway.enter(self.peer.caller, context)
        return Client(self.runtime, self.peer.revision, caller, engine=self.engine)

    async def ask(self, method: str, **params: Any) -> JsonObject:
        asked = McpRequest(1, method, params, self.peer, ResponseWire(), Origin(face="mcp"))
        return orjson.loads((await self.engine.answer(asked)).body)

    async def result(self, method: str, **params: Any) -> JsonObject:
        """Ask for something that there is, and have the official package look at the answer."""
        said = await self.ask(method, **params)
        assert "result" in said, said
        validate_server_result(method, self.peer.revision, said["result"])
        return said["result"]

    async def error(self, method: str, **params: Any) -> JsonObject:
        said = await self.ask(method, **params)
        assert "error" in said, said
        return said["error"]

    async def uris(self) -> list[str]:
        return [each["uri"] for each in (await self.result("resources/list"))["resources"]]

    async def names(self) -> list[str]:
        return [each["name"] for each in (await self.result("prompts/list"))["prompts"]]

    async def text(self, uri: str) -> str:
        (held,) = (await self.result("resources/read", uri=uri))["contents"]
        assert held["uri"] == uri
        return held["text"]

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.runtime.gateway.call(tool, arguments, ALL)
        assert result.problem is None, result.problem
        return result.data


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncGenerator[Runtime]:
    """Two servers, one of each era, that tests share and do not change."""
    path = folder / "toolcrib.yaml"
    servers = {"old": librarian("old", "a"), "new": librarian("new", "b"), "hidden": librarian("old", "h")}
    write(path, servers, overrides=OVERRIDES, contexts=CONTEXTS, limits={"result_bytes": 20_000})
    async with running(path) as runtime:
        yield runtime


@asynccontextmanager
async def one_server(folder: Path, era: str, **more: Any) -> AsyncGenerator[Runtime]:
    """A gateway with one server that a test may change."""
    write(folder / "toolcrib.yaml", {"lib": {**librarian(era, "a"), **more}})
    async with running(folder / "toolcrib.yaml") as runtime:
        yield runtime
