"""MCP messages written by hand, for what no client library would send."""

import json
from typing import Any

import httpx2

from toolcrib.mcp.revisions import MODERN

LEGACY_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    named = {} if name is None else {"mcp-name": name}
    return {**LEGACY_HEADERS, "mcp-protocol-version": MODERN, "mcp-method": method, **named}


def message(method: str, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def answer_of(response: httpx2.Response) -> dict[str, Any]:
    """Read the JSON-RPC answer, plain or as the last event of a stream."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    last = [line for line in response.text.splitlines() if line.startswith("data: ")][-1]
    return json.loads(last.removeprefix("data: "))


async def open_session(http: httpx2.AsyncClient, url: str) -> str:
    client = {"name": "raw", "version": "1"}
    opening = message("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    response = await http.post(url, json=opening, headers=LEGACY_HEADERS)
    assert answer_of(response)["result"]["serverInfo"]["name"] == "toolcrib"
    session = response.headers["mcp-session-id"]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    done = await http.post(url, json=ready, headers={**LEGACY_HEADERS, "mcp-session-id": session})
    assert done.status_code == 202
    return session


async def call(
    http: httpx2.AsyncClient, url: str, session: str, name: str, **arguments: Any
) -> httpx2.Response:
    headers = {**LEGACY_HEADERS, "mcp-session-id": session}
    return await http.post(url, json=message("tools/call", name=name, arguments=arguments), headers=headers)


async def ask(http: httpx2.AsyncClient, url: str, sent: dict[str, Any], **more: str) -> httpx2.Response:
    """Send a modern request with the headers that belong to it."""
    headers = {**modern_headers(sent["method"], sent["params"].get("name")), **more}
    return await http.post(url, json=sent, headers=headers)
