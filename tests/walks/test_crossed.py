"""Two hundred clients with the same ids and tokens, each with its own secret: nobody hears another's."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import orjson
import pytest

from tests.gateway_process import GatewayProcess, gateway_process
from tests.servers.client import client as operator_of
from tests.servers.settings import PYTHON, config, stdio
from toolcrib.mcp.revisions import LEGACY, MODERN

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("B2", "I1")]

CLIENTS, CALLS, KEYS = 200, 100, 20
TOOL = "mcp_mixed_keep"
LIMITS = {"per_user": "10000000/min", "concurrency": CLIENTS, "waiting": CLIENTS}
ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MODERN_HEAD = f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: {TOOL}\r\n"


class Line:
    """One connection that is kept open, and the little of HTTP there is on it.

    These are asyncio's streams, because 20,000 calls through those of anyio take half as long again.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self._reader, self._writer, self._head = reader, writer, head
        self.session = ""

    async def ask(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a message; return all that comes back for it."""
        body = orjson.dumps(message)
        head = f"{self._head}{self.session}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        headers = dict(line.lower().split(": ", 1) for line in lines)
        assert status.split(" ")[1] in ("200", "202"), status
        if "mcp-session-id" in headers:
            # Names were put in lower case for this; the id is as it came.
            [given] = [line.partition(": ")[2] for line in lines if line.lower().startswith("mcp-session-id")]
            self.session = f"Mcp-Session-Id: {given}\r\n"
        if "content-length" in headers:
            whole = await self._reader.readexactly(int(headers["content-length"]))
            return [orjson.loads(whole)] if whole else []
        events = await self._chunks()
        return [orjson.loads(event.partition(b"data: ")[2]) for event in events.split(b"\n\n") if event]

    async def _chunks(self) -> bytes:
        whole = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            whole += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
        return whole


@asynccontextmanager
async def line(gateway: GatewayProcess, key: str, more: str = "") -> AsyncGenerator[Line]:
    place = urlsplit(gateway.url)
    head = f"POST /mcp HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {key}\r\n"
    kinds = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        yield Line(reader, writer, head + kinds + more)
    finally:
        writer.close()
        await writer.wait_closed()


async def introduce(own: Line) -> None:
    who = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "many", "version": "1"}}
    [welcome] = await own.ask({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who})
    assert welcome["result"]["protocolVersion"] == LEGACY
    assert await own.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}) == []


async def call(own: Line, number: int, turn: int, heard: Counter[str]) -> None:
    """Call once; every word of the answer must be about this very call."""
    secret = f"secret {number * 7919} of client {number}, call {turn}"
    meta: dict[str, Any] = {} if own.session else dict(ENVELOPE)
    if (number + turn) % 4 == 0:
        meta["progressToken"] = 1
    params = {"name": TOOL, "arguments": {"secret": secret}, "_meta": meta}
    said = await own.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    *before, answer = said
    assert (answer["id"], answer["result"]["isError"]) == (1, False), answer
    heard["answers"] += 1
    heard["crossed"] += answer["result"]["content"][0]["text"] != secret
    heard["out of order"] += answer["result"]["_meta"]["shuffling/overtaken"] > 0
    for each in before:
        assert each["params"]["progressToken"] == 1
        heard["steps"] += 1
        heard["crossed"] += each["params"]["message"] != secret
    heard["lost"] += len(before) != ("progressToken" in meta)


@pytest.mark.no_cover
@pytest.mark.check(4)
async def test_answers_reach_only_their_caller(tmp_path: Path) -> None:
    servers = {"mixed": stdio(*PYTHON, "tests.servers.shuffling")}
    heard: Counter[str] = Counter()

    async def live(number: int, key: str) -> None:
        modern = number % 2 == 0
        async with line(gateway, key, MODERN_HEAD if modern else "") as own:
            if not modern:
                await introduce(own)
            for turn in range(CALLS):
                await call(own, number, turn, heard)

    async with (
        gateway_process(
            tmp_path, config(servers, limits=LIMITS), demo=False, log=tmp_path / "log"
        ) as gateway,
        operator_of(gateway) as operator,
    ):
        await operator.answering("mixed:keep", {"secret": "first"})
        keys = [(await operator.post("/api/keys", {"name": f"client-{n}"}))[1]["key"] for n in range(KEYS)]
        async with anyio.create_task_group() as tasks:
            for number in range(CLIENTS):
                tasks.start_soon(live, number, keys[number % KEYS])
    assert (heard["answers"], heard["steps"]) == (CLIENTS * CALLS, CLIENTS * CALLS // 4)
    assert heard["out of order"] > CALLS, "or this would prove little"
    assert (heard["crossed"], heard["lost"]) == (0, 0)
