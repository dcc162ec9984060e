"""Load client in Python, used if wrk is missing: `python -m bench.load_client PORT CONNECTIONS SECONDS`.

Reads the HTTP request to repeat from stdin and prints the result as one line of JSON.
"""

import json
import re
import selectors
import socket
import sys
import time
from itertools import count

from bench.requests import FIRST_ID

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_READ_BYTES = 1 << 18
_request_ids = count(int(FIRST_ID))


class Connection:
    """An HTTP connection that has one request in flight at a time."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._has_request_id = FIRST_ID.encode() in request
        self._received, self._response_end = b"", 0
        self.status, self.sent_at = 0, 0.0

    def send(self) -> None:
        self._received, self._response_end = b"", 0
        self.sent_at = time.perf_counter()
        request = self._request
        # JSON-RPC ids must be unique within an MCP session.
        self.socket.sendall(
            request.replace(FIRST_ID.encode(), b"%d" % next(_request_ids))
            if self._has_request_id
            else request
        )

    def read_response(self) -> bool:
        """Read available bytes; return whether the response is complete."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the server closed a connection during the load")
        self._received += data
        if not self._response_end:
            self._parse_header()
        if self._response_end < 0:
            return self._received.endswith(_LAST_CHUNK)
        return 0 < self._response_end <= len(self._received)

    def _parse_header(self) -> None:
        """Set the status and the end of the response: its size, or -1 if it is chunked."""
        head, end, _ = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        self.status = int(head[9:12])
        length = _LENGTH.search(head)
        if length is not None:
            self._response_end = len(head) + len(end) + int(length[1])
        elif _CHUNKED.search(head):
            self._response_end = -1
        else:
            raise ConnectionError("the response has neither Content-Length nor chunked encoding")


def run_load(port: int, connections: int, seconds: float, request: bytes) -> dict[str, float]:
    """Send requests on all connections for the given time; latencies are returned in milliseconds."""
    latencies: list[float] = []
    failures = 0
    with selectors.DefaultSelector() as selector:
        open_connections = [Connection(port, request) for _ in range(connections)]
        started_at = time.perf_counter()
        for connection in open_connections:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send()
        now = started_at
        while now - started_at < seconds:
            for key, _ in selector.select(seconds):
                connection = key.data
                if connection.read_response():
                    now = time.perf_counter()
                    latencies.append(now - connection.sent_at)
                    failures += not 200 <= connection.status < 300
                    connection.send()
            now = time.perf_counter()
        for connection in open_connections:
            connection.socket.close()
    latencies.sort()
    return {
        "calls": len(latencies),
        "seconds": now - started_at,
        "p50": _percentile(latencies, 0.5) * 1000,
        "p99": _percentile(latencies, 0.99) * 1000,
        "failures": failures,
    }


def _percentile(values: list[float], quantile: float) -> float:
    return values[min(int(len(values) * quantile), len(values) - 1)] if values else 0.0


def main(port: str, connections: str, seconds: str) -> None:
    request = sys.stdin.buffer.read()
    print(json.dumps(run_load(int(port), int(connections), float(seconds), request)))


if __name__ == "__main__":
    main(*sys.argv[1:])
