"""Calls a tool on every frontend and normalizes the answers."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.gateways import ADMIN, InProcessGateway, Reply, open_gateway
from toolcrib import Crib
from toolcrib.formats.rest import as_json
from toolcrib.sdk import AnyTool

FACES = ("rest", "stream", "modern", "legacy", "library")
SERVED = FACES[:-1]
"""The frontends with authentication; the library has none."""
MODERN, LEGACY = "2026-07-28", "2025-06-18"
_CLIENT = {"name": "asker", "version": "1.2.3"}
ALL_HINTS = "contexts: {default: {hints: full}}"
"""Config with which MCP clients get hints with every result, as REST clients always do."""
_MCP = {"accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Answer:
    """The normalized answer."""

    raw: str
    """All of it, as it was sent."""
    data: Any
    hints: dict[str, Any]
    metadata: dict[str, Any]
    error: dict[str, Any] | None

    @property
    def code(self) -> str | None:
        return None if self.error is None else self.error["code"]


class Asker:
    """Calls tools of one gateway over its faces, and of another inside this program."""

    def __init__(self, crib: InProcessGateway, own: Crib | None = None) -> None:
        self.crib, self.own = crib, own

    async def ask(
        self, face: str, name: str, arguments: Any = None, *, key: str = ADMIN, trace: str = ""
    ) -> Answer:
        """Call a tool; `trace` is a traceparent for frontends that accept one."""
        if face == "library":
            assert self.own is not None
            return _plain(json.dumps(as_json(await self.own.call(name, arguments))))
        headers = {"traceparent": trace} if trace else {}
        if face in ("rest", "stream"):
            accept = {"accept": "text/event-stream"} if face == "stream" else {}
            reply = await self.crib.call(name, arguments, key=key, headers=headers | accept)
            return _plain(_last(reply))
        body: Any = {"name": name.replace("-", "_"), "arguments": arguments or {}, "_meta": dict(headers)}
        reply = await (self._modern if face == "modern" else self._legacy)(body, key)
        return _carried(_last(reply))

    async def _modern(self, params: Any, key: str) -> Reply:
        params["_meta"] |= {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        named = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": params["name"]}
        return await self._post("tools/call", params, key, named)

    async def _legacy(self, params: Any, key: str) -> Reply:
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
        session = (await self._post("initialize", hello, key, {})).headers["mcp-session-id"]
        held = {"mcp-session-id": session, "mcp-protocol-version": LEGACY}
        return await self._post("tools/call", params, key, held)

    async def _post(self, method: str, params: Any, key: str, headers: dict[str, str]) -> Reply:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.crib.request("POST", "/mcp", key=key, body=body, headers=_MCP | headers)


def _last(reply: Reply) -> str:
    """The answer, plain or as the last event of a stream."""
    text = reply.body.decode()
    if reply.headers["content-type"].startswith("application/json"):
        return text
    return text.strip().split("\n\n")[-1].partition("data: ")[2]


def _plain(text: str) -> Answer:
    said = json.loads(text)
    return Answer(text, said.get("data"), said["agentHints"], said["metadata"], said.get("error"))


def _carried(text: str) -> Answer:
    said = json.loads(text)
    result = said.get("result", {})
    meta = result["_meta"] if "result" in said else said["error"]["data"]
    hints, metadata = meta["toolcrib/agentHints"], meta["toolcrib/metadata"]
    return Answer(text, result.get("structuredContent"), hints, metadata, meta.get("toolcrib/error"))


@asynccontextmanager
async def asking(*tools: AnyTool, config: str = ALL_HINTS) -> AsyncGenerator[Asker]:
    """Open both."""
    async with open_gateway(config, tools=tools) as crib, Crib(tools=tools) as own:
        yield Asker(crib, own)
