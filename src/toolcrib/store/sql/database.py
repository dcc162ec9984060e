"""Transactions on one database: every wait has a limit, and the caller's deadline shortens it."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from errno import errorcode
from math import inf
from ssl import SSLError
from typing import TYPE_CHECKING

import anyio
from anyio import CancelScope, Lock, Semaphore
from sqlalchemy import Executable, Table
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from toolcrib.errors import Lost, ToolcribError, Unavailable
from toolcrib.store.sql.health import MAX_LOCK_SECONDS, Health

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert

RETRY_AFTER = 2.0
TRANSACTION_SECONDS = 10.0
WAIT_SECONDS = 5.0
POOL_SIZE = 4
BUSY_SECONDS = 0.1
"""How long SQLite's own thread waits for a lock. Nothing interrupts it, so longer waits are retries here."""
RETRY_SECONDS = 0.02
ANSWER_SECONDS = 0.3
"""Left of the caller's deadline, so that the error reaches the caller in time."""
CLOSE_SECONDS = 5.0

WRITES = "toolcrib_writes"
"""Set on connections that are going to write, so that SQLite locks before they read and not after."""

_OUR_FAULT = (IntegrityError, DataError, ProgrammingError)
"""Errors of a statement, which say nothing about the store."""


class _NotOpenedError(Exception):
    """No connection could be opened, and the database is not why: each of SQLite needs a thread."""


_FAULTS = (DBAPIError, PoolTimeout, OSError, _NotOpenedError)


@dataclass(slots=True)
class Database:
    """An engine, and what can go wrong with it beside the errors SQLAlchemy has names for."""

    engine: AsyncEngine
    faults: tuple[type[Exception], ...] = ()
    patience: float = TRANSACTION_SECONDS
    """Seconds one transaction may take, with all its waits; a caller's earlier deadline goes first."""
    wait: float = WAIT_SECONDS
    """Seconds of these that a write may wait for the lock of another one."""
    open_grace: float = 0.0
    """Seconds beyond the limit for a try under way: SQLite gives up by itself."""
    pool_size: int = POOL_SIZE
    health: Health = field(default_factory=Health)
    _turn: Lock = field(default_factory=Lock, init=False)
    _places: Semaphore = field(init=False)
    """One per pooled connection, so that a wait for one can be cancelled and has the caller's deadline."""
    _closing: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"], init=False)

    def __post_init__(self) -> None:
        self._places = Semaphore(self.pool_size)

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """See one consistent state, with however many queries."""
        began, until = anyio.current_time(), _limit(self.patience)
        try:
            async with self._connected(until, writes=False) as connection:
                with _shielded(until):
                    yield connection
        except (*_FAULTS, *self.faults) as error:
            self._note(error, waited=anyio.current_time() - began, reading=True)
            raise _down(error) from error
        self.health.read()

    @asynccontextmanager
    async def write(
        self, *, patience: float | None = None, wait: float | None = None
    ) -> AsyncGenerator[AsyncConnection]:
        """Change something: committed for good when the block is left, or not at all.

        One at a time in this process: SQLite has one writer, whose rivals would poll for their turn.
        A caller that is cancelled leaves as long as it waits. From the first statement on cancellation
        waits, since a connection that is torn down in the middle leaves the outcome open. `wait` limits
        the time before that alone.
        """
        began, until, committing = anyio.current_time(), _limit(patience or self.patience), False
        start = min(until, began + (wait or self.wait))
        try:
            async with _held(self._turn, start), self._connected(start, writes=True) as connection:
                with _shielded(until):
                    yield connection
                    committing = True
                    await connection.commit()
        except (*_FAULTS, *self.faults) as error:
            self._note(error, waited=anyio.current_time() - began)
            raise (_lost() if committing and _cut_off(error) else _down(error)) from error
        self.health.wrote()

    async def try_write(self, statement: Executable, seconds: float) -> None:
        """Begin a write, execute a statement and roll back: shows a lock or a read-only database."""
        began, until = anyio.current_time(), _limit(seconds)
        try:
            async with _held(self._turn, until), self._connected(until, writes=True) as connection:
                with _shielded(until):
                    await connection.execute(statement)
        except (*_FAULTS, *self.faults) as error:
            self._note(error, waited=anyio.current_time() - began)
            raise _down(error) from error

    def insert(self, table: Table) -> "PostgresInsert | SqliteInsert":
        """An insert that can say what to do on a conflict, for which each engine has a class of its own."""
        # Late, because nobody uses both, and each takes its time to load.
        if self.engine.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert
        else:
            from sqlalchemy.dialects.sqlite import insert
        return insert(table)

    async def close(self) -> None:
        """Close every connection, also when cancelled: SQLite tidies its files up on the last one."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            if self._closing:
                await asyncio.wait(self._closing)
            await self.engine.dispose()
            terminating = _terminating()
            if terminating:
                await asyncio.wait(terminating)

    async def _open(self, until: float, *, writes: bool) -> AsyncConnection:
        """Connect and begin; while another process holds SQLite's lock, try again until the limit."""
        while True:
            connection = self.engine.connect()
            try:
                with _shielded(until + self.open_grace):
                    await connection.start()
                    await self._begin(connection, writes=writes)
            except BaseException as error:
                await self._give_back(connection)
                if isinstance(error, RuntimeError):  # Python's error where the system has no thread left
                    raise _NotOpenedError from error
                locked = isinstance(error, DBAPIError) and _is_locked(error)
                if not locked or anyio.current_time() + RETRY_SECONDS + BUSY_SECONDS > until:
                    raise
            else:
                return connection
            await anyio.sleep(RETRY_SECONDS)

    async def _begin(self, connection: AsyncConnection, *, writes: bool) -> None:
        if writes:
            await connection.execution_options(**{WRITES: True})
            await connection.begin()
        elif connection.dialect.name == "postgresql":
            # SQLite does so by itself; Postgres would see what others commit between two queries.
            await connection.execution_options(isolation_level="REPEATABLE READ")

    @asynccontextmanager
    async def _connected(self, until: float, *, writes: bool) -> AsyncGenerator[AsyncConnection]:
        async with _held(self._places, until):
            connection = await self._open(until, writes=writes)
            try:
                yield connection
            finally:
                await self._give_back(connection)

    async def _give_back(self, connection: AsyncConnection) -> None:
        """Return a connection to the pool; a server or disk that hangs does so on its own time."""
        # No task group: the caller must not wait for it. `close` does.
        closing = asyncio.create_task(connection.close())  # noqa: TID251 - see above
        self._closing.add(closing)
        closing.add_done_callback(self._closed)
        with CancelScope(deadline=anyio.current_time() + BUSY_SECONDS, shield=True):
            await asyncio.wait((closing,))

    def _closed(self, closing: "asyncio.Task[None]") -> None:
        self._closing.discard(closing)
        if not closing.cancelled():
            closing.exception()  # whatever it is, the pool has dropped the connection

    def _note(self, error: Exception, *, waited: float, reading: bool = False) -> None:
        """Tell a store that refuses from a caller that could not wait, and from a wrong statement."""
        if isinstance(error, _OUR_FAULT):
            return
        impatient = isinstance(error, TimeoutError | PoolTimeout) or _is_locked(error)
        if not impatient or waited >= MAX_LOCK_SECONDS - ANSWER_SECONDS:
            self.health.refuse(_reason(error), reading=reading)


def _terminating() -> set["asyncio.Task[object]"]:
    """Return the tasks that close connections which a deadline cut off.

    SQLAlchemy starts them where nobody can wait for them; left alone, they would outlive the engine.
    """
    return {
        task
        for task in asyncio.all_tasks()
        if getattr(task.get_coro(), "__name__", "") == "_terminate_graceful_close"
    }


def _limit(seconds: float) -> float:
    """When to give up, by the loop's clock: after so many seconds, or just before the caller's deadline."""
    now, deadline = anyio.current_time(), anyio.current_effective_deadline()
    if deadline == -inf:  # the caller is gone already; what needs no wait is done all the same
        return now + seconds
    left = deadline - now
    return now + min(seconds, max(left - ANSWER_SECONDS, left / 2))


@asynccontextmanager
async def _held(guard: Lock | Semaphore, until: float) -> AsyncGenerator[None]:
    """Hold a lock or a place; one that is free is taken without a chance for cancellation."""
    try:
        guard.acquire_nowait()
    except anyio.WouldBlock:
        with anyio.fail_after(until - anyio.current_time()):
            await guard.acquire()
    try:
        yield
    finally:
        guard.release()


def _shielded(until: float) -> AbstractContextManager[CancelScope]:
    return anyio.fail_after(until - anyio.current_time(), shield=True)


def unavailable(reason: str) -> Unavailable:
    """Make the error of a store that is away."""
    return Unavailable("SOURCE_DOWN", f"the store does not answer: {reason}", retry_after=RETRY_AFTER)


def _down(error: Exception) -> ToolcribError:
    return unavailable(_reason(error))


def _lost() -> ToolcribError:
    return Lost("OUTCOME_UNKNOWN", "the store went away during a change: look whether it was made")


def _cut_off(error: Exception) -> bool:
    return isinstance(error, OSError) or (isinstance(error, DBAPIError) and error.connection_invalidated)


def _is_locked(error: Exception) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", 0) if isinstance(error, DBAPIError) else 0
    return (code & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _reason(error: Exception) -> str:
    """Say what happened without addresses and statements."""
    if isinstance(error, TimeoutError | PoolTimeout):
        return "it took too long"
    if isinstance(error, SSLError):
        return f"TLS failed: {error.reason}"
    if isinstance(error, OSError):
        number = error.errno or 0
        return os.strerror(number) if number in errorcode else "it cannot be reached"
    cause = error.orig or error if isinstance(error, DBAPIError) else error
    said = str(cause.__cause__ or cause).partition("\n")[0][:200]
    # SQLite says "disk I/O error" of two dozen different things; the name tells which.
    name = getattr(cause, "sqlite_errorname", "")
    return f"{said} ({name})" if name.startswith("SQLITE_IOERR") else said
