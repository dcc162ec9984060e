"""Creates the database engine and migrates the schema."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from sqlite3 import connect
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from toolcrib.errors import Refused, Unavailable
from toolcrib.private_files import FILE_MODE, check_folder, private_file, private_folder
from toolcrib.store.sql.database import BUSY_SECONDS, POOL_SIZE, WRITE_OPTION, Database
from toolcrib.store.sql.migrations import REVISIONS, VERSION_TABLE
from toolcrib.store.sql.tables import metadata

# --- Migrates the tables on opening, and refuses a database of a newer version ---

MIGRATION_LOCK_KEY = 0x746F6F6C63726962
"""Key of the Postgres advisory lock that serializes migrations: `toolcrib` in ASCII."""

MIGRATION_SECONDS = 3600.0
"""Timeout of the migration in seconds; a large database takes long."""
MIGRATION_WAIT_SECONDS = 60.0
"""Seconds that a start waits for a migration by another process, or for a lock on a table."""

REVISION = Column("version_num", String(32), nullable=False)
REVISIONS_TABLE = Table(
    VERSION_TABLE, MetaData(), REVISION, PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc")
)
"""The version table, as Alembic creates it."""


async def migrate_tables(database: Database) -> None:
    """Run the missing migrations, serialized by a lock; on most starts there are none."""
    async with database.read() as connection:
        if await _revision(connection) == REVISIONS[-1]:
            return
    async with database.write(timeout=MIGRATION_SECONDS, queue_timeout=MIGRATION_WAIT_SECONDS) as connection:
        if connection.dialect.name == "postgresql":
            limit = f"{MIGRATION_WAIT_SECONDS:.0f}s"
            await connection.execute(select(func.set_config("lock_timeout", limit, True)))
            await connection.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK_KEY)))
        revision = await _revision(connection)
        if revision is None:
            await connection.run_sync(_create_tables)
        elif revision != REVISIONS[-1]:
            await connection.run_sync(_upgrade)


async def _revision(connection: AsyncConnection) -> str | None:
    """Return the schema revision; None for a new database. Raise Refused for an unknown revision."""
    revision = await connection.run_sync(
        lambda sync: sync.scalar(select(REVISION)) if inspect(sync).has_table(VERSION_TABLE) else None
    )
    if revision is not None and revision not in REVISIONS:
        raise Refused(
            "INVALID_REQUEST",
            f"store: the database is at revision {revision!r}, this Toolcrib knows up to {REVISIONS[-1]!r}; "
            "run the newer Toolcrib that made it, or restore a copy from before",
        )
    return revision


def _create_tables(connection: Connection) -> None:
    """Create the current tables directly; a first start does not have to load Alembic and run migrations."""
    metadata.create_all(connection, checkfirst=False)
    REVISIONS_TABLE.create(connection)
    connection.execute(insert(REVISIONS_TABLE), {"version_num": REVISIONS[-1]})


def _upgrade(connection: Connection) -> None:
    # Lazy import: only a start with an old database needs Alembic.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "toolcrib.store.sql:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


# --- Builds the database engine for a store URL: SQLite in a file or in memory, or Postgres ---

CONNECT_SECONDS = 5
POOL_SECONDS = 5
"""Timeout in seconds of the pool; it is reached only if connections hang on close, see `Database`."""

PRAGMAS = (
    # First: the later pragmas may have to wait for a lock of another process.
    f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # NORMAL could lose acknowledged changes on a power failure
    "PRAGMA foreign_keys = ON",
    # KiB per connection. The default of 2,000 fills up slowly while the database grows, which looks like
    # a leak, and the system caches the same pages again.
    "PRAGMA cache_size = -512",
)

SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of SQLite's auxiliary files; SQLite creates them with the file mode of the database."""

IN_MEMORY_PATHS = (None, "", ":memory:")

URL_ADVICE = "use sqlite:///PATH, sqlite:// (in memory) or postgresql://USER:PASSWORD@HOST/NAME"


def database_of(url: str) -> Database:
    """Return the database of a URL; it connects on first use."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Neither chained nor quoted: the URL may contain a password.
        raise Refused("INVALID_REQUEST", f"store: that is no database address; {URL_ADVICE}") from None
    if parsed.drivername not in ENGINES:
        message = f"store: {parsed.drivername} is no database known here; {URL_ADVICE}"
        raise Refused("INVALID_REQUEST", message)
    return ENGINES[parsed.drivername](parsed, url)


def is_in_memory(url: str) -> bool:
    """Whether a URL names an in-memory database."""
    parsed = make_url(url)
    return parsed.drivername == "sqlite" and parsed.database in IN_MEMORY_PATHS


def _sqlite(parsed: URL, _url: str) -> Database:
    if parsed.host or parsed.query:
        raise Refused("INVALID_REQUEST", f"store: SQLite takes a path and nothing else; {URL_ADVICE}")
    in_memory = parsed.database in IN_MEMORY_PATHS
    if in_memory:
        engine = _memory()
    else:
        path = Path(str(parsed.database))
        _prepare_file(path)
        engine = _engine(URL.create("sqlite+aiosqlite", database=str(path)), pool_size=POOL_SIZE)
    event.listen(engine.sync_engine, "connect", _configure_connection)
    event.listen(engine.sync_engine, "begin", _begin)
    return Database(engine, pool_size=1 if in_memory else POOL_SIZE, open_grace=5 * BUSY_SECONDS)


def _memory() -> AsyncEngine:
    """Create an in-memory database, which exists as long as a connection is open."""
    uri = f"file:/{uuid4().hex}?vfs=memdb"
    # Cancellation can close the last pooled connection; this anchor prevents the loss of the database.
    anchor = connect(uri, uri=True)
    engine = _engine(f"sqlite+aiosqlite:///{uri}&uri=true", pool_size=1)

    def close_anchor(_engine: Engine) -> None:
        anchor.close()

    event.listen(engine.sync_engine, "engine_disposed", close_anchor)
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

    # The driver parses the URL itself, so that all parameters of libpq are supported.
    async def open_connection() -> Any:
        return await asyncpg.connect(url, **options)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    # The pre-ping costs a round trip, and avoids failures on stale connections after a server restart.
    engine = _engine(
        "postgresql+asyncpg://", pool_size=POOL_SIZE, pool_pre_ping=True, async_creator=open_connection
    )
    return Database(engine, faults=(asyncpg.PostgresError, asyncpg.InterfaceError))


ENGINES: dict[str, Callable[[URL, str], Database]] = {"sqlite": _sqlite, "postgresql": _postgres}


def _engine(url: URL | str, **options: Any) -> AsyncEngine:
    # Parameters are hidden in logged errors: they contain hashes of keys and names of users.
    options |= {"max_overflow": 0, "pool_timeout": POOL_SECONDS, "hide_parameters": True}
    return create_async_engine(url, **options)


def _prepare_file(path: Path) -> None:
    """Create the file with private permissions before it has content; restrict those of an existing one."""
    try:
        if path.parent.is_dir():
            check_folder(path.parent)
        else:
            private_folder(path.parent)
        # O_EXCL: closing a file that is in use would drop SQLite's POSIX locks on it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
        path.chmod(FILE_MODE)
    except FileExistsError:
        for each in (path, *(path.with_name(path.name + end) for end in SQLITE_SUFFIXES)):
            private_file(each)
    except OSError as error:
        message = f"the store cannot be made at {path}: {error.strerror or error}"
        raise Unavailable("SOURCE_DOWN", message) from error


def _configure_connection(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # If a statement is cut off, SQLAlchemy stops the driver's thread, and the driver stops it again on close.
    # The second stop would wait forever for a thread that has ended, so `stop` is made idempotent.
    driver: Any = connection.driver_connection
    driver.stop = cache(driver.stop)
    # Disables the driver's implicit transactions, which lock too late; `_begin` starts them.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITE_OPTION, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
