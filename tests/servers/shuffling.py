"""A server that answers out of order: it holds calls back and gives any of them next, by a seeded choice."""

import json
import os
import sys
from random import Random
from select import select
from typing import Any

HELD = 64
"""The number of calls held back; above it, or after a pause, some are answered."""
PAUSE = 0.002
TOOL = {"name": "keep", "description": "Say a secret again.", "inputSchema": {"type": "object"}}


def reply(asked: dict[str, Any], overtaken: int) -> list[dict[str, Any]]:
    """Return the answer to a request, after progress if the caller wants it."""
    method, params = asked["method"], asked.get("params", {})
    said: list[dict[str, Any]] = []
    if method == "initialize":
        info = {"name": "shuffling", "version": "1"}
        result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        secret = params["arguments"]["secret"]
        said_of_it = {"shuffling/overtaken": overtaken}
        result = {"content": [{"type": "text", "text": secret}], "_meta": said_of_it}
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            step = {"progressToken": token, "progress": 1, "message": secret}
            said.append({"jsonrpc": "2.0", "method": "notifications/progress", "params": step})
    elif method == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": "there is no such method"}
        return [{"jsonrpc": "2.0", "id": asked["id"], "error": error}]
    return [*said, {"jsonrpc": "2.0", "id": asked["id"], "result": result}]


def serve() -> None:
    held, unread = list[dict[str, Any]](), b""
    order = Random(4)  # noqa: S311 - the same order in every run
    while True:
        more = select([0], [], [], PAUSE if held else None)[0]
        if more:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return
            *lines, unread = (unread + chunk).split(b"\n")
            held += [message for line in lines if "id" in (message := json.loads(line))]
        while held and (len(held) > HELD or not more):
            overtaken = order.randrange(len(held))
            for message in reply(held.pop(overtaken), overtaken):
                sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
