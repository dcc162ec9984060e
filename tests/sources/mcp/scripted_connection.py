"""A connection that answers as the test wrote it, and remembers what it was asked."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import orjson

from toolcrib.interfaces import Offer
from toolcrib.mcp.revisions import Era
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import JsonRpcError, Notify, RequestCallbacks

Answer = Callable[[JsonObject], Any]

UNKNOWN_METHOD = JsonRpcError(-32601, "Method not found")


def modern(**capabilities: Any) -> JsonObject:
    return {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities or {"tools": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "3.1"}},
    }


def legacy(revision: Any = "2025-06-18", **capabilities: Any) -> JsonObject:
    return {
        "protocolVersion": revision,
        "capabilities": capabilities or {"tools": {}},
        "serverInfo": {"name": "scripted", "version": "3.1"},
    }


def listed(*names: str) -> JsonObject:
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}


class ScriptedConnection:
    """Answers each method by its script; a list is used up from the left, and its last entry stays.

    An answer is a result, an exception to raise, a function of the parameters, or None: no answer ever comes.
    """

    def __init__(self, **script: Any) -> None:
        self.script: dict[str, Any] = {name.replace("__", "/"): answer for name, answer in script.items()}
        self.asked: list[tuple[str, JsonObject]] = []
        self.sent: list[dict[str, Any]] = []
        self.told: list[str] = []
        self.spoken: list[tuple[Era, str]] = []
        self.relayed: list[JsonObject] = []
        self.dials = 0
        self.closed = 0
        self.heard: Notify = lambda _method, _params: None
        self._gone = anyio.Event()
        self._reason = ""

    @asynccontextmanager
    async def dial(self, heard: Notify) -> AsyncGenerator["ScriptedConnection"]:
        self.heard, self._gone = heard, anyio.Event()
        self.dials += 1
        try:
            yield self
        finally:
            self.closed += 1

    def lose(self, reason: str) -> None:
        self._reason = reason
        self._gone.set()

    def count(self, method: str) -> int:
        return sum(asked == method for asked, _ in self.asked)

    def use_revision(self, era: Era, revision: str) -> None:
        self.spoken.append((era, revision))

    def relay(self, capabilities: JsonObject) -> None:
        self.relayed.append(capabilities)

    async def request(
        self,
        method: str,
        params: bytes,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        callbacks: RequestCallbacks | None = None,
    ) -> JsonObject:
        decoded = orjson.loads(params)
        self.asked.append((method, decoded))
        self.sent.append({"name": name, "headers": headers, "callbacks": callbacks})
        # Chosen at once: a test that sees the request may change the script for the next one.
        answer = self._next(method, decoded)
        await anyio.lowlevel.checkpoint()
        if answer is None:
            await anyio.sleep_forever()
        if isinstance(answer, Exception):
            raise answer
        return cast("JsonObject", answer)

    def _next(self, method: str, params: JsonObject) -> Any:
        answer = self.script.get(method, UNKNOWN_METHOD)
        if isinstance(answer, list):
            rest = cast("list[Any]", answer)
            answer = rest[0] if len(rest) == 1 else rest.pop(0)
        return cast("Answer", answer)(params) if callable(answer) else answer

    async def notify(self, method: str, params: bytes) -> None:
        self.told.append(method)

    async def receive(self) -> None:
        await self._gone.wait()

    async def lost(self) -> str:
        await self._gone.wait()
        return self._reason

    def details(self) -> Mapping[str, Any]:
        return {"pid": 4711}


class RecordingLink:
    """A link that keeps what it is told."""

    def __init__(self) -> None:
        self.offers: list[Offer] = []
        self.downs: list[str] = []
        self.updates: list[str] = []

    def up(self, offer: Offer) -> None:
        self.offers.append(offer)

    def down(self, reason: str) -> None:
        self.downs.append(reason)

    def updated(self, uri: str) -> None:
        self.updates.append(uri)

    def names(self) -> list[str]:
        return [tool.name for tool in self.offers[-1].tools]
