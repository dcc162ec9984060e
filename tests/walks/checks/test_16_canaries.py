"""A secret stands in every slot there is, everything goes wrong, and no secret is seen anywhere."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from tests.figures import Record
from tests.gateway_process import ADMIN_KEY, gateway_process
from tests.servers.client import until
from tests.walks.checks.canaries import (
    ASKING,
    FAULTY,
    FRONTENDS,
    PREFIX,
    TELLTALE,
    Seen,
    command_lines_below,
    database_tables,
    echo,
    run_command,
    secret,
    secrets_in,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.check(16),
    pytest.mark.requirement("I2", "I5"),
]

PATIENCE = 120


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


def address(port: int, slot: str) -> str:
    """A web address with a secret in each part that may hold one."""
    return (
        f"http://user:{secret(slot + '-password')}@127.0.0.1:{port}"
        f"/{secret(slot + '-path')}0123456789abcdef?key={secret(slot + '-query')}"
    )


def stored_at(database: str) -> str:
    """The address of this database with two passwords; the server trusts every client."""
    parts = urlsplit(database)
    login = f"{parts.username}:{secret('store-password')}@{parts.hostname}:{parts.port}"
    return parts._replace(netloc=login, query=f"password={secret('store-query')}").geturl()


def config(folder: Path, port: int, database: str) -> dict[str, Any]:
    """Fill every slot that takes a secret; one server alone works."""
    telltale, asking = folder / "telltale.py", folder / "asking.py"
    telltale.write_text(TELLTALE)
    asking.write_text(ASKING)
    (folder / "secrets.key").touch(mode=0o600)
    (folder / "secrets.key").write_text(f"{secret('key-file')}0123456789abcdef")
    servers = {
        "teller": program(telltale, "teller"),
        "gone": program(telltale, "gone", "/nowhere/at-all"),
        "dying": program(telltale, "dying", "/bin/sh", "-c", 'echo "$@" $TOKEN $PLAIN >&2; exit 3', "sh"),
        "asking": program(telltale, "asking", sys.executable, "-ES", str(asking)),
        "web": web(port, "web"),
        "old": web(port, "old", "sse"),
        "nobody": web(1, "nobody"),
    }
    header = {"X-Collector": secret("traces-header"), "Authorization": f"Bearer {secret('traces-bearer')}"}
    return {
        "store": stored_at(database),
        "auth": {"admin_key": secret("admin-key"), "admin_key_old": secret("admin-key-old")},
        "secrets": {"key_file": str(folder / "secrets.key")},
        "traces": {"endpoint": address(port, "traces"), "headers": header, "sample": 1.0},
        "search": {"url": address(port, "search")},
        "openapi": {"later": {"document": address(port, "document"), "base_url": address(port, "base")}},
        "mcp": {"allow_stdio": True, "servers": servers},
        "reload": {"watch": True},
    }


COMMANDS = ("config export", "config check", "check", "tools", "pins list", "audit")


SPOILT: tuple[tuple[str, Any], ...] = (
    ("store", f"mysql://user:{secret('spoilt')}@127.0.0.1/x"),
    ("store", [secret("spoilt")]),
    ("auth", {"admin_key": [secret("spoilt")]}),
    ("secrets", {"key_file": [secret("spoilt")]}),
    ("traces", {"endpoint": f"htp://{secret('spoilt')}"}),
    ("traces", {"endpoint": "http://127.0.0.1:4318", "headers": {"A": [secret("spoilt")]}}),
    ("traces", {"endpoint": "http://127.0.0.1:4318", "headers": {"A B": secret("spoilt")}}),
    ("search", {"url": f"htp://{secret('spoilt')}"}),
    ("openapi", {"later": {"document": "x", "base_url": f"htp://{secret('spoilt')}"}}),
)
"""Sections with a fault in or beside a secret."""


async def test_no_secret_leaks_on_any_failure(
    tmp_path: Path, fresh_database: str, record_property: Record
) -> None:
    log, env = tmp_path / "log", {"OUTSIDE": secret("outside")}
    async with echo() as port:
        written = config(tmp_path, port, fresh_database)
        async with gateway_process(tmp_path, json.dumps(written), env=env, demo=False, log=log) as gateway:
            seen = Seen(gateway)
            seen.sent |= secrets_in(written, env) | {secret("key-file")}
            servers = written["mcp"]["servers"].values()
            commands = [each["command"] for each in servers if "command" in each]
            with anyio.fail_after(PATIENCE):
                await until(lambda: seen.is_up("asking"))
                lines = command_lines_below(gateway.process.pid, *commands)
                await _provoke(seen, tmp_path / "telltale.py", port)
                await _spoil(seen, anyio.Path(tmp_path / "toolcrib.yaml"), written)
            with anyio.fail_after(PATIENCE):
                await _run_commands(seen, tmp_path, env)
            lines |= command_lines_below(gateway.process.pid, *commands)
    seen.texts["log"] = await anyio.Path(log).read_text()
    assert "wrote to its standard error" in seen.texts["log"]
    assert "[redacted]" in seen.texts["log"]
    tables = await database_tables(fresh_database)
    assert {"table toolcrib_audit", "table toolcrib_calls"} <= tables.keys()
    assert len(lines) >= 3  # the gateway, the server that stays up and its guard at least
    seen.texts |= lines | tables
    leaks = seen.leaks()
    record_property("figure", f"{len(seen.sent)} secrets, {len(seen.texts)} texts, {len(leaks)} leaks")
    assert leaks == []


async def _run_commands(seen: Seen, folder: Path, env: dict[str, str]) -> None:
    run = partial(seen.run, env={**env, "TOOLCRIB_HOME": str(folder), "TOOLCRIB_ADMIN_KEY": ADMIN_KEY})
    async with anyio.create_task_group() as tasks:
        for words in COMMANDS:
            tasks.start_soon(run, *words.split(), "-c", f"{folder}/toolcrib.yaml")


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
    assert (await seen.call("search-web", {"query": "anything"})).status != 200
    for target in FRONTENDS:
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
        await _refuse(
            seen, path, {**written, "mcp": {"servers": {**servers, "web": {**servers["web"], slot: value}}}}
        )
    for section, value in SPOILT:
        await _refuse(seen, path, {**written, section: value})
    await path.write_text(f"mcp: {{servers: {{web: {{headers: {{A: {secret('spoilt')}")
    await seen.ask("POST", "/reload")
    await path.write_text(json.dumps({**written, "contexts": {"new": {}}}))
    assert (await seen.ask("POST", "/reload")).status == 200
    await seen.ask("DELETE", "/mcp/servers/added")


async def _refuse(seen: Seen, path: anyio.Path, broken: dict[str, Any]) -> None:
    seen.sent |= secrets_in(broken)
    await path.write_text(json.dumps(broken))
    await seen.ask("POST", "/reload?dry_run=true")
    assert (await seen.ask("POST", "/reload")).status == 400, broken


@pytest.mark.parametrize("fault", ["store", "key_file"])
async def test_failed_start_prints_no_secret(tmp_path: Path, fault: str, record_property: Record) -> None:
    (key_file := tmp_path / "open.key").write_text(f"{secret('open-key-file')}0123456789abcdef")
    key_file.chmod(0o644)
    away = f"postgresql://user:{secret('away')}@127.0.0.1:1/x?sslpassword={secret('away-query')}"
    sections = {"store": {"store": away}, "key_file": {"secrets": {"key_file": str(key_file)}}}
    path = tmp_path / "toolcrib.yaml"
    written = {**config(tmp_path, 1, "postgresql://postgres@127.0.0.1:1/x"), **sections[fault]}
    path.write_text(json.dumps(written))
    env = {"OUTSIDE": secret("outside"), "TOOLCRIB_HOME": str(tmp_path), "TOOLCRIB_ADMIN_KEY": ADMIN_KEY}
    with anyio.fail_after(PATIENCE):
        code, text = await run_command("serve", "--port", "0", "-c", str(path), env=env)
    assert code != 0
    assert fault in text, text
    count = len(secrets_in(written, env))
    record_property("figure", f"{count} secrets in a config that cannot start, 0 leaks")
    assert PREFIX not in text
