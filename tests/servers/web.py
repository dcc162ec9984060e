"""A plain MCP server on the web, from the standard library alone: `web.py http|sse PORT [TOOL...]`.

Over HTTP it gives every client a session and forgets all of them when it restarts.
"""

import queue
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import loads
from typing import Any
from uuid import uuid4

from tests.servers.plain import Server, Tool, spelled

SESSION = "Mcp-Session-Id"
PATHS = {"http": "/mcp", "sse": "/sse"}


def _hold(arguments: Any) -> Any:
    time.sleep(arguments.get("seconds", 60))
    return arguments


def _whose(_: Any) -> Any:
    return {"from": "web"}


TOOLS = {
    "echo": Tool("Answer with the arguments.", dict, query=True),
    "hold": Tool("Answer after some seconds.", _hold, slow=True),
}


class Web(ThreadingHTTPServer):
    """What all connections share: the tools, and the sessions of this process."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, server: Server) -> None:
        self.mcp = server
        self.sessions: dict[str, queue.Queue[bytes]] = {}
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error here."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    @property
    def web(self) -> Web:
        """The server, as what it is."""
        assert isinstance(self.server, Web)
        return self.server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""

    def do_GET(self) -> None:
        """Open the event stream of HTTP+SSE."""
        if self.path != PATHS["sse"]:
            return self._respond(405)
        session = uuid4().hex
        events = self.web.sessions[session] = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self._event("endpoint", f"/messages?{session}".encode())
        while True:
            self._event("message", events.get())

    def do_DELETE(self) -> None:
        """End a session."""
        self.web.sessions.pop(self.headers.get(SESSION, ""), None)
        self._respond(200)

    def do_POST(self) -> None:
        """Answer a message in the response, or on the stream of its session."""
        message = loads(self.rfile.read(int(self.headers["Content-Length"])))
        stream = self.path.partition("?")[2]
        if stream:
            return self._pushed(message, stream)
        session = self.headers.get(SESSION)
        if message.get("method") == "initialize":
            session = uuid4().hex
            self.web.sessions[session] = queue.Queue()
        elif session is None:
            return self._respond(400, b"no session")
        elif session not in self.web.sessions:
            return self._respond(404)
        if "id" not in message:
            return self._respond(202)
        return self._respond(200, spelled(self.web.mcp.answer(message)), {SESSION: session})

    def _pushed(self, message: Any, stream: str) -> None:
        if stream not in self.web.sessions:
            return self._respond(404)
        self._respond(202)
        if "id" in message:
            self.web.sessions[stream].put(spelled(self.web.mcp.answer(message)))
        return None

    def _respond(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _event(self, kind: str, data: bytes) -> None:
        self.wfile.write(b"event: %b\ndata: %b\n\n" % (kind.encode(), data))
        self.wfile.flush()


def main(transport: str, port: str, *names: str) -> None:
    tools = {name: Tool("Answer with who was called.", _whose) for name in names} or TOOLS
    if transport not in PATHS:
        sys.exit(f"no transport {transport}")
    Web(int(port), Server("web", tools)).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
