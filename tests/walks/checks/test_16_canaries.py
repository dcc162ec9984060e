"""A secret stands in every slot there is, everything goes wrong, and no secret is seen anywhere."""

import json
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from tests.served import ADMIN_KEY, Served, served

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.check(16),
    pytest.mark.requirement("I2", "I5"),
]

PATIENCE = 120
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


@asynccontextmanager
async def echo() -> AsyncGenerator[int]:
    """An HTTP server that answers everything with an error that repeats what it was sent."""

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


def secret(slot: str) -> str:
    return f"canary-{slot}-7c1f09ab"


def web(port: int, name: str, transport: str = "http") -> dict[str, Any]:
    """A server by address, with a secret in each part that may hold one."""
    return {
        "transport": transport,
        "url": f"http://user:{secret(name + '-password')}@127.0.0.1:{port}"
        f"/{secret(name + '-path')}0123456789abcdef/mcp?key={secret(name + '-query')}",
        "headers": {
            "Authorization": f"Bearer {secret(name + '-bearer')}",
            "X-Thing": secret(name + "-header"),
        },
    }


def program(telltale: Path, name: str, *first: str) -> dict[str, Any]:
    command = first or (sys.executable, "-ES", str(telltale))
    flags = ["--api-key", secret(name + "-flag"), f"--token={secret(name + '-word')}"]
    return {
        "transport": "stdio",
        "command": [*command, *flags],
        "env": {"TOKEN": secret(name + "-env"), "PLAIN": secret(name + "-plain"), "OUTSIDE": "${OUTSIDE}"},
        "restart": {"backoff_ms": 100, "max_restarts": 2},
    }


def config(telltale: Path, port: int) -> dict[str, Any]:
    """Everything that can be told, and nothing that works."""
    servers = {
        "teller": program(telltale, "teller"),
        "gone": program(telltale, "gone", "/nowhere/at-all"),
        "dying": program(telltale, "dying", "/bin/sh", "-c", 'echo "$@" $TOKEN $PLAIN >&2; exit 3', "sh"),
        "web": web(port, "web"),
        "old": web(port, "old", "sse"),
        "nobody": web(1, "nobody"),
    }
    return {"mcp": {"allow_stdio": True, "servers": servers}, "reload": {"watch": True}}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Seen:
    """Everything that came out, by where it came from."""

    def __init__(self, gateway: Served) -> None:
        self._gateway = gateway
        self.texts: dict[str, str] = {}

    async def ask(
        self, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        url, headers = f"{self._gateway.url}{target}", {**self._gateway.admin, **(headers or {})}
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.request(method, url, json=body) as answer,
        ):
            text = await answer.text()
        self.texts[f"{method} {target} {len(self.texts)}"] = f"{answer.headers} {text}"
        return Answer(answer.status, text)

    async def call(self, name: str, arguments: Any) -> Answer:
        return await self.ask("POST", "/api/tools/execute", {"name": name, "arguments": arguments})

    async def run(self, *words: str, env: dict[str, str]) -> None:
        done = await anyio.run_process(
            [sys.executable, "-m", "toolcrib", *words], check=False, env={**os.environ, **env}
        )
        self.texts[" ".join(words)] = (done.stdout + done.stderr).decode()

    def leaks(self) -> list[tuple[str, str]]:
        """Where the first secret of each text stands, and what is around it."""
        found = [(where, text.find("canary-"), text) for where, text in self.texts.items()]
        return [(where, text[max(0, at - 80) : at + 60]) for where, at, text in found if at >= 0]


TOLD = (
    "/ /api/tools /openapi.json /api/explain?name=teller:tool /mcp/status /api/status /api/calls /api/usage"
    " /metrics /ready /api/pins /api/keys"
)
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


@pytest.mark.check(16)
async def test_no_secret_is_seen_whatever_goes_wrong(tmp_path: Path) -> None:
    telltale, log = tmp_path / "telltale.py", tmp_path / "log"
    telltale.write_text(TELLTALE)
    env = {"OUTSIDE": secret("outside")}
    with anyio.fail_after(PATIENCE):
        async with echo() as port:
            written = config(telltale, port)
            async with served(tmp_path, json.dumps(written), env=env, demo=False, log=log) as gateway:
                seen = Seen(gateway)
                await _provoke(seen, telltale, port)
                await _spoil(seen, anyio.Path(tmp_path / "toolcrib.yaml"), written)
                inside = {**env, "TOOLCRIB_HOME": str(tmp_path), "TOOLCRIB_ADMIN_KEY": ADMIN_KEY}
                for words in ("config export", "config check", "check", "tools", "pins list"):
                    await seen.run(*words.split(), "-c", str(tmp_path / "toolcrib.yaml"), env=inside)
    seen.texts["log"] = await anyio.Path(log).read_text()
    assert "wrote to its standard error" in seen.texts["log"]
    assert "[redacted]" in seen.texts["log"]
    leaks = seen.leaks()
    assert leaks == []


async def _provoke(seen: Seen, telltale: Path, port: int) -> None:
    """Ask for everything that can fail, and for everything that says so."""
    for number, arguments in enumerate(FAULTY):
        await seen.call("mcp_add_server", {"server_id": f"faulty{number}", **arguments})
    added = web(port, "added")
    added["url"] = added["url"].replace(f"user:{secret('added-password')}@", "")
    assert (await seen.call("mcp_add_server", {"server_id": "added", **added})).status == 200
    del (mine := program(telltale, "mine"))["restart"]
    assert (await seen.call("mcp_add_server", {"server_id": "mine", **mine})).status == 200
    names = ("teller", "gone", "dying", "web", "old", "nobody", "added", "mine")
    for name in names:
        assert (await seen.ask("POST", f"/mcp/test/{name}")).json["ok"] is False
        await seen.call(f"{name}:tool", {})
    await seen.call("mcp_list_servers", {})
    for target in (
        "/mcp/status",
        "/api/status",
        "/api/calls",
        "/api/usage",
        "/metrics",
        "/ready",
        "/api/pins",
    ):
        await seen.ask("GET", target)
    for target in ("/", "/api/tools", "/openapi.json", "/api/explain?name=teller:tool"):
        await seen.ask("GET", target)
    status = (await seen.ask("GET", "/mcp/status")).json["servers"]
    with anyio.fail_after(30):
        while not status["teller"]["stderr_tail"]:  # what a server writes there arrives when it does
            status = (await seen.ask("GET", "/mcp/status")).json["servers"]
    assert all(status[name]["last_error"] for name in names), status


async def _spoil(seen: Seen, path: anyio.Path, written: dict[str, Any]) -> None:
    """Reload files with a fault beside or in each secret."""
    servers = written["mcp"]["servers"]
    for slot, value in (
        ("url", f"htp://{secret('spoilt')}"),
        ("headers", {"A": [secret("spoilt")]}),
        ("headers", secret("spoilt")),
        ("env", {"A": {"B": secret("spoilt")}}),
        ("command", secret("spoilt")),
        ("transport", secret("spoilt")),
        ("pin", secret("spoilt")),
    ):
        broken = {**written, "mcp": {"servers": {**servers, "web": {**servers["web"], slot: value}}}}
        await path.write_text(json.dumps(broken))
        await seen.ask("POST", "/reload?dry_run=true")
        assert (await seen.ask("POST", "/reload")).status == 400
    await path.write_text(json.dumps({**written, "auth": {"admin_key": [secret("spoilt")]}}))
    await seen.ask("POST", "/reload")
    await path.write_text(f"mcp: {{servers: {{web: {{headers: {{A: {secret('spoilt')}")
    await seen.ask("POST", "/reload")
    await path.write_text(json.dumps({**written, "contexts": {"new": {}}}))
    assert (await seen.ask("POST", "/reload")).status == 200
    await seen.ask("DELETE", "/mcp/servers/added")


# --- secrets that callers show and the gateway makes, in what it keeps as well ---

CALLED = """
from toolcrib import create_tool

@create_tool(category="mutation")
async def pay(amount: int, password: str = "", api_key: str = "") -> int:
    '''Pay, or fail.'''
    if amount > 3:
        raise RuntimeError(f"cannot pay with {password} and {api_key}")
    if amount > 2:
        raise ValueError(password)
    return amount
"""
PASSWORD, API_KEY, KEYED = secret("password"), secret("api-key"), secret("idempotency")
SPOKEN: Any = {"password": PASSWORD, "api_key": API_KEY}
WRONG_HEADERS = (
    {"Authorization": f"Bearer {secret('bearer')}"},
    {"Authorization": f"Bearer tc_{secret('bearer')}"},
    {"Authorization": f"Basic {secret('basic')}"},
    {"Authorization": secret("bare")},
    {"Cookie": f"toolcrib_session={secret('cookie')}", "Authorization": ""},
    {"X-Crib-Token": secret("token")},
    {"Proxy-Authorization": f"Basic {secret('proxy')}"},
    {"X-Api-Key": secret("header-key")},
)
WRONG_BODIES: tuple[Any, ...] = (
    {"name": "pay", "arguments": {"amount": "no", **SPOKEN}},
    {"name": "pay", "arguments": {"amount": 3, **SPOKEN}},
    {"name": "pay", "arguments": {"amount": 4, **SPOKEN}},
    {"name": "pay", "arguments": SPOKEN},
    {"name": "pay", "arguments": {**SPOKEN, "amount": 1, "secret": secret("extra")}},
    {"name": "pay", "arguments": {"amount": 1, "password": {"token": secret("nested")}}},
    {"name": "pay", "arguments": {"amount": 1, **SPOKEN}, "idempotencyKey": KEYED},
    {"name": "pay", "arguments": {"amount": 2, **SPOKEN}, "idempotencyKey": KEYED},
    {"name": "unknown", "arguments": SPOKEN},
    {"name": "pay", "arguments": SPOKEN, "context": "nowhere"},
)


async def made_by_the_gateway(seen: Seen) -> list[str]:
    """Make one of each secret there is, and return them all; the answers that show them are not looked at."""
    asked = (
        ("POST", "/api/keys", {"name": "one"}, "key"),
        ("POST", "/api/keys/one/rotate", None, "key"),
        ("PUT", "/api/apps/com.example.kept", {"name": "Kept"}, "apiKey"),
        ("POST", "/api/apps/com.example.kept/key/rotate", None, "apiKey"),
        ("POST", "/api/signin", None, "url"),
    )
    found = [(await seen.ask(method, target, body)).json[name] for method, target, body, name in asked]
    token = found[-1].partition("#token=")[2]
    own = {"Sec-Fetch-Site": "same-origin", "Authorization": ""}
    exchanged = await seen.ask("POST", "/api/signin/exchange", {"token": token}, own)
    assert exchanged.status == 200
    cookies = re.findall(r"toolcrib_session=([^;' ]+)", list(seen.texts.values())[-1])
    made = [*found[:-1], token, *cookies, exchanged.json["secret"]]
    seen.texts.clear()
    return [each for each in made if each]


async def go_wrong(seen: Seen, made: list[str]) -> int:
    """Show every secret where something is wrong; how many kinds of errors that was."""
    kinds = 0
    for headers in (*WRONG_HEADERS, *({"Authorization": f"Bearer {each}x"} for each in made)):
        await seen.ask("GET", "/api/keys", None, headers)
        kinds += 1
    for body in WRONG_BODIES:
        await seen.ask("POST", "/api/tools/execute", body)
        await seen.ask("POST", "/api/tools/execute", body, {"Accept": "text/event-stream"})
        kinds += 2
    await seen.ask(
        "POST", "/api/signin/exchange", {"token": secret("link")}, {"Sec-Fetch-Site": "same-origin"}
    )
    await seen.ask("POST", "/api/keys", {"name": "", "secret": secret("field")})
    for number, arguments in enumerate(FAULTY):
        await seen.call("mcp_add_server", {"server_id": f"faulty{number}", **arguments})
    for server in ("web", "child", "added"):
        await seen.ask("POST", f"/mcp/test/{server}")
    for target in (*TOLD.split(), "/api/audit?limit=100"):
        await seen.ask("GET", target)
    return kinds + 2 + len(FAULTY) + 3


def command_lines() -> dict[str, str]:
    """How every process of this machine was started, but for the test run itself."""
    found: dict[str, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found[f"command line of {process.name}"] = (
                (process / "cmdline").read_bytes().decode("utf-8", "replace")
            )
    return found


def database_files(folder: Path) -> dict[str, str]:
    return {file.name: file.read_bytes().decode("latin-1") for file in folder.glob("toolcrib.db*")}


async def test_secrets_of_callers_are_seen_and_kept_nowhere(tmp_path: Path) -> None:
    (tmp_path / "called.py").write_text(CALLED)
    log, database = tmp_path / "log", tmp_path / "toolcrib.db"
    telltale = tmp_path / "telltale.py"
    telltale.write_text(TELLTALE)
    command = [sys.executable, "-ES", str(telltale)]
    env = {"OUTSIDE": secret("outside")}
    async with echo() as port:
        given = {
            "transport": "http",
            "url": f"http://127.0.0.1:{port}/mcp",
            "headers": {"X-Key": "${OUTSIDE}"},
        }
        child = {"transport": "stdio", "command": command, "env": {"TOKEN": "${OUTSIDE}"}}
        written = {
            "functions": ["called"],
            "store": f"sqlite:///{database}",
            "limits": {"per_user": None},
            "mcp": {"allow_stdio": True, "servers": {"web": given, "child": child}},
        }
        async with served(tmp_path, json.dumps(written), env=env, demo=False, log=log) as gateway:
            seen = Seen(gateway)
            made = await made_by_the_gateway(seen)
            added = {"url": f"http://127.0.0.1:{port}/added", "headers": {"X-Key": secret("stored-header")}}
            await seen.call("mcp_add_server", {"server_id": "added", **added})
            kinds = await go_wrong(seen, made)
            seen.texts |= command_lines()
            gateway.process.terminate()
            await gateway.process.wait()
    seen.texts["log"] = log.read_text()
    seen.texts |= database_files(tmp_path)
    hits = [(where, each[:12]) for where, text in seen.texts.items() for each in made if each in text]
    print(f"{len(made) + 20} secrets, {kinds} kinds of errors, {len(seen.texts)} places: {len(hits)} hits")
    assert kinds >= 50
    assert hits == []
    leaks = seen.leaks()
    assert leaks == [], "\n".join(map(str, leaks))
    assert ADMIN_KEY not in "".join(seen.texts.values())
