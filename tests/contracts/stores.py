"""The stores there are, and rows to put in them, for the suites every store must pass."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolcrib.interfaces import (
    AppRecord,
    AppTool,
    AuditEntry,
    CallRow,
    InstallRecord,
    KeyRecord,
    ReplayRow,
    SessionRecord,
    Store,
    StoredDefinition,
    UsageRow,
)
from toolcrib.model import Requirement
from toolcrib.store import open_store

Kind = Callable[[pytest.FixtureRequest], str]


def sqlite_file(request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("tmp_path")
    return f"sqlite:///{folder}/state/toolcrib.db"


def sqlite_memory(_request: pytest.FixtureRequest) -> str:
    return "sqlite://"


def postgres(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("fresh_database")


# Every test has its own database, which is slow; one in memory is fast.
_POSTGRES = pytest.param(postgres, marks=pytest.mark.slow)
STORES: tuple[Any, ...] = (pytest.param(sqlite_file, marks=pytest.mark.slow), sqlite_memory, _POSTGRES)
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


def a_definition(name: str = "files:read", **more: object) -> StoredDefinition:
    row = StoredDefinition(
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


def an_audit_entry(**more: object) -> AuditEntry:
    entry = AuditEntry(
        at=1_700_000_000.25,
        actor_kind="key",
        actor="ci",
        user=None,
        frontend="rest",
        address="192.0.2.7",
        process="host:1",
        action="keys.create",
        target="agent",
        before=None,
        after={"name": "agent", "permissions": []},
        outcome="success",
    )
    return replace(entry, **more)


def an_app_tool(name: str = "add", **more: object) -> AppTool:
    tool = AppTool(
        definition={
            "name": name,
            "description": "Add a note",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
            "mentraExtensions": {"activationPhrases": ["note this"], "category": "productivity"},
        }
    )
    return replace(tool, **more)


def an_app(package: str = "com.example.notes", **more: object) -> AppRecord:
    app = AppRecord(
        package=package,
        name="Notes",
        owner="developer",
        public_url="https://notes.example.com",
        url_giver="other",
        app_type="standard",
        hardware=(
            Requirement(type="DISPLAY"),
            Requirement(type="GPS", level="OPTIONAL", description="where"),
        ),
        permissions=("MICROPHONE", "LOCATION"),
        digest="d" * 64,
        tools=(an_app_tool("add"), an_app_tool("clear")),
        created=1_700_000_000.25,
        updated=1_700_000_000.25,
    )
    return replace(app, **more)


def an_install(package: str = "com.example.notes", **more: object) -> InstallRecord:
    return replace(InstallRecord(package=package, at=5.5), **more)


def a_session(user: str = "u1", **more: object) -> SessionRecord:
    session = SessionRecord(
        user=user,
        id=f"session of {user}",
        device={"modelName": "Even Realities G1", "hasDisplay": True, "display": {"maxTextLines": 5}},
        language="de",
        time_zone="Europe/Berlin",
        started=6.5,
    )
    return replace(session, **more)
