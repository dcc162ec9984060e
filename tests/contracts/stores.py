"""The stores there are, and rows to put in them, for the suites every store must pass."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolcrib.interfaces import CallRow, Definition, KeyRecord, ReplayRow, Store, UsageRow
from toolcrib.store import open_store

Kind = Callable[[pytest.FixtureRequest], str]


def sqlite_file(request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("tmp_path")
    return f"sqlite:///{folder}/state/toolcrib.db"


def sqlite_memory(_request: pytest.FixtureRequest) -> str:
    return "sqlite://"


def postgres(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("fresh_database")


# Each test in it starts with a database of its own, which takes its time.
_POSTGRES = pytest.param(postgres, marks=pytest.mark.slow)
STORES: tuple[Any, ...] = (sqlite_file, sqlite_memory, _POSTGRES)
LASTING: tuple[Any, ...] = (sqlite_file, _POSTGRES)


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


def a_key(name: str = "agent", **more: object) -> KeyRecord:
    return replace(KeyRecord(name=name, digest=f"digest of {name}", created=1.25), **more)


def a_call(number: int, **more: object) -> CallRow:
    row = CallRow(
        id=f"call-{number}",
        at=float(number),
        tool="cards:get-card",
        caller="agent",
        user=None,
        context="default",
        face="rest",
        outcome="success",
        code=None,
        milliseconds=1.5,
        cached=False,
        trace="0af7",
    )
    return replace(row, **more)


def a_use(day: str = "2026-01-01", tool: str = "t", caller: str = "c", **more: object) -> UsageRow:
    return replace(UsageRow(day=day, tool=tool, caller=caller), **more)


def a_definition(name: str = "files:read", **more: object) -> Definition:
    row = Definition(
        name=name,
        definition={"name": name.partition(":")[2], "inputSchema": {"type": "object"}},
        seal=f"seal of {name}",
        trusted=f"first seal of {name}",
        seen=1_700_000_000.25,
    )
    return replace(row, **more)


def a_replay(key: str = "key", **more: object) -> ReplayRow:
    row = ReplayRow(key=key, call="call-1", body="body", holder="host a 1", at=100.0, until=1000.0)
    return replace(row, **more)
