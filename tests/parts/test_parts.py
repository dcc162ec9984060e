"""The real parts run, and a missing one is skipped by name or, on the build machine, failed."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tests.parts import Missing, registry, require
from tests.servers.raw_client import raw
from tests.servers.third_party import TWELVE, known

if TYPE_CHECKING:
    from playwright.sync_api import Page


# Without types of its own.
driver: Any = asyncpg


async def database_at(url: str) -> str:
    connection = await driver.connect(url)
    try:
        return await connection.fetchval("select current_database()")
    finally:
        await connection.close()


async def test_each_database_is_a_new_one(fresh_database: str, make_database: Callable[[], str]) -> None:
    other = make_database()
    assert fresh_database != other
    assert await database_at(fresh_database) == fresh_database.rsplit("/", 1)[1]
    assert await database_at(other) == other.rsplit("/", 1)[1]


@pytest.mark.slow
def test_the_inspector_starts(inspector: list[str]) -> None:
    done = subprocess.run([*inspector, "--cli", "--help"], capture_output=True, text=True, check=True)
    assert "--method" in done.stdout


@pytest.mark.slow
def test_peer_clients_import(fastmcp_python: Path, pydantic_ai_python: Path) -> None:
    subprocess.run([fastmcp_python, "-c", "from fastmcp import Client"], check=True)
    subprocess.run([pydantic_ai_python, "-c", "from pydantic_ai.mcp import MCPToolset"], check=True)


@pytest.mark.slow
@pytest.mark.needs("node", "npm_servers", "modern_servers", "legacy_servers", "chromium")
@pytest.mark.parametrize("name", TWELVE)
def test_each_server_starts_and_answers(tmp_path: Path, name: str) -> None:
    server = known(name, tmp_path, "data:text/html,<title>A page of the test</title>")
    with raw(server.command, server.env) as direct:
        assert server.tool in direct.tools()
        # A fetcher needs a page over HTTP, which the test of all servers provides.
        if name != "fetch":
            assert server.expected in str(direct.call(server.tool, server.arguments))


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_the_browser_shows_a_page(page: "Page") -> None:
    page.set_content("<title>crib</title><button onclick='document.title=\"pressed\"'>press</button>")
    page.get_by_role("button").click()
    assert page.title() == "pressed"


@pytest.fixture
def no_wrk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Path:
        raise Missing("there is none today")

    monkeypatch.setattr(registry, "take", refuse)


@pytest.mark.usefixtures("no_wrk")
def test_a_missing_part_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs wrk: there is none today"):
        require("wrk")


@pytest.mark.usefixtures("no_wrk")
def test_nothing_is_skipped_on_the_build_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="allows no skip: there is none today"):
        require("wrk")
