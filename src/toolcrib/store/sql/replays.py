"""Requests made under a key, each claimed by one call alone, with its answer once there is one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, delete, func, select, update

from toolcrib.interfaces import ReplayRow, ReplayTotals
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import replays

_BATCH = 200
"""How many answers are looked at in one query for some to be replaced."""


@dataclass(frozen=True, slots=True)
class SqlReplays:
    """Replays in a table, whose primary key lets one claim win."""

    database: Database

    async def claim(self, row: ReplayRow, *, since: float) -> ReplayRow | None:
        """Store a row and return None, or return the one that its key has since then."""
        new = self.database.insert(replays).values(asdict(row))
        insert = new.on_conflict_do_nothing(index_elements=[replays.c.key])
        same = replays.c.key == row.key
        async with self.database.write() as connection:
            await connection.execute(delete(replays).where(same & (replays.c.at < since)))
            # Again where it was in the way of the insert and is gone for the look: another process freed it.
            while (await connection.execute(insert)).rowcount != 1:
                found = (await connection.execute(select(replays).where(same))).mappings().one_or_none()
                if found is not None:
                    return ReplayRow(**found)
        return None

    async def find(self, key: str, *, since: float) -> ReplayRow | None:
        """The row that a key has since then."""
        query = select(replays).where((replays.c.key == key) & (replays.c.at >= since))
        async with self.database.read() as connection:
            found = (await connection.execute(query)).mappings().one_or_none()
            return None if found is None else ReplayRow(**found)

    async def finish(self, key: str, call: str, answer: str, size: int = 0) -> bool:
        """Keep the answer of the call that claimed a key; False where it has not, or no more."""
        ending = update(replays).where(_of(key, call)).values(answer=answer, bytes=size)
        async with self.database.write() as connection:
            return (await connection.execute(ending)).rowcount == 1

    async def shorten(self, owner: str, size: int, answer: str) -> int:
        """Replace a principal's oldest answers until so many bytes are free; how many are."""
        held = (replays.c.owner == owner) & (replays.c.bytes > 0)
        oldest = select(replays.c.key, replays.c.bytes).where(held).order_by(replays.c.at).limit(_BATCH)
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
        """What is stored, by principal. Reads every row."""
        count, held, oldest = func.count(), func.sum(replays.c.bytes), func.min(replays.c.at)
        async with self.database.read() as connection:
            rows = await connection.execute(
                select(replays.c.owner, count, held, oldest).group_by(replays.c.owner)
            )
            return {row[0]: ReplayTotals(keys=row[1], bytes=int(row[2]), oldest=row[3]) for row in rows}

    async def release(self, key: str, call: str) -> bool:
        """Free a key that a call claimed and did nothing under; False where it has not, or no more."""
        async with self.database.write() as connection:
            freed = await connection.execute(delete(replays).where(_of(key, call)))
            return freed.rowcount == 1

    async def prune(self, before: float) -> int:
        """Forget what was claimed earlier; how many went."""
        async with self.database.write() as connection:
            gone = await connection.execute(delete(replays).where(replays.c.at < before))
            return gone.rowcount


def _of(key: str, call: str) -> ColumnElement[bool]:
    """The row of a key, as long as it is this call's and has no answer."""
    return (replays.c.key == key) & (replays.c.call == call) & replays.c.answer.is_(None)
