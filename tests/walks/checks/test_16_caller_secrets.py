"""Secrets of callers and those the gateway makes are misused in every way, and none is seen or stored."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.figures import Record
from tests.frontends.mcp.messages import message
from tests.gateway_process import ADMIN_KEY, gateway_process
from tests.servers.client import until
from tests.walks.checks.canaries import (
    ASKING,
    FAULTY,
    FRONTENDS,
    TELLTALE,
    Seen,
    command_lines,
    database_files,
    echo,
    secret,
    secrets_in,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.check(16),
    pytest.mark.requirement("I2", "I5"),
]

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
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
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


async def open_session(seen: Seen) -> str:
    """Open an MCP session and return its id."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    answer = await seen.ask("POST", "/mcp", message("initialize", **hello), MCP_HEADERS)
    return answer.headers["Mcp-Session-Id"]


async def ask_back(seen: Seen, **more: Any) -> str:
    """Call a tool that asks and return the sealed state."""
    body: Any = {"name": "asking:order", "arguments": {}, "capabilities": {"elicitation": {}}, **more}
    answer = await seen.ask("POST", "/api/tools/execute", body)
    return answer.json["inputRequired"]["state"]


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
    states = [await ask_back(seen), await ask_back(seen, idempotencyKey="asked")]
    made = [*found[:-1], token, *cookies, exchanged.json["secret"], await open_session(seen), *states]
    seen.texts.clear()
    return [each for each in made if each]


async def misuse(seen: Seen, session: str, state: str) -> int:
    """Send a session id and a state where they do not belong, and return in how many ways."""
    listing, ended = message("tools/list"), {**MCP_HEADERS, "Mcp-Session-Id": session}
    other = (await seen.ask("POST", "/api/keys", {"name": "other"})).json["key"]
    seen.texts.popitem()  # the one answer that shows this key
    stranger = {"Authorization": f"Bearer {other}"}
    for headers in ({**ended, "Mcp-Session-Id": f"{session}x"}, {**ended, **stranger}):
        assert (await seen.ask("POST", "/mcp", listing, headers)).status in {400, 404}
    assert (await seen.ask("DELETE", "/mcp", None, ended)).status in {200, 204}
    assert (await seen.ask("POST", "/mcp", listing, ended)).status == 404
    call = {"name": "asking:order", "arguments": {}, "answers": {"who": {"action": "cancel"}}, "state": state}
    wrong: tuple[tuple[Any, dict[str, str]], ...] = (
        ({**call, "state": f"{state}x"}, {}),
        ({**call, "arguments": {"day": 2}}, {}),
        ({**call, "answers": {"who": state}}, {}),
        ({**call, "arguments": {"state": state, "session": session}}, {}),
        (call, stranger),
    )
    for body, headers in wrong:
        answer = await seen.ask("POST", "/api/tools/execute", body, headers)
        assert answer.status in {400, 422}, answer.text
    await seen.ask("GET", f"/api/calls?cursor={state}")
    return 3 + len(wrong) + 1


async def go_wrong(seen: Seen, made: list[str]) -> int:
    """Show every secret where something is wrong; how many kinds of errors that was."""
    kinds = await misuse(seen, made[-3], made[-2])
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
    for target in FRONTENDS:
        await seen.ask("GET", target)
    return kinds + 2 + len(FAULTY) + 3


def config(folder: Path, port: int) -> dict[str, Any]:
    """A SQLite store, a tool that fails on demand and three servers, of which one works."""
    for name, text in (("called", CALLED), ("telltale", TELLTALE), ("asking", ASKING)):
        (folder / f"{name}.py").write_text(text)
    python = [sys.executable, "-ES"]
    url = f"http://127.0.0.1:{port}/mcp"
    servers = {
        "web": {"transport": "http", "url": url, "headers": {"X-Key": "${OUTSIDE}"}},
        "child": {
            "transport": "stdio",
            "command": [*python, str(folder / "telltale.py")],
            "env": {"TOKEN": "${OUTSIDE}"},
        },
        "asking": {"transport": "stdio", "command": [*python, str(folder / "asking.py")]},
    }
    return {
        "functions": ["called"],
        "store": f"sqlite:///{folder / 'toolcrib.db'}",
        "limits": {"per_user": None},
        "mcp": {"allow_stdio": True, "servers": servers},
    }


async def test_secrets_of_callers_are_seen_and_kept_nowhere(tmp_path: Path, record_property: Record) -> None:
    log, env = tmp_path / "log", {"OUTSIDE": secret("outside")}
    async with echo() as port:
        written = config(tmp_path, port)
        async with gateway_process(tmp_path, json.dumps(written), env=env, demo=False, log=log) as gateway:
            seen = Seen(gateway)
            seen.sent |= secrets_in(env)
            await until(lambda: seen.is_up("asking"))
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
    count = len(made) + len(seen.sent)
    figure = f"{count} secrets, {kinds} kinds of errors, {len(seen.texts)} texts, {len(hits)} leaks"
    record_property("figure", figure)
    assert kinds >= 60
    assert hits == []
    leaks = seen.leaks()
    assert leaks == [], "\n".join(map(str, leaks))
    assert ADMIN_KEY not in "".join(seen.texts.values())
