"""Secrets to plant in a gateway process, and the collector of every text in which they must not occur."""

import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import asyncpg
from anyio.abc import SocketAttribute, SocketStream

from tests.gateway_process import GatewayProcess
from tests.servers import alive

PREFIX = "canary-"
_CANARY = re.compile(rf"{PREFIX}[\w-]+-7c1f09ab")


TELLTALE = """
import json, os, sys
print("my environment is", dict(os.environ), "and I was started as", sys.argv, file=sys.stderr, flush=True)
print("no message, but", dict(os.environ), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        said = {"code": -32000, "message": f"cannot: {dict(os.environ)} {sys.argv}"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": said}), flush=True)
"""
"""A server that tells everybody everything it was given in confidence."""


ASKING = """
import json, sys
form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
asked = {"who": {"method": "elicitation/create", "params": form}}
tools = [{"name": "order", "inputSchema": {"type": "object"}}]
answers = {
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
    "tools/list": {"tools": tools, "ttlMs": 1000, "cacheScope": "public"},
    "tools/call": {"resultType": "input_required", "inputRequests": asked, "requestState": "raw"},
}
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and request["method"] in answers:
        result = {"resultType": "complete", **answers[request["method"]]}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
"""A server that stays up and answers every call with a question and a state to bring back."""


def secret(slot: str) -> str:
    """Return the secret of a slot."""
    return f"{PREFIX}{slot}-7c1f09ab"


def secrets_in(*values: Any) -> set[str]:
    """Return every distinct secret in these values."""
    return {found for value in values for found in _CANARY.findall(json.dumps(value))}


FRONTENDS = (
    "/",
    "/api/tools",
    "/openapi.json",
    "/api/explain?name=teller:tool",
    "/mcp/status",
    "/api/status",
    "/api/calls",
    "/api/usage",
    "/metrics",
    "/ready",
    "/api/pins",
    "/api/keys",
    "/api/audit?limit=1000",
)
"""What is read of a gateway after everything went wrong."""
FAULTY: tuple[dict[str, Any], ...] = (
    {"url": f"http://user:{secret('a')}@ho st/{secret('b')}"},
    {"url": f"gopher://{secret('c')}"},
    {"url": f"http://169.254.169.254/?key={secret('d')}"},
    {"url": f"http://user:{secret('e')}@127.0.0.1:1/mcp"},
    {"url": "https://x.example", "headers": {"A": f"{secret('f')}\r\nB: c"}},
    {"url": "https://x.example", "headers": {"A B": secret("g")}},
    {"url": "https://x.example", "headers": {"A": 1}, "env": {"A": secret("h")}},
    {"command": ["x", f"--token={secret('i')}"], "env": {"A=B": secret("j")}},
    {"command": ["x"], "env": {"A": f"{secret('k')}\0"}},
    {"command": ["x", "--api-key", secret("l")], "url": f"https://x.example/?key={secret('m')}"},
    {"command": f"x --token {secret('n')}", "cwd": "/nowhere"},
)
"""Servers to add, each with a fault beside a secret."""


@dataclass(frozen=True)
class Answer:
    """The response to a request."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


async def run_command(*words: str, env: Mapping[str, str]) -> tuple[int, str]:
    """Run a command of the command line; return its exit code and all that it printed."""
    command = [sys.executable, "-m", "toolcrib", *words]
    done = await anyio.run_process(command, check=False, env={**os.environ, **env})
    return done.returncode, (done.stdout + done.stderr).decode()


class Seen:
    """Collects every text that leaves the gateway, by its origin, and counts the secrets that were sent."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self._gateway = gateway
        self.texts: dict[str, str] = {}
        self.sent: set[str] = set()

    async def ask(
        self, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        url, headers = f"{self._gateway.url}{target}", {**self._gateway.admin, **(headers or {})}
        self.sent |= secrets_in(target, body, headers)
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.request(method, url, json=body) as answer,
        ):
            text = await answer.text()
        self.texts[f"{method} {target} {len(self.texts)}"] = f"{answer.headers} {text}"
        return Answer(answer.status, answer.headers, text)

    async def call(self, name: str, arguments: Any) -> Answer:
        return await self.ask("POST", "/api/tools/execute", {"name": name, "arguments": arguments})

    async def run(self, *words: str, env: Mapping[str, str]) -> None:
        """Run a command of the command line."""
        _, self.texts[f"toolcrib {' '.join(words)} {len(self.texts)}"] = await run_command(*words, env=env)

    async def is_up(self, server: str) -> bool:
        """Whether a server is up."""
        return (await self.ask("GET", "/mcp/status")).json["servers"][server]["up"]

    def leaks(self) -> list[tuple[str, str]]:
        """Return where the first secret of each text is, with the text around it."""
        found = [(where, text.find(PREFIX), text) for where, text in self.texts.items()]
        return [(where, text[max(0, at - 80) : at + 60]) for where, at, text in found if at >= 0]


@asynccontextmanager
async def echo() -> AsyncGenerator[int]:
    """Serve HTTP on a port; every response is an error that repeats the head of its request."""

    async def answer(stream: SocketStream) -> None:
        # A probe connects and sends nothing.
        async with stream:
            with suppress(anyio.EndOfStream):
                await repeat(stream)

    async def repeat(stream: SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive()
        body = b"you sent " + head.replace(b"\r\n", b" ")
        reason = head.partition(b"\r\n")[0]
        await stream.send(b"HTTP/1.1 500 %s\r\nContent-Length: %d\r\n\r\n%s" % (reason, len(body), body))

    async def serve(listener: Any) -> None:
        await listener.serve(answer)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(serve, listener)
        yield listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        tasks.cancel_scope.cancel()


def command_lines() -> dict[str, str]:
    """Return the command line of every process of this machine."""
    return {f"command line of {pid}": " ".join(alive.words(pid)) for pid in alive.numbers()}


def command_lines_below(pid: int, *commands: list[str]) -> dict[str, str]:
    """Return the command lines of a gateway and its children, without the commands the operator wrote.

    A program and its guard show the arguments of that program; no other text of theirs may.
    """
    lines: dict[str, str] = {}
    for each in (pid, *alive.below(pid)):
        words = list(alive.words(each))
        own = next((command for command in commands if words[-len(command) :] == command), list[str]())
        lines[f"command line of {each}"] = " ".join(words[: len(words) - len(own)])
    return lines


def database_files(folder: Path) -> dict[str, str]:
    """Return the content of a SQLite database and of the files beside it."""
    return {file.name: file.read_bytes().decode("latin-1") for file in folder.glob("toolcrib.db*")}


async def database_tables(url: str) -> dict[str, str]:
    """Return the content of every table of a Postgres database."""
    connect: Any = asyncpg.connect  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    connection: Any = await connect(url)
    tables: dict[str, str] = {}
    try:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (name,) in rows:
            content = BytesIO()
            await connection.copy_from_table(name, output=content, format="binary")
            tables[f"table {name}"] = content.getvalue().decode("latin-1")
    finally:
        await connection.close()
    return tables
