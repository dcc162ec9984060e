"""A server called over its pipes without any code of ours: the reference for comparisons."""

import json
import os
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Raw:
    """Sequential requests; messages in between are recorded."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.aside: list[Any] = []
        self._asked = 0

    def tell(self, method: str, params: Any = None) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def ask(self, method: str, params: Any = None) -> Any:
        """The result of a request."""
        self._asked += 1
        self._write({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params or {}})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self._asked and "method" not in message:
                return message["result"]
            self.aside.append(message)
        raise AssertionError(f"{self.process.args!r} ended instead of answering {method}")

    def tools(self) -> set[str]:
        """Names of all its tools, over all pages."""
        found: set[str] = set()
        cursor: str | None = None
        while True:
            page = self.ask("tools/list", {"cursor": cursor} if cursor else {})
            found |= {each["name"] for each in page["tools"]}
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self.ask("tools/call", {"name": name, "arguments": dict(arguments)})

    def _write(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


@contextmanager
def raw(command: Sequence[str], env: Mapping[str, str] | None = None) -> Generator[Raw]:
    """Start a server and greet it; it is ended with the block."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    ) as process:
        try:
            server = Raw(process)
            server.ask("initialize", HELLO)
            server.tell("notifications/initialized")
            yield server
        finally:
            process.terminate()
