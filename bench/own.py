"""A raw client where there is no wrk: `python -m bench.own PORT CONNECTIONS SECONDS`, request on stdin."""

import json
import re
import selectors
import socket
import sys
import time
from itertools import count

from bench.asking import FIRST_ID

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_CHUNK = 1 << 18
_numbers = count(int(FIRST_ID))


class Line:
    """One connection with one request under way at a time."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._numbered = FIRST_ID.encode() in request
        self._got, self._ends = b"", 0
        self.status, self.began = 0, 0.0

    def send(self) -> None:
        self._got, self._ends = b"", 0
        self.began = time.perf_counter()
        request = self._request
        # In a session no two calls may share an id.
        self.socket.sendall(
            request.replace(FIRST_ID.encode(), b"%d" % next(_numbers)) if self._numbered else request
        )

    def is_done(self) -> bool:
        """Read what has come, and say whether the answer is whole."""
        part = self.socket.recv(_CHUNK)
        if not part:
            raise ConnectionError("the server closed a connection in the middle of the load")
        self._got += part
        if not self._ends:
            self._open()
        if self._ends < 0:
            return self._got.endswith(_LAST_CHUNK)
        return 0 < self._ends <= len(self._got)

    def _open(self) -> None:
        """Read in the head where the answer ends: after so many bytes or, below zero, with a last chunk."""
        head, end, _ = self._got.partition(b"\r\n\r\n")
        if not end:
            return
        self.status = int(head[9:12])
        length = _LENGTH.search(head)
        if length is not None:
            self._ends = len(head) + len(end) + int(length[1])
        elif _CHUNKED.search(head):
            self._ends = -1
        else:
            raise ConnectionError("the server does not say how long its answer is")


def drive(port: int, connections: int, seconds: float, request: bytes) -> dict[str, float]:
    """Keep so many connections busy for so long; latencies are in milliseconds."""
    took: list[float] = []
    failures = 0
    with selectors.DefaultSelector() as selector:
        lines = [Line(port, request) for _ in range(connections)]
        began = time.perf_counter()
        for line in lines:
            selector.register(line.socket, selectors.EVENT_READ, line)
            line.send()
        now = began
        while now - began < seconds:
            for key, _ in selector.select(seconds):
                line = key.data
                if line.is_done():
                    now = time.perf_counter()
                    took.append(now - line.began)
                    failures += not 200 <= line.status < 300
                    line.send()
            now = time.perf_counter()
        for line in lines:
            line.socket.close()
    took.sort()
    return {
        "calls": len(took),
        "seconds": now - began,
        "p50": _at(took, 0.5) * 1000,
        "p99": _at(took, 0.99) * 1000,
        "failures": failures,
    }


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def main(port: str, connections: str, seconds: str) -> None:
    request = sys.stdin.buffer.read()
    print(json.dumps(drive(int(port), int(connections), float(seconds), request)))


if __name__ == "__main__":
    main(*sys.argv[1:])
