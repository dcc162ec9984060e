"""The hostile server over HTTP: bodies and event streams that never end, never fit or never make sense."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.servers.plain import spelled

if TYPE_CHECKING:
    from tests.servers.hostile import Hostile

NEXT = b"\n"


class Handler(BaseHTTPRequestHandler):
    """One request; a spoilt answer has no length and ends with its connection."""

    protocol_version = "HTTP/1.1"
    hostile: "Hostile"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message or "method" not in message:
            self._whole(202, b"")
        elif self.hostile.spoils(message):
            self._spoilt(message)
        else:
            self._whole(200, spelled(self.hostile.answer(message)))

    def do_GET(self) -> None:
        self._whole(405, b"")

    def do_DELETE(self) -> None:
        self._whole(200, b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _whole(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _spoilt(self, message: Any) -> None:
        events = bool(self.hostile.arguments(message).get("events"))
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if events else "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            self._write(message, b"data: " if events else b"")
        except OSError:
            # They had enough of it, which is what they should do.
            return

    def _write(self, message: Any, mark: bytes) -> None:
        self.wfile.write(mark)
        for piece in self.hostile.pieces(message):
            self.wfile.write(NEXT + NEXT + mark if piece == NEXT and mark else piece)
        self.wfile.write(NEXT + NEXT)


def serve(hostile: "Hostile") -> None:
    """Print the port, then serve until standard input ends."""
    Handler.hostile = hostile
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
