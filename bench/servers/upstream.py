"""Minimal MCP echo server with almost no overhead, for both protocol eras, over stdio or HTTP."""

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
    "description": "Return the text.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
CACHE_FIELDS = {"ttlMs": 60_000, "cacheScope": "private"}
METHOD_NOT_FOUND = -32601


def lookup_tool(number: int) -> dict[str, Any]:
    """Return one of many definitions, about as long as those of real tools."""
    return {
        "name": f"look_up_{number:04}",
        "description": f"Look up part {number} on a shelf and return how many of it there are.",
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
    """Responses to MCP messages; what does not change between calls is encoded once."""

    def __init__(self, tools: int) -> None:
        tool_list = {"tools": [ECHO, *map(lookup_tool, range(tools - 1))]}
        discovery: dict[str, Any] = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
        self._legacy = {"tools/list": _encoded(tool_list), "ping": _encoded({})}
        self._modern = {
            "tools/list": _encoded({"resultType": "complete", **tool_list, **CACHE_FIELDS}),
            "server/discover": _encoded({"resultType": "complete", **discovery, **CACHE_FIELDS}),
        }

    def answer(self, message: dict[str, Any]) -> bytes | None:
        """Return the response in the era of the message; None for a notification."""
        if "id" not in message:
            return None
        method, params = message["method"], message.get("params", {})
        modern = VERSION_KEY in params.get("_meta", ())
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "tools/call":
            response = [{"type": "text", "text": params["arguments"]["text"]}]
            reply["result"] = (
                {"resultType": "complete", "content": response} if modern else {"content": response}
            )
        elif method == "initialize":
            reply["result"] = _initialize_result(params)
        else:
            result = (self._modern if modern else self._legacy).get(method)
            error = {"code": METHOD_NOT_FOUND, "message": "method not found"}
            reply.update({"error": error} if result is None else {"result": result})
        return orjson.dumps(reply)


def _encoded(value: dict[str, Any]) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(value))


def _initialize_result(params: dict[str, Any]) -> dict[str, Any]:
    version = params["protocolVersion"]
    return {
        "protocolVersion": "2025-11-25" if version == MODERN else version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "upstream", "version": "1.0.0"},
    }


def serve_stdio(server: Server) -> None:
    for line in sys.stdin.buffer:
        response = server.answer(orjson.loads(line))
        if response is not None:
            sys.stdout.buffer.write(response + b"\n")
            sys.stdout.buffer.flush()


class HttpProtocol(asyncio.Protocol):
    """Reads requests by their Content-Length and writes responses; supports nothing else of HTTP."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._unread = b""
        self._write: Callable[[bytes], object] = bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast("asyncio.WriteTransport", transport).write

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while self._unread:
            head, separator, rest = self._unread.partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if not separator or len(rest) < size:
                return
            self._unread = rest[size:]
            if head.startswith(b"POST"):
                self._reply(self._server.answer(orjson.loads(rest[:size])))
            else:
                # No event stream (GET) and no session to end (DELETE): clients of 2025-11-25 work without.
                self._write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")

    def _reply(self, body: bytes | None) -> None:
        if body is None:
            self._write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._write(head % len(body) + body)


async def serve_http(server: Server, port: int) -> None:
    server_socket = await asyncio.get_running_loop().create_server(
        lambda: HttpProtocol(server), "127.0.0.1", port
    )
    await server_socket.serve_forever()


def main(port: str = "") -> None:
    core = os.environ.get("CORE")
    if core:
        os.sched_setaffinity(0, {int(core)})
    server = Server(int(os.environ.get("TOOLS", "1")))
    if not port:
        serve_stdio(server)
        return
    import uvloop

    uvloop.run(serve_http(server, int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
