"""HTTP requests that the benchmark sends, each with the text that a correct response contains."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

HOST = "127.0.0.1"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
TEXT = (
    "A crane lifts the crate from the quay and sets it down beside the others. " * 2
    + "Then it rests until the next ship."
)
"""Argument of the echo tool; as JSON, the arguments have about 200 bytes."""
FIRST_ID = "1000000000"
"""JSON-RPC id that load generators replace by increasing numbers, as ids must be unique in a session."""

_JSON_HEADERS = {"Content-Type": "application/json"}
_MCP_HEADERS = {**_JSON_HEADERS, "Accept": "application/json, text/event-stream"}
_CLIENT_INFO = {"name": "bench", "version": "1.0.0"}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT_INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ARGUMENTS = {"text": TEXT}
_SESSION = "Mcp-Session-Id"
_LAST_TOOL = b"look_up_0998"
_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """An HTTP request; the body of every correct response contains `expected`."""

    path: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    expected: bytes = TEXT.encode()

    def with_key(self, key: str) -> "Request":
        """Return the request authenticated with a key."""
        return self.with_headers(Authorization=f"Bearer {key}")

    def with_headers(self, **more: str) -> "Request":
        """Return the request with additional headers."""
        renamed = {name.replace("_", "-"): value for name, value in more.items()}
        return replace(self, headers={**self.headers, **renamed})

    def encode(self, port: int) -> bytes:
        """Return the request as bytes of HTTP/1.1."""
        headers = {"Host": f"{HOST}:{port}", **self.headers}
        if self.body:
            headers["Content-Length"] = str(len(self.body))
        lines = (
            f"{self.method} {self.path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers.items()),
        )
        return "\r\n".join((*lines, "", "")).encode() + self.body


class UnexpectedResponse(Exception):
    """A server responds, but not with the expected content."""


def send(port: int, request: Request) -> bytes:
    """Send a request once; return the body of the response or raise UnexpectedResponse."""
    return _exchange(port, request)[1]


def _exchange(port: int, request: Request) -> tuple[http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(HOST, port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request(request.method, request.path, request.body or None, dict(request.headers))
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if not 200 <= response.status < 300 or request.expected not in body:
        excerpt = body[:300].decode("utf-8", "replace")
        raise UnexpectedResponse(
            f"{request.method} {request.path} returned status {response.status}: {excerpt}"
        )
    return response.headers, body


def _post(path: str, content: Mapping[str, Any], headers: Mapping[str, str] = _JSON_HEADERS) -> Request:
    return Request(path=path, headers=headers, body=json.dumps(content, separators=(",", ":")).encode())


def rest_call(name: str = "echo") -> Request:
    """Call an echo tool over REST."""
    return _post("/api/tools/execute", {"name": name, "arguments": _ARGUMENTS})


def rest_list() -> Request:
    """List the tools of the context that contains half of them."""
    return Request(path="/api/tools?context=bench", method="GET", expected=b'"tools":[')


def rest_search() -> Request:
    """Search 10,000 tools for five words that nearly all contain, the most expensive case."""
    path = "/api/tools?context=default&q=look+up+how+many+parts&limit=10"
    return Request(path=path, method="GET", expected=b"look-up-0000")


def hub_call(server: str) -> Request:
    """Call the echo tool through mcp-hub's REST API: its MCP responses use another connection."""
    return _post("/api/servers/tools", {"server_name": server, "tool": "echo", "arguments": _ARGUMENTS})


def hub_list() -> Request:
    """List the 1,000 tools of the server behind mcp-hub through its REST API."""
    return Request(path="/api/servers", method="GET", expected=_LAST_TOOL)


def _modern(method: str, params: Mapping[str, Any]) -> Request:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    return _post("/mcp", message, _MCP_HEADERS).with_headers(MCP_Protocol_Version=MODERN, Mcp_Method=method)


def mcp_call(name: str = "echo") -> Request:
    """Call an echo tool with MCP 2026-07-28: one stateless POST."""
    return _modern("tools/call", {"name": name, "arguments": _ARGUMENTS}).with_headers(Mcp_Name=name)


def mcp_list() -> Request:
    """List 1,000 tools with MCP 2026-07-28."""
    return replace(_modern("tools/list", {}), expected=_LAST_TOOL)


def _legacy(method: str, params: Mapping[str, Any]) -> Request:
    message = {"jsonrpc": "2.0", "id": int(FIRST_ID), "method": method, "params": params}
    return _post("/mcp", message, _MCP_HEADERS)


def initialize_request() -> Request:
    """Return the `initialize` request of an MCP 2025-11-25 session."""
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT_INFO}
    return replace(_legacy("initialize", params), expected=b'"protocolVersion"')


def legacy_call(name: str = "echo") -> Request:
    """Call an echo tool with MCP 2025-11-25."""
    return _legacy("tools/call", {"name": name, "arguments": _ARGUMENTS})


def legacy_list() -> Request:
    """List 1,000 tools with MCP 2025-11-25."""
    return replace(_legacy("tools/list", {}), expected=_LAST_TOOL)


def with_session(port: int, request: Request) -> Request:
    """Open an MCP session and return the request with the headers of that session."""
    first = replace(initialize_request(), headers=request.headers)
    session = _exchange(port, first)[0].get(_SESSION)
    if session is None:
        raise UnexpectedResponse(f"{request.path} returned no session id")
    headers = {**request.headers, _SESSION: session, "MCP-Protocol-Version": LEGACY}
    initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    send(port, replace(first, headers=headers, body=initialized, expected=b""))
    return replace(request, headers=headers)


def for_echo_server(request: Request) -> Request:
    """Return the request for the echo server, whose responses consist of the letter x."""
    return replace(request, expected=b"x")
