"""Recorded calls and usage counts."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Insert, RowMapping, Table, case, delete, insert, select, tuple_

from toolcrib.interfaces import CallRow, UsageRow
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import LATENCY_COLUMNS, calls, storable, usage

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert

# --- Bulk inserts, cheap enough to record every call of a busy gateway ---

Row = tuple[Any, ...]


class BulkInsert:
    """A precompiled bulk insert, for rows in the order of the table's columns.

    SQLAlchemy's type processing per value takes four times as long as the insert itself. Only the
    sanitizing of text remains here, so that one invalid string cannot fail a whole batch.
    """

    def __init__(self, database: Database, statement: Insert, table: Table) -> None:
        self._database = database
        names = [column.name for column in table.columns if column is not table.autoincrement_column]
        # Inline: no RETURNING clause, since the generated row numbers are not needed.
        compiled = statement.inline().compile(dialect=database.engine.dialect, column_keys=names)
        self._sql = compiled.string

    async def write(self, rows: Iterable[Row]) -> None:
        """Insert all rows in one transaction."""
        if not (values := [_storable(row) for row in rows]):
            return
        async with self._database.write() as connection:
            await connection.exec_driver_sql(self._sql, values)


def _storable(row: Row) -> Row:
    return tuple(
        [value if value.__class__ is not str or value.isprintable() else storable(value) for value in row]
    )


# --- The history of recent calls, for operators ---

CALL_COLUMNS = tuple(each.name for each in fields(CallRow))
CALL_VALUES = attrgetter(*CALL_COLUMNS)
NEWEST_FIRST = (calls.c.at.desc(), calls.c.number.desc())


class SqlCalls:
    """Recent calls in a table, pruned by count."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch = BulkInsert(database, insert(calls), calls)

    async def add(self, rows: Sequence[CallRow]) -> None:
        """Insert a batch of calls."""
        await self._batch.write(map(CALL_VALUES, rows))

    async def recent(
        self, *, limit: int, tool: str | None = None, caller: str | None = None, before: float | None = None
    ) -> Sequence[CallRow]:
        """Return calls newest first, by the given filters."""
        query = select(*(calls.c[name] for name in CALL_COLUMNS)).order_by(*NEWEST_FIRST).limit(limit)
        if tool is not None:
            query = query.where(calls.c.tool == tool)
        if caller is not None:
            query = query.where(calls.c.caller == caller)
        if before is not None:
            query = query.where(calls.c.at < before)
        return [CallRow(**row) for row in await self._database.rows(query)]

    async def prune(self, keep: int, mutations: int) -> int:
        """Delete all but the newest `keep` calls and `mutations` mutation calls; return the deleted count."""
        other_rows = await self._prune(keep, calls.c.mutation.is_(False))
        return other_rows + await self._prune(mutations, calls.c.mutation.is_(True))

    async def _prune(self, keep: int, which: ColumnElement[bool]) -> int:
        position = (calls.c.at, calls.c.number)
        async with self._database.write() as connection:
            newest = select(*position).where(which).order_by(*NEWEST_FIRST)
            last = (await connection.execute(newest.offset(keep).limit(1))).one_or_none()
            if last is None:
                return 0
            excess = tuple_(*position) <= tuple_(*last)
            return (await connection.execute(delete(calls).where(which, excess))).rowcount


# --- Usage counters per day, tool and caller, which the database sums ---

USAGE_KEY = (usage.c.day, usage.c.tool, usage.c.caller)
COUNT_COLUMNS = ("calls", "errors", "cached", "milliseconds")
USAGE_COLUMNS = ("day", "tool", "caller", *COUNT_COLUMNS, "last_used")
USAGE_VALUES = attrgetter(*USAGE_COLUMNS)
NO_LATENCIES = (0,) * len(LATENCY_COLUMNS)


class SqlUsage:
    """Usage counters in a table, incremented by upserts."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch = BulkInsert(database, _increment(database.insert(usage)), usage)

    async def add(self, rows: Sequence[UsageRow]) -> None:
        """Add a batch of counts to the stored ones (bulk upsert)."""
        # Sorted, so that concurrent writers lock the rows in one order (no deadlock).
        await self._batch.write(sorted(map(_usage_values, rows)))

    async def totals(
        self,
        *,
        since: str | None = None,
        tool: str | None = None,
        app: str | None = None,
        caller: str | None = None,
    ) -> Sequence[UsageRow]:
        """Return the rows since a day, by day, tool and caller; `app` selects all tools of a package."""
        query = select(usage).order_by(*USAGE_KEY)
        if since is not None:
            query = query.where(usage.c.day >= since)
        if tool is not None:
            query = query.where(usage.c.tool == tool)
        if app is not None:
            # A range from `:` to the next character `;`, since LIKE differs between the engines.
            query = query.where(usage.c.tool >= f"{app}:", usage.c.tool < f"{app};")
        if caller is not None:
            query = query.where(usage.c.caller == caller)
        return [_usage_row(row) for row in await self._database.rows(query)]


def _increment(insert: "PostgresInsert | SqliteInsert") -> "PostgresInsert | SqliteInsert":
    new = insert.excluded
    later = case((new.last_used > usage.c.last_used, new.last_used), else_=usage.c.last_used)
    sums = {usage.c[name]: usage.c[name] + new[name] for name in (*COUNT_COLUMNS, *LATENCY_COLUMNS)}
    return insert.on_conflict_do_update(index_elements=USAGE_KEY, set_={**sums, usage.c.last_used: later})


def _usage_values(row: UsageRow) -> Row:
    counts = row.latencies or NO_LATENCIES
    if len(counts) != len(LATENCY_COLUMNS):
        raise ValueError(f"latencies has {len(counts)} buckets, not {len(LATENCY_COLUMNS)}")
    return (*USAGE_VALUES(row), *counts)


def _usage_row(row: RowMapping) -> UsageRow:
    plain = {name: row[name] for name in USAGE_COLUMNS}
    return UsageRow(**plain, latencies=tuple(row[bucket] for bucket in LATENCY_COLUMNS))
