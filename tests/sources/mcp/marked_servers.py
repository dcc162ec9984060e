"""An obedient server under the real transport, and what a test needs to look at it."""

import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from tests.sources.mcp.census import Census, census
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.stdio_transport import StdioTransport

OBEDIENT = Path(__file__).with_name("obedient.py")
PATIENT = 20.0
"""Longer than any test: a step of stopping that takes so long is one that fails."""


def files() -> int:
    """How many files this process has open."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - only their number counts


class MarkedServers:
    """Servers that all carry one mark."""

    def __init__(self, counted: Census) -> None:
        self.counted = counted
        self.heard: list[tuple[str, JsonObject]] = []

    def stdio(self, **settings: Any) -> StdioTransport:
        env = {**self.counted.env, **settings.pop("env", {})}
        command = settings.pop("command", (sys.executable, "-S", str(OBEDIENT)))
        return StdioTransport(command=command, env=env, **settings)

    @asynccontextmanager
    async def dial(self, **settings: Any) -> AsyncGenerator[Connection]:
        """Have a server; afterwards nobody and nothing of it may be left."""
        open_before = files()
        async with self.stdio(**settings).dial(self.hear) as connection:
            yield connection
        assert self.counted.alive() == []
        # An event loop may keep a file of its own from its first pipe on.
        assert files() <= open_before + 1

    def hear(self, method: str, params: JsonObject) -> None:
        self.heard.append((method, params))


async def ask(connection: Connection, behaviour: str, **params: Any) -> JsonObject:
    """Have the server do something, and return its answer."""
    with anyio.fail_after(PATIENT):
        return await connection.request(behaviour, orjson.dumps(params))


async def lost(connection: Connection) -> str:
    with anyio.fail_after(PATIENT):
        return await connection.lost()


@pytest.fixture
def servers() -> Generator[MarkedServers]:
    with census() as counted:
        yield MarkedServers(counted)
