"""An MCP server that costs as little as one can: an echo in both eras, over a pipe or over HTTP."""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any, cast

import orjson

MODERN = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
ECHO: dict[str, Any] = {
    "name": "echo",
    "description": "Say the text again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
LASTING = {"ttlMs": 60_000, "cacheScope": "private"}
METHOD_NOT_FOUND = -32601


def look_up(number: int) -> dict[str, Any]:
    """Describe one of many tools, about as long as those one meets."""
    return {
        "name": f"look_up_{number:04}",
        "description": f"Look up part {number} on a shelf and say how many of it there are.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "shelf": {"type": "string", "description": "The shelf, such as B-12."},
                "count": {"type": "integer", "minimum": 1, "description": "How many to look for."},
            },
            "required": ["shelf"],
        },
    }


class Server:
    """The answers; what does not change from call to call is spelled once."""

    def __init__(self, tools: int) -> None:
        listed = {"tools": [ECHO, *map(look_up, range(tools - 1))]}
        found: dict[str, Any] = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
        self._legacy = {"tools/list": _spelled(listed), "ping": _spelled({})}
        self._modern = {
            "tools/list": _spelled({"resultType": "complete", **listed, **LASTING}),
            "server/discover": _spelled({"resultType": "complete", **found, **LASTING}),
        }

    def answer(self, message: dict[str, Any]) -> bytes | None:
        """Answer one message in the era it is of; a notification has no answer."""
        if "id" not in message:
            return None
        method, params = message["method"], message.get("params", {})
        modern = VERSION_KEY in params.get("_meta", ())
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "tools/call":
            said = [{"type": "text", "text": params["arguments"]["text"]}]
            reply["result"] = {"resultType": "complete", "content": said} if modern else {"content": said}
        elif method == "initialize":
            reply["result"] = _welcome(params)
        else:
            known = (self._modern if modern else self._legacy).get(method)
            unknown = {"code": METHOD_NOT_FOUND, "message": "There is no such method here."}
            reply.update({"error": unknown} if known is None else {"result": known})
        return orjson.dumps(reply)


def _spelled(value: dict[str, Any]) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(value))


def _welcome(params: dict[str, Any]) -> dict[str, Any]:
    version = params["protocolVersion"]
    return {
        "protocolVersion": "2025-11-25" if version == MODERN else version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "upstream", "version": "1.0.0"},
    }


def over_a_pipe(server: Server) -> None:
    for line in sys.stdin.buffer:
        said = server.answer(orjson.loads(line))
        if said is not None:
            sys.stdout.buffer.write(said + b"\n")
            sys.stdout.buffer.flush()


class Http(asyncio.Protocol):
    """Reads a head and the body it announces, again and again; knows nothing else of HTTP."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._unread = b""
        self._write: Callable[[bytes], object] = bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast("asyncio.WriteTransport", transport).write

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while self._unread:
            head, found, rest = self._unread.partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if not found or len(rest) < size:
                return
            self._unread = rest[size:]
            if head.startswith(b"POST"):
                self._reply(self._server.answer(orjson.loads(rest[:size])))
            else:
                # Neither a stream to listen to nor a session to end: clients of the older era go on without.
                self._write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")

    def _reply(self, body: bytes | None) -> None:
        if body is None:
            self._write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._write(head % len(body) + body)


async def over_http(server: Server, port: int) -> None:
    listening = await asyncio.get_running_loop().create_server(lambda: Http(server), "127.0.0.1", port)
    await listening.serve_forever()


def main(port: str = "") -> None:
    core = os.environ.get("CORE")
    if core:
        os.sched_setaffinity(0, {int(core)})
    server = Server(int(os.environ.get("TOOLS", "1")))
    if not port:
        over_a_pipe(server)
        return
    import uvloop

    uvloop.run(over_http(server, int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
