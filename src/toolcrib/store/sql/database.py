"""Database access: transactions with a deadline, health, and the database's clock."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from errno import errorcode
from math import inf
from ssl import SSLError
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio
from anyio import CancelScope, Lock, Semaphore
from sqlalchemy import Executable, RowMapping, Table, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from toolcrib.clock import Clock, ClockReading
from toolcrib.errors import Lost, ToolcribError, Unavailable
from toolcrib.store.sql.tables import clock as table

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert

# --- Health of the store, from the outcomes of its latest writes and reads ---

log = logging.getLogger(__name__)

MAX_LOCK_SECONDS = 1.0
"""Seconds after which a write that waits for a lock counts as refused."""


@dataclass(slots=True)
class Health:
    """Outcome of the last write and read. Checking `refused` costs an attribute lookup."""

    clock: Callable[[], float] = monotonic
    refused: str = ""
    """Why the store refuses writes or reads; empty while it is healthy."""
    written: float = -inf
    """Time of the last committed write."""
    tried: float = -inf
    """Time of the last committed or refused write."""
    _unread: bool = False

    def wrote(self) -> None:
        """Record a committed write, which clears any failure."""
        self.written = self.tried = self.clock()
        if self.refused:
            log.warning("the store takes writes again")
        self.refused, self._unread = "", False

    def read(self) -> None:
        """Record a successful read, which clears the failure of a read but not that of a write."""
        if self._unread:
            self.refused, self._unread = "", False
            log.warning("the store answers again")

    def refuse(self, reason: str, *, reading: bool = False) -> None:
        """Record that the store refused a write, or a read."""
        if not reading:
            self.tried = self.clock()
        if not self.refused:
            log.warning("the store refuses %s: %s", "reads" if reading else "writes", reason)
            self._unread = reading
        elif not reading:
            self._unread = False
        self.refused = reason


# --- Transactions on one database: every wait has a timeout, shortened by the caller's deadline ---

RETRY_AFTER_SECONDS = 2.0
TRANSACTION_SECONDS = 10.0
QUEUE_SECONDS = 5.0
POOL_SIZE = 4
BUSY_SECONDS = 0.1
"""SQLite's busy timeout in seconds. It blocks a thread uncancellably, so longer waits are retries."""
LOCK_RETRY_SECONDS = 0.02
RESPONSE_RESERVE_SECONDS = 0.3
"""Seconds reserved of the caller's deadline, so that the error reaches the caller in time."""
CLOSE_SECONDS = 5.0

WRITE_OPTION = "toolcrib_writes"
"""Execution option of write connections, so that SQLite takes its write lock at BEGIN IMMEDIATE."""

_STATEMENT_ERRORS = (IntegrityError, DataError, ProgrammingError)
"""Errors of a statement; they do not affect the health of the store."""


class _NoThreadError(Exception):
    """No connection could be opened for lack of a thread: each SQLite connection needs one."""


_CONNECTION_ERRORS = (DBAPIError, PoolTimeout, OSError, _NoThreadError)


@dataclass(slots=True)
class Database:
    """An engine with timeouts, a write lock, health state and the driver errors SQLAlchemy does not wrap."""

    engine: AsyncEngine
    faults: tuple[type[Exception], ...] = ()
    timeout: float = TRANSACTION_SECONDS
    """Timeout of a transaction in seconds, waits included; an earlier deadline of the caller wins."""
    queue_timeout: float = QUEUE_SECONDS
    """Seconds of that timeout that a write may wait for its lock and connection."""
    open_grace: float = 0.0
    """Extra seconds for an attempt in progress at the timeout: SQLite ends it by its busy timeout."""
    pool_size: int = POOL_SIZE
    health: Health = field(default_factory=Health)
    _write_lock: Lock = field(default_factory=Lock, init=False)
    _permits: Semaphore = field(init=False)
    """One permit per pooled connection: waiting for one is cancellable and bounded by the deadline."""
    _closing: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"], init=False)

    def __post_init__(self) -> None:
        self._permits = Semaphore(self.pool_size)

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """Open a read transaction: all of its queries see one consistent snapshot."""
        began, until = anyio.current_time(), _deadline(self.timeout)
        try:
            async with self._connected(until, writes=False) as connection:
                with _shielded(until):
                    yield connection
        except (*_CONNECTION_ERRORS, *self.faults) as error:
            self._note(error, waited=anyio.current_time() - began, reading=True)
            raise unavailable(_reason(error)) from error
        self.health.read()

    @asynccontextmanager
    async def write(
        self, *, timeout: float | None = None, queue_timeout: float | None = None
    ) -> AsyncGenerator[AsyncConnection]:
        """Open a write transaction: committed when the block ends, rolled back on an exception.

        Writes of this process are serialized by a lock: SQLite has one writer, and others would poll.
        A caller can be cancelled while it waits. From the first statement on, cancellation is deferred
        (shielded), since tearing down a connection halfway leaves the outcome unknown. `queue_timeout`
        limits only the time before that.
        """
        began, until, committing = anyio.current_time(), _deadline(timeout or self.timeout), False
        start = min(until, began + (queue_timeout or self.queue_timeout))
        try:
            async with _acquired(self._write_lock, start), self._connected(start, writes=True) as connection:
                with _shielded(until):
                    yield connection
                    committing = True
                    await connection.commit()
        except (*_CONNECTION_ERRORS, *self.faults) as error:
            self._note(error, waited=anyio.current_time() - began)
            if committing and _connection_lost(error):
                message = "the store went away during a change: look whether it was made"
                raise Lost("OUTCOME_UNKNOWN", message) from error
            raise unavailable(_reason(error)) from error
        self.health.wrote()

    async def try_write(self, statement: Executable, seconds: float) -> None:
        """Begin a write, execute a statement and roll back; detects a lock or a read-only database."""
        began, until = anyio.current_time(), _deadline(seconds)
        try:
            async with _acquired(self._write_lock, until), self._connected(until, writes=True) as connection:
                with _shielded(until):
                    await connection.execute(statement)
        except (*_CONNECTION_ERRORS, *self.faults) as error:
            self._note(error, waited=anyio.current_time() - began)
            raise unavailable(_reason(error)) from error

    async def rows(self, query: Executable) -> Sequence[RowMapping]:
        """Return all rows of a query, in a read transaction of its own."""
        async with self.read() as connection:
            return (await connection.execute(query)).mappings().all()

    async def row(self, query: Executable) -> RowMapping | None:
        """Return the only row of a query, or None."""
        found = await self.rows(query)
        return found[0] if found else None

    async def execute(self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None) -> int:
        """Execute a statement in a write transaction of its own; return the number of affected rows."""
        async with self.write() as connection:
            return (await connection.execute(statement, rows)).rowcount

    def insert(self, table: Table) -> "PostgresInsert | SqliteInsert":
        """Return an insert with ON CONFLICT support, for which each dialect has its own class."""
        # Lazy import: a process uses only one of them, and each is slow to load.
        if self.engine.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert
        else:
            from sqlalchemy.dialects.sqlite import insert
        return insert(table)

    async def close(self) -> None:
        """Close every connection, even when cancelled: SQLite checkpoints its WAL on the last close."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            if self._closing:
                await asyncio.wait(self._closing)
            await self.engine.dispose()
            # SQLAlchemy starts tasks that close the connections which a deadline cut off, without a handle to
            # await; unawaited, they would outlive the engine.
            names = ((task, getattr(task.get_coro(), "__name__", "")) for task in asyncio.all_tasks())
            if terminating := {task for task, name in names if name == "_terminate_graceful_close"}:
                await asyncio.wait(terminating)

    async def _open(self, until: float, *, writes: bool) -> AsyncConnection:
        """Connect and begin; while another process holds SQLite's lock, retry until the timeout."""
        while True:
            connection = self.engine.connect()
            try:
                with _shielded(until + self.open_grace):
                    await connection.start()
                    await self._begin(connection, writes=writes)
            except BaseException as error:
                await self._give_back(connection)
                if isinstance(error, RuntimeError):  # raised by Python if no thread can be started
                    raise _NoThreadError from error
                locked = isinstance(error, DBAPIError) and _is_locked(error)
                if not locked or anyio.current_time() + LOCK_RETRY_SECONDS + BUSY_SECONDS > until:
                    raise
            else:
                return connection
            await anyio.sleep(LOCK_RETRY_SECONDS)

    async def _begin(self, connection: AsyncConnection, *, writes: bool) -> None:
        if writes:
            await connection.execution_options(**{WRITE_OPTION: True})
            await connection.begin()
        elif connection.dialect.name == "postgresql":
            # The default on SQLite; Postgres' default (READ COMMITTED) would see commits between two queries.
            await connection.execution_options(isolation_level="REPEATABLE READ")

    @asynccontextmanager
    async def _connected(self, until: float, *, writes: bool) -> AsyncGenerator[AsyncConnection]:
        async with _acquired(self._permits, until):
            connection = await self._open(until, writes=writes)
            try:
                yield connection
            finally:
                await self._give_back(connection)

    async def _give_back(self, connection: AsyncConnection) -> None:
        """Return a connection to the pool; after a short wait a hung close continues in the background."""
        # No task group: the caller must not wait for the task. `close` does.
        closing = asyncio.create_task(connection.close())  # noqa: TID251 - see above
        self._closing.add(closing)
        closing.add_done_callback(self._closed)
        with CancelScope(deadline=anyio.current_time() + BUSY_SECONDS, shield=True):
            await asyncio.wait((closing,))

    def _closed(self, closing: "asyncio.Task[None]") -> None:
        self._closing.discard(closing)
        if not closing.cancelled():
            closing.exception()  # retrieved and ignored: the pool has dropped the connection

    def _note(self, error: Exception, *, waited: float, reading: bool = False) -> None:
        """Mark the store unhealthy, unless a statement was invalid or the caller's deadline was too short."""
        if isinstance(error, _STATEMENT_ERRORS):
            return
        timed_out = isinstance(error, TimeoutError | PoolTimeout) or _is_locked(error)
        if not timed_out or waited >= MAX_LOCK_SECONDS - RESPONSE_RESERVE_SECONDS:
            self.health.refuse(_reason(error), reading=reading)


def _deadline(seconds: float) -> float:
    """Return the deadline by the loop's clock: in `seconds`, or just before the caller's deadline."""
    now, deadline = anyio.current_time(), anyio.current_effective_deadline()
    if deadline == -inf:  # the caller is cancelled; work that needs no waiting is still done
        return now + seconds
    remaining = deadline - now
    return now + min(seconds, max(remaining - RESPONSE_RESERVE_SECONDS, remaining / 2))


@asynccontextmanager
async def _acquired(guard: Lock | Semaphore, until: float) -> AsyncGenerator[None]:
    """Hold a lock or semaphore; a free one is acquired without a checkpoint (no cancellation)."""
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
    """Return the error for an unavailable store, with a Retry-After."""
    return Unavailable("SOURCE_DOWN", f"the store does not answer: {reason}", retry_after=RETRY_AFTER_SECONDS)


def _connection_lost(error: Exception) -> bool:
    return isinstance(error, OSError) or (isinstance(error, DBAPIError) and error.connection_invalidated)


def _is_locked(error: Exception) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", 0) if isinstance(error, DBAPIError) else 0
    return (code & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _reason(error: Exception) -> str:
    """Return the reason of an error, without addresses and statements."""
    if isinstance(error, TimeoutError | PoolTimeout):
        return "it took too long"
    if isinstance(error, SSLError):
        return f"TLS failed: {error.reason}"
    if isinstance(error, OSError):
        number = error.errno or 0
        return os.strerror(number) if number in errorcode else "it cannot be reached"
    cause = error.orig or error if isinstance(error, DBAPIError) else error
    message = str(cause.__cause__ or cause).partition("\n")[0][:200]
    # SQLite uses "disk I/O error" for two dozen conditions; the error name identifies which.
    name = getattr(cause, "sqlite_errorname", "")
    return f"{message} ({name})" if name.startswith("SQLITE_IOERR") else message


# --- Stores clock readings, so that the time used for expiry never goes back after a restart ---

CLOCK_SAVE_SECONDS = 60.0
"""Seconds between two stored readings."""
_CLOCK_ROW_ID = 1
_READING_COLUMNS = tuple(each.name for each in fields(ClockReading))


async def resume_clock(database: Database, clock: Clock) -> None:
    """Resume a clock from the last stored reading, if there is one."""
    columns = (table.c[name] for name in _READING_COLUMNS)
    row = await database.row(select(*columns).where(table.c.id == _CLOCK_ROW_ID))
    if row is not None:
        clock.resume(ClockReading(**row))


async def save_clock(database: Database, clock: Clock) -> None:
    """Store a reading unless a later one is stored, such as that of another replica."""
    insert = database.insert(table).values(id=_CLOCK_ROW_ID, **asdict(clock.reading()))
    new = {name: insert.excluded[name] for name in _READING_COLUMNS}
    later = insert.excluded["seen"] > table.c.seen
    upsert = insert.on_conflict_do_update(index_elements=[table.c.id], set_=new, where=later)
    async with database.write(queue_timeout=MAX_LOCK_SECONDS) as connection:
        await connection.execute(upsert)


async def save_clock_periodically(
    database: Database, clock: Clock, every: float = CLOCK_SAVE_SECONDS
) -> None:
    """Store a reading now and then every minute, until cancelled; then store a final one."""
    try:
        while True:
            try:
                await save_clock(database, clock)
            except ToolcribError as error:
                log.warning("the time cannot be stored now, and is tried again: %s", error)
            await anyio.sleep(every)
    finally:
        with anyio.move_on_after(MAX_LOCK_SECONDS, shield=True), suppress(ToolcribError):
            await save_clock(database, clock)
