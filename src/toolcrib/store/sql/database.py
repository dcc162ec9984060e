"""Transactions on one database: bounded in time, deaf to cancellation, failing with a Problem."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from errno import errorcode
from math import inf
from ssl import SSLError
from typing import TYPE_CHECKING

from anyio import CancelScope, Lock, fail_after
from sqlalchemy import Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from toolcrib.errors import Lost, ToolcribError, Unavailable

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert

RETRY_AFTER = 2.0

WRITES = "toolcrib_writes"
"""Set on connections that are going to write, so that SQLite locks before they read and not after."""


@dataclass(slots=True)
class Database:
    """An engine, and what can go wrong with it beside the errors SQLAlchemy has names for."""

    engine: AsyncEngine
    faults: tuple[type[Exception], ...] = ()
    patience: float = inf
    """Seconds one transaction may take, waiting for its turn included."""
    _turn: Lock = field(default_factory=Lock, init=False)

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """See one consistent state, with however many queries."""
        try:
            with fail_after(self.patience, shield=True):
                async with self.engine.connect() as connection:
                    # SQLite does so by itself; Postgres would see what others commit between two queries.
                    if connection.dialect.name == "postgresql":
                        await connection.execution_options(isolation_level="REPEATABLE READ")
                    yield connection
        except (DBAPIError, PoolTimeout, OSError, *self.faults) as error:
            raise _down(error) from error

    @asynccontextmanager
    async def write(self, *, patience: float | None = None) -> AsyncGenerator[AsyncConnection]:
        """Change something: committed for good when the block is left, or not at all.

        One at a time in this process: SQLite has one writer, whose rivals would poll for their turn.
        Cancellation waits, since a connection that is torn down in the middle leaves the outcome open.
        """
        committing = False
        try:
            with fail_after(patience or self.patience, shield=True):
                async with self._turn, self.engine.connect() as connection:
                    await connection.execution_options(**{WRITES: True})
                    yield connection
                    committing = True
                    await connection.commit()
        except (DBAPIError, PoolTimeout, OSError, *self.faults) as error:
            raise (_lost() if committing and _cut_off(error) else _down(error)) from error

    def insert(self, table: Table) -> "PostgresInsert | SqliteInsert":
        """An insert that can say what to do on a conflict, for which each engine has a class of its own."""
        # Late, because nobody uses both, and each takes its time to load.
        if self.engine.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert
        else:
            from sqlalchemy.dialects.sqlite import insert
        return insert(table)

    async def close(self) -> None:
        """Let go of every connection, also when cancelled: SQLite tidies its files up on the last one."""
        with CancelScope(shield=True):
            await self.engine.dispose()


def _down(error: Exception) -> ToolcribError:
    message = f"the store does not answer: {_reason(error)}"
    return Unavailable("SOURCE_DOWN", message, retry_after=RETRY_AFTER)


def _lost() -> ToolcribError:
    return Lost("OUTCOME_UNKNOWN", "the store went away during a change: look whether it was made")


def _cut_off(error: Exception) -> bool:
    return isinstance(error, OSError) or (isinstance(error, DBAPIError) and error.connection_invalidated)


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
    return str(cause.__cause__ or cause).partition("\n")[0][:200]
