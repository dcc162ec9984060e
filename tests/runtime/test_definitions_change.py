"""Definitions that change on real servers: strict by default over networks, and each judged at once."""

import json
import logging
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.servers import OPERATOR, ROOT, call, running, write
from tests.servers.changing import Changing
from tests.servers.web import Web
from toolcrib.runtime import Runtime

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]

FLAPS = 20
FIRST = {"name": "read", "description": "Reads a file.", "inputSchema": {"type": "object"}}
SECOND = {**FIRST, "description": "Reads a file and mails it."}
HOURLY = {"poll_ms": 3_600_000}
"""Only a test or a start makes the gateway list the servers."""


class Definitions:
    """What the servers list, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.say(FIRST)

    def say(self, *definitions: Any) -> None:
        self.path.write_text(json.dumps(definitions), encoding="utf-8")

    def program(self, **more: Any) -> dict[str, Any]:
        command = [sys.executable, "-ES", "-m", "tests.servers.changing", str(self.path)]
        return {"transport": "stdio", "command": command, "cwd": str(ROOT), **HOURLY, **more}


@pytest.fixture
def definitions(tmp_path: Path) -> Definitions:
    return Definitions(tmp_path / "definitions.json")


@pytest.fixture
def web(definitions: Definitions) -> Generator[dict[str, Any]]:
    server = Web(0, Changing(definitions.path))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield {"transport": "http", "url": f"http://127.0.0.1:{server.server_port}/mcp", **HOURLY}
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toolcrib.yaml"


def served(runtime: Runtime, source: str) -> bool:
    """Whether callers are shown the tool of a server."""
    return any(tool.name == f"{source}:read" for tool in runtime.gateway.tools(OPERATOR))


async def works(runtime: Runtime, source: str) -> bool:
    outcome = await call(runtime, f"{source}:read")
    return outcome.problem is None


async def test_changes_are_hidden_by_default_where_others_make_them(
    path: Path, definitions: Definitions, web: dict[str, Any]
) -> None:
    files = {
        "program": definitions.program(),
        "web": web,
        "told_web": {**web, "pin": "notify"},
        "told_program": definitions.program(pin="strict"),
    }
    write(path, files, mcp={"allow_stdio": True, "servers": files})
    expected = {
        "program": "notify",
        "web": "strict",
        "told_web": "notify",
        "told_program": "strict",
        "added": "strict",
        "told_added": "off",
    }
    async with running(path) as runtime:
        servers = runtime.console.servers
        await servers.add("added", definitions.program())
        await servers.add("told_added", {**definitions.program(), "pin": "off"})
        modes = {name: each["pin"] for name, each in servers.status()["servers"].items()}
        assert modes == expected
        assert all([served(runtime, name) and await works(runtime, name) for name in expected])
        definitions.say(SECOND)
        for name, mode in expected.items():
            assert (await servers.test(name))["ok"]
            assert (served(runtime, name), await works(runtime, name)) == (mode != "strict", mode != "strict")


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_server_test_adopts_or_hides_definitions(
    transport: str, path: Path, definitions: Definitions, web: dict[str, Any]
) -> None:
    server = definitions.program(pin="strict") if transport == "stdio" else web
    write(path, {"files": server})
    async with running(path) as runtime:
        servers, more = runtime.console.servers, {**FIRST, "name": "write"}
        definitions.say(SECOND, more)
        tested = await servers.test("files")
        assert tested["ok"]
        assert [name.rpartition("_")[2] for name in tested["tools"]] == ["read", "write"]
        assert [name.rpartition("_")[2] for name in tested["changed_tools"]] == ["read"]
        assert [tool.local for tool in runtime.gateway.tools(OPERATOR) if tool.source == "files"] == ["write"]
        assert not await works(runtime, "files")
        assert [each["name"] for each in servers.pins()] == ["files:read"]
        await servers.approve("files:read")
        assert await works(runtime, "files")


async def test_reload_hides_changed_definitions(path: Path, definitions: Definitions) -> None:
    write(path, {"files": definitions.program(pin="strict")})
    async with running(path) as runtime:
        definitions.say(SECOND)
        write(path, {"files": definitions.program(pin="strict", start_timeout_ms=20_000)})
        plan = await runtime.console.servers.reload()
        assert plan["changed"] == ("files",)
        assert not served(runtime, "files")
        assert not await works(runtime, "files")


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_flapping_server_is_judged_each_time_and_logged_once(
    transport: str,
    path: Path,
    definitions: Definitions,
    web: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = definitions.program(pin="strict") if transport == "stdio" else web
    write(path, {"files": server})
    async with running(path) as runtime:
        servers = runtime.console.servers
        for flap in range(1, FLAPS + 1):
            definitions.say(SECOND if flap % 2 else FIRST)
            assert (await servers.test("files"))["ok"]
            assert served(runtime, "files") is (flap % 2 == 0)
        assert servers.status()["servers"]["files"]["definition_changes"] == FLAPS
        metrics = runtime.console.journal.metrics()
        assert f"toolcrib_definition_changes_total {FLAPS}\n".encode() in metrics
    logged = [each for each in caplog.records if each.name == "toolcrib.catalog.catalog"]
    assert [each.levelno for each in logged] == [logging.WARNING]


async def test_definition_flaps_are_checked_before_serving(path: Path, definitions: Definitions) -> None:
    write(path, {"files": definitions.program(pin="strict")})
    for said in (FIRST, SECOND, FIRST, SECOND):
        definitions.say(said)
        async with running(path) as runtime:
            assert served(runtime, "files") is (said is FIRST)
            assert await works(runtime, "files") is (said is FIRST)


async def test_fields_a_server_joins_from_a_set_are_no_change(path: Path, definitions: Definitions) -> None:
    """A Jira server writes the default of four tools from a set, whose order is another at every start."""
    orders = ("status,summary,assignee", "assignee,status,summary", "summary,assignee,status")
    names = ("search", "get_issue", "get_board_issues", "get_sprint_issues")
    write(path, {"jira": definitions.program(pin="strict")})
    for order in orders:
        field = {"type": "string", "default": order}
        schema = {"type": "object", "properties": {"fields": field}}
        definitions.say(*({"name": name, "inputSchema": schema} for name in names))
        async with running(path) as runtime:
            assert runtime.console.servers.pins() == []
            shown = {tool.local for tool in runtime.gateway.tools(OPERATOR) if tool.source == "jira"}
            assert shown == set(names)
