"""Fixtures of external programs; a test is skipped where its program is not available."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.parts import node, ports, postgres
from tests.parts.install import Missing
from tests.parts.registry import may_skip, require


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for part in marker.args:
            require(part)


@pytest.fixture
def free_port() -> int:
    """A free port."""
    return ports.free_port()


@pytest.fixture(scope="session")
def postgres_server() -> Generator[postgres.Server]:
    """One Postgres process for the whole run."""
    program = require("postgres")
    try:
        server = postgres.Server(program)
    except Missing as missing:
        if may_skip():
            pytest.skip(f"needs postgres: {missing}")
        raise
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_url(postgres_server: postgres.Server) -> str:
    """Address of the server's own database, for tests that need no room of their own."""
    return postgres_server.url()


@pytest.fixture(scope="session")
def make_database(postgres_server: postgres.Server) -> Callable[[], str]:
    """Create new, empty databases; returns the address."""
    return lambda: postgres_server.url(postgres_server.create())


@pytest.fixture
def fresh_database(postgres_server: postgres.Server) -> Generator[str]:
    """Address of an empty database that is dropped after the test."""
    name = postgres_server.create()
    yield postgres_server.url(name)
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    """Command line of the MCP Inspector, to be followed by its arguments (`--cli …`)."""
    script = require("inspector")
    return [str(node.find_node() or node.fetch_node()), str(script)]


@pytest.fixture(scope="session")
def fastmcp_python() -> Path:
    """A Python that can import fastmcp."""
    return require("fastmcp")


@pytest.fixture(scope="session")
def pydantic_ai_python() -> Path:
    """A Python that can import pydantic_ai.mcp."""
    return require("pydantic_ai")
