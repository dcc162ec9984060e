"""Idempotency keys: each key is claimed by one call, and stores its result once there is one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, delete, func, select, update

from toolcrib.interfaces import ReplayRow, ReplayTotals
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import replays

_MAX_ROWS_PER_QUERY = 200
"""Rows per query when results are replaced to free space."""


@dataclass(frozen=True, slots=True)
class SqlReplays:
    """Replays in a table; its primary key makes a claim atomic."""

    database: Database

    async def claim(self, row: ReplayRow, *, since: float) -> ReplayRow | None:
        """Claim a key atomically and return None, or return its row; rows before `since` have expired."""
        new = self.database.insert(replays).values(asdict(row))
        insert = new.on_conflict_do_nothing(index_elements=[replays.c.key])
        same = replays.c.key == row.key
        async with self.database.write() as connection:
            await connection.execute(delete(replays).where(same & (replays.c.at < since)))
            # Retried if the row blocked the insert but was missing on read: another process has released it.
            while (await connection.execute(insert)).rowcount != 1:
                found = (await connection.execute(select(replays).where(same))).mappings().one_or_none()
                if found is not None:
                    return ReplayRow(**found)
        return None

    async def find(self, key: str, *, since: float) -> ReplayRow | None:
        """Return the row of a key that was claimed at or after `since`, or None."""
        query = select(replays).where((replays.c.key == key) & (replays.c.at >= since))
        row = await self.database.row(query)
        return None if row is None else ReplayRow(**row)

    async def finish(self, key: str, call: str, answer: str, size: int = 0) -> bool:
        """Store the result of the call that holds a key; return False if it does not hold it (any more)."""
        ending = update(replays).where(_held_by(key, call)).values(answer=answer, bytes=size)
        return await self.database.execute(ending) == 1

    async def shorten(self, owner: str, size: int, answer: str) -> int:
        """Replace a principal's oldest results by `answer` until `size` bytes are free; return the bytes."""
        held = (replays.c.owner == owner) & (replays.c.bytes > 0)
        candidates = select(replays.c.key, replays.c.bytes).where(held)
        oldest = candidates.order_by(replays.c.at).limit(_MAX_ROWS_PER_QUERY)
        freed = 0
        async with self.database.write() as connection:
            while freed < size and (found := (await connection.execute(oldest)).all()):
                keys: list[str] = []
                for key, held_bytes in found:
                    if freed < size:
                        keys.append(key)
                        freed += held_bytes
                shorter = update(replays).where(replays.c.key.in_(keys)).values(answer=answer, bytes=0)
                await connection.execute(shorter)
        return freed

    async def totals(self) -> Mapping[str, ReplayTotals]:
        """Return the totals stored per principal. Scans the whole index."""
        count, held, oldest = func.count(), func.sum(replays.c.bytes), func.min(replays.c.at)
        query = select(replays.c.owner, count, held, oldest).group_by(replays.c.owner)
        async with self.database.read() as connection:
            rows = await connection.execute(query)
            return {row[0]: ReplayTotals(keys=row[1], bytes=int(row[2]), oldest=row[3]) for row in rows}

    async def release(self, key: str, call: str) -> bool:
        """Release a key after a call without effect; return False if the call does not hold it (any more)."""
        return await self.database.execute(delete(replays).where(_held_by(key, call))) == 1

    async def prune(self, before: float) -> int:
        """Delete rows claimed before a time; return the number deleted."""
        return await self.database.execute(delete(replays).where(replays.c.at < before))


def _held_by(key: str, call: str) -> ColumnElement[bool]:
    """Match the row of a key that this call holds and that has no result yet."""
    return (replays.c.key == key) & (replays.c.call == call) & replays.c.answer.is_(None)
