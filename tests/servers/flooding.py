"""A server that says far more than it is asked, over stdio, HTTP or HTTP+SSE; its one tool works.

    python -m tests.servers.flooding stdio|web KIND COUNT

KIND is a key of KINDS, COUNT how many messages are sent once its tools are listed; 0 is for ever. `web` says
its port in a line, and serves both transports: the paths are /mcp and /sse.
"""

import json
import queue
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

AT_ONCE = 100
KINDS: dict[str, Any] = {
    "log": {"method": "notifications/message", "params": {"level": "error", "data": "x" * 100}},
    "progress": {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
    "changed": {"method": "notifications/tools/list_changed"},
    "ping": {"id": "p", "method": "ping"},
    "answers": {"id": 987_654_321, "result": {}},
    "long": {"method": "notifications/message", "params": {"level": "error", "data": "x" * 200_000}},
    "none": None,
}
TOOL = {"name": "say", "inputSchema": {"type": "object"}}
STARTED = threading.Event()
"""Set when the tools are listed."""


def answer(message: Any) -> Any:
    """The answer to a request; None for what has none."""
    if "id" not in message or "method" not in message:
        return None
    method, result = message["method"], dict[str, Any]()
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        who = {"name": "flooding", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": who}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
        STARTED.set()
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "said"}]}
    elif method != "ping":
        error = {"code": -32601, "message": "there is no such method"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def spell(message: Any) -> bytes:
    return json.dumps(message).encode()


def pieces(before: bytes, after: bytes) -> Iterator[bytes]:
    """Unsolicited messages, in chunks."""
    kind, count = KINDS[sys.argv[2]], int(sys.argv[3])
    if kind is None:
        return
    one = before + spell({"jsonrpc": "2.0", **kind}) + after
    sent = 0
    while not count or sent < count:
        now = min(AT_ONCE, count - sent) if count else AT_ONCE
        yield one * now
        sent += now


def over_stdio() -> None:
    writing = threading.Lock()

    def put(data: bytes) -> None:
        with writing:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def flood() -> None:
        STARTED.wait()
        for piece in pieces(b"", b"\n"):
            put(piece)

    threading.Thread(target=flood, daemon=True).start()
    for line in sys.stdin.buffer:
        found = answer(json.loads(line))
        if found is not None:
            put(spell(found) + b"\n")


class Handler(BaseHTTPRequestHandler):
    """Streamable HTTP at /mcp; at /sse the transport before it, whose answers come on its one stream."""

    protocol_version = "HTTP/1.1"
    answers: "queue.Queue[bytes]" = queue.Queue()

    def do_POST(self) -> None:
        found = answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = b"" if found is None else spell(found)
        if self.path == "/post":
            self.answers.put(body)
            body = b""
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            self._stream()
        except OSError:  # they had enough of it
            return

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _stream(self) -> None:
        if self.path == "/sse":
            self.wfile.write(b"event: endpoint\ndata: /post\n\n")
        flood = pieces(b"data: ", b"\n\n")
        over = False
        while True:
            wait = over or not STARTED.is_set()
            try:
                said = self.answers.get(timeout=0.05) if wait else self.answers.get_nowait()
            except queue.Empty:
                said = b""
            if said:
                self.wfile.write(b"data: " + said + b"\n\n")
            elif STARTED.is_set() and not over:
                piece = next(flood, b"")
                over = not piece
                self.wfile.write(piece)
            elif over:
                self.wfile.write(b": still here\n\n")


def over_web() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    over_stdio() if sys.argv[1] == "stdio" else over_web()
