"""Clients of both eras of MCP that listen for news of their lists, over real connections."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from anyio.abc import TaskStatus

from tests.contract.asking import LEGACY, MODERN

_CLIENT = {"name": "ear", "version": "1"}
_ACCEPT = {"accept": "application/json, text/event-stream"}
_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class ListListener:
    """One client: what it was told, and its list as it is now."""

    def __init__(self, era: str, http: httpx2.AsyncClient) -> None:
        self.era, self._http = era, http
        self._headers = dict(_ACCEPT)
        self.told: list[str] = []

    async def begin(self) -> None:
        """Shake hands, where that is done."""
        if self.era == "legacy":
            hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
            reply = await self._post("initialize", hello)
            self._headers |= {
                "mcp-session-id": reply.headers["mcp-session-id"],
                "mcp-protocol-version": LEGACY,
            }

    async def listen(self, *, task_status: TaskStatus[None]) -> None:
        """Note what is told until cancelled; has begun once the gateway says so."""
        async with self._stream() as stream:
            assert stream.status_code == 200
            if self.era == "legacy":
                task_status.started()
            async for line in stream.aiter_lines():
                method = json.loads(line[5:]).get("method", "") if line.startswith("data:") else ""
                if method == "notifications/subscriptions/acknowledged":
                    task_status.started()
                elif method:
                    self.told.append(method)

    async def names(self) -> set[str]:
        """Return the names of the apps' tools in the list."""
        reply = await self._post("tools/list", {})
        text = reply.text if reply.text.startswith("{") else reply.text.partition("data: ")[2]
        listed = json.loads(text)
        if "error" in listed:
            return set()
        return {tool["name"] for tool in listed["result"]["tools"] if tool["name"].startswith("com_")}

    async def changed(self) -> None:
        """Wait until the next change of the list has been told, and take it back."""
        with anyio.fail_after(10):
            while "notifications/tools/list_changed" not in self.told:  # noqa: ASYNC110 - another task notes
                await anyio.sleep(0.005)
        self.told.remove("notifications/tools/list_changed")

    @asynccontextmanager
    async def _stream(self) -> AsyncGenerator[httpx2.Response]:
        if self.era == "legacy":
            async with self._http.stream("GET", "/mcp", headers=self._headers) as stream:
                yield stream
            return
        body = self._message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        async with self._http.stream("POST", "/mcp", json=body, headers=self._named(body)) as stream:
            yield stream

    async def _post(self, method: str, params: dict[str, Any]) -> httpx2.Response:
        body = self._message(method, params)
        return await self._http.post("/mcp", json=body, headers=self._named(body))

    def _message(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        meta = {"_meta": _META} if self.era == "modern" else {}
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **meta}}

    def _named(self, body: dict[str, Any]) -> dict[str, str]:
        if self.era == "legacy":
            return self._headers
        return self._headers | {"mcp-protocol-version": MODERN, "mcp-method": body["method"]}


@asynccontextmanager
async def list_listeners(url: str, key: str) -> AsyncGenerator[list[ListListener]]:
    """Open a client of each era that listens with a key."""
    authorization = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(base_url=url, headers=authorization, timeout=None) as http,
        anyio.create_task_group() as tasks,
    ):
        opened = [ListListener(era, http) for era in ("legacy", "modern")]
        for ear in opened:
            await ear.begin()
            await tasks.start(ear.listen)
        yield opened
        tasks.cancel_scope.cancel()
