"""The requests the bench sends: what is asked, and by what a right answer is known."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

HOST = "127.0.0.1"
MODERN = "2026-07-28"
TEXT = (
    "A crane lifts the crate from the quay and sets it down beside the others. " * 2
    + "Then it rests until the next ship."
)
"""With its name and quotes about two hundred bytes of arguments."""

_JSON = {"Content-Type": "application/json"}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
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
        return replace(self, headers={**self.headers, "Authorization": f"Bearer {key}"})

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
    return body


def _post(path: str, content: Mapping[str, Any], **more: str) -> Ask:
    headers = {**_JSON, **{name.replace("_", "-"): value for name, value in more.items()}}
    return Ask(path=path, headers=headers, body=json.dumps(content, separators=(",", ":")).encode())


def rest_call(name: str = "echo") -> Ask:
    """Call an echo tool over REST."""
    return _post("/api/tools/execute", {"name": name, "arguments": {"text": TEXT}})


def upstream_call() -> Ask:
    """Call the echo of an MCP server itself."""
    params = {"name": "echo", "arguments": {"text": TEXT}, "_meta": _META}
    return _post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def mcp_call() -> Ask:
    """Call the echo tool over MCP of the modern era: one POST that carries everything."""
    params = {"name": "echo", "arguments": {"text": TEXT}, "_meta": _META}
    return _post(
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        Accept="application/json, text/event-stream",
        MCP_Protocol_Version=MODERN,
        Mcp_Method="tools/call",
        Mcp_Name="echo",
    )


def rest_list() -> Ask:
    """List the tools of the context that holds half of them."""
    return Ask(path="/api/tools?context=half", method="GET", holds=b'"tools":[')


def plain_bytes(like: Ask) -> Ask:
    """Return the same request for the server that answers bytes without a meaning."""
    return replace(like, holds=b"x")
