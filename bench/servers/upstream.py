"""An MCP server that costs as little as one can: an echo over a pipe or over HTTP, on a core of its own."""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any, cast

import orjson

MODERN = "2026-07-28"
TOOL = {
    "name": "echo",
    "description": "Say the text again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
LASTING = {"ttlMs": 60_000, "cacheScope": "private"}


def answer(message: dict[str, Any]) -> bytes | None:
    """Answer one message of the era without a handshake; a notification has no answer."""
    if "id" not in message:
        return None
    method = message["method"]
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "tools/call":
        said = message["params"]["arguments"]["text"]
        reply["result"] = {"resultType": "complete", "content": [{"type": "text", "text": said}]}
    elif method == "tools/list":
        reply["result"] = {"resultType": "complete", "tools": [TOOL], **LASTING}
    elif method == "server/discover":
        reply["result"] = {
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {}},
            **LASTING,
        }
    else:
        reply["error"] = {"code": -32601, "message": "There is no such method here."}
    return orjson.dumps(reply)


def over_a_pipe() -> None:
    for line in sys.stdin.buffer:
        said = answer(orjson.loads(line))
        if said is not None:
            sys.stdout.buffer.write(said + b"\n")
            sys.stdout.buffer.flush()


class Http(asyncio.Protocol):
    """Reads a head and the body it announces, again and again; knows nothing else of HTTP."""

    def __init__(self) -> None:
        self._unread = b""
        self._write: Callable[[bytes], object] = bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast("asyncio.WriteTransport", transport).write

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while True:
            head, found, rest = self._unread.partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if not found or len(rest) < size:
                return
            self._unread = rest[size:]
            self._reply(answer(orjson.loads(rest[:size])) if size else None)

    def _reply(self, body: bytes | None) -> None:
        if body is None:
            self._write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._write(head % len(body) + body)


async def over_http(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Http, "127.0.0.1", port)
    await server.serve_forever()


def main(port: str = "") -> None:
    core = os.environ.get("CORE")
    if core:
        os.sched_setaffinity(0, {int(core)})
    if not port:
        over_a_pipe()
        return
    import uvloop

    uvloop.run(over_http(int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
