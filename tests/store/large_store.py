"""A crowd in a store: as many apps and users as a busy house has, written faster than one by one."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import anyio
import asyncpg
from sqlalchemy import Table, make_url

from toolcrib.store import open_store
from toolcrib.store.sql import tables

MEASURED = "measured"
"""The user who is the same in a crowd and alone: here, with the first apps installed and nothing off."""

THEN = 1_700_000_000.0
DEVICE = json.dumps({"modelName": "Even Realities G1", "hasDisplay": True, "hasMicrophone": True})

Rows = Iterable[tuple[Any, ...]]


def package(number: int) -> str:
    """Name the app of a number; the measured user has those from 0 on."""
    return f"com.example.app{number:05}"


async def fill(
    database_url: str,
    *,
    apps: int = 1000,
    users: int = 100_000,
    installs: int = 20,
    tools_per_app: int = 5,
) -> None:
    """Make the tables of an empty database, and write all of it; the measured user is one of the users."""
    store = await open_store(database_url)
    await store.close()
    content = [
        *_offered(apps, tools_per_app),
        *_people(users),
        (tables.installs, _installs(apps, users, min(installs, apps))),
    ]
    if database_url.startswith("sqlite"):
        await anyio.to_thread.run_sync(_write, str(make_url(database_url).database), content)
    else:
        await _copy(database_url, content)


def _offered(apps: int, tools_per_app: int) -> Iterator[tuple[Table, Rows]]:
    yield tables.apps, (_app(number) for number in range(apps))
    yield (
        tables.app_tools,
        (
            (package(number), place, _definition(number, place), None)
            for number in range(apps)
            for place in range(tools_per_app)
        ),
    )
    yield tables.marks, [("apps", apps)]


def _people(users: int) -> Iterator[tuple[Table, Rows]]:
    here = range(0, users, 10)
    yield tables.users, ((_user(number), "en", "Europe/Berlin", THEN) for number in range(users))
    yield (
        tables.sessions,
        ((_user(number), f"session-{number}", DEVICE, "en", "Europe/Berlin", THEN, THEN) for number in here),
    )
    yield tables.disabled, ((_user(number), f"{package(number)}:tool_0") for number in here if number)


def _installs(apps: int, users: int, installs: int) -> Rows:
    settings = json.dumps({"voice": "plain", "size": 2})
    for number in range(users):
        for step in range(installs):
            yield _user(number), package((number + step) % apps), THEN, settings


def _user(number: int) -> str:
    return f"user-{number:07}" if number else MEASURED


def _app(number: int) -> tuple[Any, ...]:
    hardware = json.dumps([{"type": "DISPLAY", "level": "OPTIONAL"}])
    url = f"https://app{number:05}.example.com"
    about = (
        package(number),
        f"App {number}",
        "developer",
        url,
        "other",
        "background",
        hardware,
        "[]",
        f"{number:064x}",
        f"{number + 1:064x}",
    )
    return (*about, 1, THEN + number, THEN + number)


def _definition(app: int, place: int) -> str:
    """Say what a tool does, at the length a developer would."""
    when = {"type": "string", "description": "When to remind the user, as a date and time or in their words"}
    text = {"type": "string", "description": "What to remind the user of, in one short sentence"}
    return json.dumps(
        {
            "name": f"tool_{place}",
            "description": f"Tool {place} of app {app}: keep something in mind and bring it up in time",
            "inputSchema": {
                "type": "object",
                "properties": {"when": when, "text": text},
                "required": ["text"],
            },
            "mentraExtensions": {
                "activationPhrases": [f"remember {app} {place}"],
                "category": "productivity",
            },
        }
    )


def _columns(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def _write(path: str, content: Iterable[tuple[Table, Rows]]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        # Nobody misses it after a crash, which is all that waiting for the disk is good for.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -400000")
        for table, rows in content:
            names = ", ".join(f'"{name}"' for name in _columns(table))
            places = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {table.name} ({names}) VALUES ({places})", rows)  # noqa: S608 - our own names
        connection.commit()


async def _copy(url: str, content: Iterable[tuple[Table, Rows]]) -> None:
    connect: Any = asyncpg.connect  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    connection: Any = await connect(url)
    try:
        for table, rows in content:
            await connection.copy_records_to_table(table.name, records=rows, columns=_columns(table))
        # As the database would by itself within a minute.
        await connection.execute("ANALYZE")
    finally:
        await connection.close()
