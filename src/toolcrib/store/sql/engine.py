"""From a store's URL to its database: SQLite in a file or in memory, or Postgres."""

import os
from collections.abc import Callable
from pathlib import Path
from sqlite3 import connect
from typing import Any
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from toolcrib.errors import Refused, Unavailable
from toolcrib.store.sql.database import WRITES, Database

CONNECT_SECONDS = 5
POOL_SECONDS = 5
TRANSACTION_SECONDS = 10

PRAGMAS = (
    "PRAGMA busy_timeout = 5000",  # first: the ones after it may have to wait for another process
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # less would lose acknowledged changes with the power
    "PRAGMA foreign_keys = ON",
)

MEMORY = (None, "", ":memory:")

ACCEPTED = "use sqlite:///PATH, sqlite:// (in memory) or postgresql://USER:PASSWORD@HOST/NAME"


def database_of(url: str) -> Database:
    """Prepare the engine of a URL; it connects on first use."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Not chained, and not repeated: the address may hold a password.
        raise Refused("INVALID_REQUEST", f"store: that is no database address; {ACCEPTED}") from None
    make = ENGINES.get(parsed.drivername)
    if make is None:
        raise Refused("INVALID_REQUEST", f"store: {parsed.drivername} is no database known here; {ACCEPTED}")
    return make(parsed, url)


def _sqlite(parsed: URL, _url: str) -> Database:
    if parsed.host or parsed.query:
        raise Refused("INVALID_REQUEST", f"store: SQLite takes a path and nothing else; {ACCEPTED}")
    engine = _memory() if parsed.database in MEMORY else _file(Path(str(parsed.database)))
    event.listen(engine.sync_engine, "connect", _tune)
    event.listen(engine.sync_engine, "begin", _begin)
    # No time limit: SQLite works in a thread nobody can interrupt, and its busy timeout ends all waiting.
    return Database(engine)


def _file(path: Path) -> AsyncEngine:
    _place(path)
    return _engine(URL.create("sqlite+aiosqlite", database=str(path)), pool_size=4)


def _memory() -> AsyncEngine:
    """Make a database in memory, which lives as long as anyone is connected to it."""
    place = f"file:/{uuid4().hex}?vfs=memdb"
    # Pooled connections come and go, the last one too when a caller is cancelled; this one stays.
    anchor = connect(place, uri=True)
    engine = _engine(f"sqlite+aiosqlite:///{place}&uri=true", pool_size=1)

    def let_go(_engine: Engine) -> None:
        anchor.close()

    event.listen(engine.sync_engine, "engine_disposed", let_go)
    return engine


def _postgres(_parsed: URL, url: str) -> Database:
    try:
        import asyncpg
    except ModuleNotFoundError:
        message = 'store: Postgres needs its driver; pip install "toolcrib[postgres]"'
        raise Refused("INVALID_REQUEST", message) from None
    options: dict[str, Any] = {
        "timeout": CONNECT_SECONDS,
        "server_settings": {"application_name": "toolcrib"},
    }

    # The driver reads the address itself, so that it may say all that other Postgres clients understand.
    async def open_connection() -> Any:
        return await asyncpg.connect(url, **options)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    # Asking whether a pooled connection still lives costs a round trip, and spares a failure after a restart.
    engine = _engine("postgresql+asyncpg://", pool_size=4, pool_pre_ping=True, async_creator=open_connection)
    faults = (asyncpg.PostgresError, asyncpg.InterfaceError)
    return Database(engine, faults=faults, patience=TRANSACTION_SECONDS)


ENGINES: dict[str, Callable[[URL, str], Database]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
}


def _engine(url: URL | str, **options: Any) -> AsyncEngine:
    # Errors show their statement in logs; its values are hashes of keys and names of users.
    options |= {"max_overflow": 0, "pool_timeout": POOL_SECONDS, "hide_parameters": True}
    return create_async_engine(url, **options)


def _place(path: Path) -> None:
    """Make a file that nobody else may read, before anything is in it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Only a new file is opened: closing one that is in use would drop SQLite's locks on it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        message = f"the store cannot be made at {path}: {error.strerror}"
        raise Unavailable("SOURCE_DOWN", message) from error


def _tune(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver would begin transactions by itself, and too late for a lock; `_begin` does it.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
