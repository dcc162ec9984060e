"""The least an MCP server needs (handshake era), from the standard library alone, so it starts at once."""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

OBJECT: Any = {"type": "object"}


class Tool(NamedTuple):
    """A tool: its definition, and its function."""

    description: str
    run: Callable[[Any], Any]
    schema: Any = OBJECT
    slow: bool = False
    """Whether a call may last, and so gets a thread of its own."""
    query: bool = False
    """Whether it only reads."""
    output: Any = None
    """Its output schema, if any."""


class Server:
    """Answers the methods there are; subclasses decide how an answer leaves."""

    def __init__(self, name: str, tools: Mapping[str, Tool]) -> None:
        self.name, self.tools = name, tools

    def greet(self, params: Any) -> Any:
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": self.name, "version": "1"},
        }

    def list(self) -> Any:
        return {
            "tools": [
                {
                    "name": name,
                    "description": tool.description,
                    "inputSchema": tool.schema,
                    "annotations": {"readOnlyHint": tool.query},
                    **({} if tool.output is None else {"outputSchema": tool.output}),
                }
                for name, tool in self.tools.items()
            ]
        }

    def call(self, params: Any) -> Any:
        tool = self.tools[params["name"]]
        data = tool.run(params.get("arguments") or {})
        return {"content": [{"type": "text", "text": json.dumps(data)}], "structuredContent": data}

    def lasts(self, message: Any) -> bool:
        """Whether a request may take its time."""
        tool = self.tools.get(message.get("params", {}).get("name", ""))
        return message.get("method") == "tools/call" and tool is not None and tool.slow

    def answer(self, message: Any) -> Any:
        """What a request is answered with."""
        method, params = message["method"], message.get("params", {})
        answers: dict[str, Callable[[], Any]] = {
            "initialize": lambda: self.greet(params),
            "tools/list": self.list,
            "tools/call": lambda: self.call(params),
            "ping": dict,
        }
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if method not in answers:
            return {**reply, "error": {"code": -32601, "message": f"There is no method {method} here."}}
        try:
            return {**reply, "result": answers[method]()}
        except (KeyError, TypeError, ValueError) as error:
            return {**reply, "error": {"code": -32602, "message": repr(error)}}


def spelled(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


class Lines:
    """A server on standard input and output."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.writing = threading.Lock()

    def run(self) -> None:
        """Serve until the peer disconnects."""
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" not in message or "id" not in message:
                continue
            if self.server.lasts(message):
                threading.Thread(target=self.reply, args=(message,), daemon=True).start()
            else:
                self.reply(message)
        # Threads that still write must not keep the process, nor quarrel with it over standard output.
        os._exit(0)

    def reply(self, message: Any) -> None:
        self.write(spelled(self.server.answer(message)) + b"\n")

    def write(self, data: bytes) -> None:
        with self.writing:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
