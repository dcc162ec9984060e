"""Processes that use a store beside the test, one of which does not live long."""

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from typing import Any

import anyio
import pytest
from sqlalchemy import Engine, event

from tests.contracts.stores import an_audit_entry
from tests.store.sql.secret_rows import wrapping
from toolcrib.interfaces import KeyRecord, UsageRow
from toolcrib.store import open_store
from toolcrib.store.sql import secret_values

Line = Any
"""One end of a pipe, whose type has another name on every platform."""

_context = multiprocessing.get_context("forkserver")
# Loaded once by the server all children come from: most of a start is imports.
_context.set_forkserver_preload(["tests.store.sql.children", "toolcrib.store.sql.store", "alembic.command"])


def start(work: Callable[..., None], *arguments: object) -> tuple[ForkServerProcess, Line]:
    """Run `work(connection, *arguments)` in another process; what it sends is read from the answer."""
    here, there = _context.Pipe(duplex=False)
    child = _context.Process(target=work, args=(there, *arguments), daemon=True)
    child.start()
    there.close()
    return child, here


def write_until_killed(told: Line, url: str, prefix: str) -> None:
    """Add keys and save overlays for ever; say each one when, and only when, the store says it is done."""

    async def main() -> None:
        store = await open_store(url)
        version, _ = await store.overlay.load()
        number = 0
        while True:
            number += 1
            name = f"{prefix}-{number}"
            await store.keys.add(KeyRecord(name=name, digest="d" * 64))
            told.send_bytes(f"key {name}".encode())
            version = await store.overlay.save({"last": name}, expected=version) or 0
            told.send_bytes(f"overlay {version}".encode())

    anyio.run(main)


def share_the_work(told: Line, url: str, name: str, rounds: int) -> None:
    """Start on a database that may be empty, count up in the overlay against rivals, and add usage."""

    async def main() -> None:
        store = await open_store(url)
        wins = 0
        for number in range(rounds):
            await store.keys.add(KeyRecord(name=f"{name}-{number}", digest="d"))
            version, document = await store.overlay.load()
            saved = await store.overlay.save({"sum": document.get("sum", 0) + 1}, expected=version)
            wins += saved is not None
            await store.usage.add([UsageRow(day="2026-01-01", tool="t", caller="c", calls=1)])
        await store.close()
        told.send_bytes(str(wins).encode())

    anyio.run(main)


def die_while_opening(told: Line, url: str, statement: int) -> None:
    """Open a store, and be killed just before the database is given a statement; say so if it opens."""
    left = statement

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    async def main() -> None:
        store = await open_store(url)
        told.send_bytes(b"opened")
        await store.close()

    event.listen(Engine, "before_cursor_execute", count)
    anyio.run(main)


def write_audit(told: Line, url: str, count: int) -> None:
    """Append audit records, one after the other."""
    del told

    async def main() -> None:
        store = await open_store(url)
        for _ in range(count):
            await store.audit.add(an_audit_entry())
        await store.close()

    anyio.run(main)


def die_while_protecting(told: Line, url: str, moment: int) -> None:
    """Open a store with the admin key, and be killed before a statement, also one that cleans the file."""
    left = moment

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    class Counting(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            count()
            return super().execute(*arguments)

    def connect(path: str, **options: Any) -> sqlite3.Connection:
        return sqlite3.connect(path, factory=Counting, **options)

    async def main() -> None:
        store = await open_store(url, wrapping=wrapping("the admin key of a test, long enough to use"))
        told.send_bytes(b"opened")
        await store.close()

    event.listen(Engine, "before_cursor_execute", count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_values, "connect", connect)
        anyio.run(main)
