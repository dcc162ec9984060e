"""The requests the bench sends: what is asked, and by what a right answer is known."""

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
"""With its name and quotes about two hundred bytes of arguments."""
FIRST_ID = "1000000000"
"""Where this stands in a request the load counts up from it: in a session no two calls may share an id."""

_JSON = {"Content-Type": "application/json"}
_BOTH = {**_JSON, "Accept": "application/json, text/event-stream"}
_CLIENT = {"name": "bench", "version": "1.0.0"}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ARGUMENTS = {"text": TEXT}
_SESSION = "Mcp-Session-Id"
_LAST_TOOL = b"look_up_0998"
_PATIENCE = 30.0


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request; `holds` stands in the body of every right answer."""

    path: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    holds: bytes = TEXT.encode()

    def signed(self, key: str) -> "Ask":
        """Return the same request, sent by the owner of a key."""
        return self.headed(Authorization=f"Bearer {key}")

    def headed(self, **more: str) -> "Ask":
        """Return the same request with more headers."""
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return replace(self, headers={**self.headers, **named})

    def raw(self, port: int) -> bytes:
        """Spell it as it goes over the wire."""
        headers = {"Host": f"{HOST}:{port}", **self.headers}
        if self.body:
            headers["Content-Length"] = str(len(self.body))
        lines = (
            f"{self.method} {self.path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers.items()),
        )
        return "\r\n".join((*lines, "", "")).encode() + self.body


class WrongAnswer(Exception):
    """A server answers, but not with what was asked for."""


def ask(port: int, request: Ask) -> bytes:
    """Send a request once and return the body of its answer, which must be right."""
    return _asked(port, request)[1]


def _asked(port: int, request: Ask) -> tuple[http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(HOST, port, timeout=_PATIENCE)
    try:
        connection.request(request.method, request.path, request.body or None, dict(request.headers))
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if not 200 <= answer.status < 300 or request.holds not in body:
        told = body[:300].decode("utf-8", "replace")
        raise WrongAnswer(f"{request.method} {request.path} was answered {answer.status}: {told}")
    return answer.headers, body


def _post(path: str, content: Mapping[str, Any], headers: Mapping[str, str] = _JSON) -> Ask:
    return Ask(path=path, headers=headers, body=json.dumps(content, separators=(",", ":")).encode())


def rest_call(name: str = "echo") -> Ask:
    """Call an echo tool over REST."""
    return _post("/api/tools/execute", {"name": name, "arguments": _ARGUMENTS})


def rest_list() -> Ask:
    """List the tools of the context that holds half of them."""
    return Ask(path="/api/tools?context=bench", method="GET", holds=b'"tools":[')


def rest_search() -> Ask:
    """Search ten thousand tools for five words that nearly all of them have, which is the dearest search."""
    path = "/api/tools?context=default&q=look+up+how+many+parts&limit=10"
    return Ask(path=path, method="GET", holds=b"look-up-0000")


def hub_call(server: str) -> Ask:
    """Call the echo of a server over mcp-hub's REST, which answers in one piece as its MCP does not."""
    return _post("/api/servers/tools", {"server_name": server, "tool": "echo", "arguments": _ARGUMENTS})


def hub_list() -> Ask:
    """List the thousand tools of mcp-hub's server over its REST."""
    return Ask(path="/api/servers", method="GET", holds=_LAST_TOOL)


def _modern(method: str, params: Mapping[str, Any]) -> Ask:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    return _post("/mcp", message, _BOTH).headed(MCP_Protocol_Version=MODERN, Mcp_Method=method)


def mcp_call(name: str = "echo") -> Ask:
    """Call an echo tool over MCP of the modern era: one POST that carries everything."""
    return _modern("tools/call", {"name": name, "arguments": _ARGUMENTS}).headed(Mcp_Name=name)


def mcp_list() -> Ask:
    """List a thousand tools over MCP of the modern era."""
    return replace(_modern("tools/list", {}), holds=_LAST_TOOL)


def _legacy(method: str, params: Mapping[str, Any]) -> Ask:
    message = {"jsonrpc": "2.0", "id": int(FIRST_ID), "method": method, "params": params}
    return _post("/mcp", message, _BOTH)


def opening() -> Ask:
    """Open a session of the handshake era."""
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
    return replace(_legacy("initialize", params), holds=b'"protocolVersion"')


def legacy_call(name: str = "echo") -> Ask:
    """Call an echo tool over MCP of the handshake era."""
    return _legacy("tools/call", {"name": name, "arguments": _ARGUMENTS})


def legacy_list() -> Ask:
    """List a thousand tools over MCP of the handshake era."""
    return replace(_legacy("tools/list", {}), holds=_LAST_TOOL)


def in_session(port: int, request: Ask) -> Ask:
    """Open a session for a request of the handshake era, and return it as it is sent there."""
    first = replace(opening(), headers=request.headers)
    session = _asked(port, first)[0].get(_SESSION)
    if session is None:
        raise WrongAnswer(f"{request.path} opened no session")
    headers = {**request.headers, _SESSION: session, "MCP-Protocol-Version": LEGACY}
    done = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    ask(port, replace(first, headers=headers, body=done, holds=b""))
    return replace(request, headers=headers)


def plain_bytes(like: Ask) -> Ask:
    """Return the same request for the server that answers bytes without a meaning."""
    return replace(like, holds=b"x")
