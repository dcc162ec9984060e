"""A caller of a gateway process that knows which statuses it expects, and keeps what it did not expect."""

import itertools
import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio

from tests.gateway_process import GatewayProcess

MODERN, LEGACY = "2026-07-28", "2025-06-18"
MOST_KEPT = 50
"""How many unexpected answers are kept with their beginning; all are counted."""
MOST_TRIES = 10
_CLIENT = {"name": "soak", "version": "1"}
_BOTH = {"Accept": "application/json, text/event-stream"}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}


class Tally:
    """What was done how often, and what went otherwise than expected."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.unexpected: Counter[str] = Counter()
        self.waits = 0
        """How often a caller was refused with Retry-After because the store was slow."""

    @property
    def errors(self) -> int:
        """How much went otherwise than expected."""
        return self.unexpected.total()

    def error(self, text: str) -> None:
        """Note something that should not have happened."""
        short = text[:300]
        self.unexpected[short if len(self.unexpected) < MOST_KEPT else "others"] += 1


class Caller:
    """Sends requests over connections that are kept, as one credential."""

    def __init__(self, gateway: GatewayProcess, session: aiohttp.ClientSession, tally: Tally) -> None:
        self.gateway, self.session, self.tally = gateway, session, tally

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        expect: tuple[int, ...] = (200,),
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send one request; the body of the answer, which is noted where its status is not expected."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        accepted = _BOTH if path.endswith("/mcp") else {"Accept": "application/json"}
        given = {"Content-Type": "application/json", **accepted, **(headers or {})}
        for tries in itertools.count(1):
            async with self.session.request(
                method, self.gateway.url + path, data=data, headers=given
            ) as answer:
                text = await answer.text()
            if answer.status in expect:
                return _read(text), answer.headers
            if tries == MOST_TRIES or not _told_to_wait(answer, text):
                self.tally.error(f"{method} {path}: {answer.status} {text}")
                return _read(text), answer.headers
            self.tally.waits += 1
            await anyio.sleep(float(answer.headers["Retry-After"]))
        return None

    async def call(
        self, name: str, arguments: Any, *, expect: tuple[int, ...] = (200,), user: str = "", **more: Any
    ) -> Any:
        """Call a tool over REST."""
        headers = {"X-User-Id": user} if user else None
        body = {"name": name, "arguments": arguments, **more}
        return (await self.ask("POST", "/api/tools/execute", body, expect=expect, headers=headers))[0]

    async def modern(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request of the era without sessions."""
        message, headers = modern_message(method, params)
        return (await self.ask("POST", "/mcp", message, headers=headers))[0]

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Open a stream of events and close it when the block ends."""
        given = {"Content-Type": "application/json", "Accept": "text/event-stream", **(headers or {})}
        data = None if body is None else json.dumps(body).encode()
        async with self.session.request(method, self.gateway.url + path, data=data, headers=given) as answer:
            if answer.status != 200:
                self.tally.error(f"{method} {path}: {answer.status} {await answer.text()}")
            yield answer


def modern_message(method: str, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a request of the era without sessions, and the headers that mirror it."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    headers = {**_BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return message, headers


def _told_to_wait(answer: aiohttp.ClientResponse, text: str) -> bool:
    """Whether nothing was done because the store was slow, or the first of two calls is still stored."""
    if "Retry-After" not in answer.headers:
        return False
    error = _read(text).get("error", {})
    return error.get("code") in {"OVERLOADED", "IN_PROGRESS", "SOURCE_DOWN"}


def _read(text: str) -> Any:
    """Return the last JSON value of an answer, which may be a stream of events."""
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
    try:
        return json.loads(lines[-1])
    except ValueError:
        return text


@asynccontextmanager
async def caller(gateway: GatewayProcess, tally: Tally, key: str | None = None) -> AsyncGenerator[Caller]:
    """Open a caller, as the operator unless a key is given."""
    headers = gateway.admin if key is None else {"Authorization": f"Bearer {key}"}
    timeout = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, connector=connector) as session:
        yield Caller(gateway, session, tally)
