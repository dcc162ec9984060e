"""Usage counters per day, tool and caller, which the database sums."""

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from sqlalchemy import RowMapping, case, select

from toolcrib.interfaces import UsageRow
from toolcrib.store.sql.batch import Batch, Row
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import BUCKETS, usage

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert

PLACE = (usage.c.day, usage.c.tool, usage.c.caller)
COUNTS = ("calls", "errors", "cached", "milliseconds")
PLAIN = ("day", "tool", "caller", *COUNTS, "last_used")
PLAIN_VALUES = attrgetter(*PLAIN)
NO_LATENCIES = (0,) * len(BUCKETS)


class SqlUsage:
    """Usage counters in a table, incremented by upserts."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch = Batch(database, _adding(database.insert(usage)), usage)

    async def add(self, rows: Sequence[UsageRow]) -> None:
        """Add a batch of counts to the stored ones (bulk upsert)."""
        # Sorted, so that concurrent writers lock the rows in one order (no deadlock).
        await self._batch.write(sorted(map(_values, rows)))

    async def totals(
        self,
        *,
        since: str | None = None,
        tool: str | None = None,
        app: str | None = None,
        caller: str | None = None,
    ) -> Sequence[UsageRow]:
        """Return the rows since a day, by day, tool and caller; `app` selects all tools of a package."""
        query = select(usage).order_by(*PLACE)
        if since is not None:
            query = query.where(usage.c.day >= since)
        if tool is not None:
            query = query.where(usage.c.tool == tool)
        if app is not None:
            # A range from `:` to the next character `;`, since LIKE differs between the engines.
            query = query.where(usage.c.tool >= f"{app}:", usage.c.tool < f"{app};")
        if caller is not None:
            query = query.where(usage.c.caller == caller)
        async with self._database.read() as connection:
            found = await connection.execute(query)
            return [_row(row) for row in found.mappings()]


def _adding(insert: "PostgresInsert | SqliteInsert") -> "PostgresInsert | SqliteInsert":
    new = insert.excluded
    later = case((new.last_used > usage.c.last_used, new.last_used), else_=usage.c.last_used)
    sums = {usage.c[name]: usage.c[name] + new[name] for name in (*COUNTS, *BUCKETS)}
    return insert.on_conflict_do_update(index_elements=PLACE, set_={**sums, usage.c.last_used: later})


def _values(row: UsageRow) -> Row:
    counts = row.latencies or NO_LATENCIES
    if len(counts) != len(BUCKETS):
        raise ValueError(f"latencies has {len(counts)} buckets, not {len(BUCKETS)}")
    return (*PLAIN_VALUES(row), *counts)


def _row(row: RowMapping) -> UsageRow:
    plain = {name: row[name] for name in PLAIN}
    return UsageRow(**plain, latencies=tuple(row[bucket] for bucket in BUCKETS))
