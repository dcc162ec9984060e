"""Requests made under a key, each claimed by one call alone, with its answer once there is one."""

from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, delete, select, update

from toolcrib.interfaces import ReplayRow
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import replays


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

    async def finish(self, key: str, call: str, answer: str) -> bool:
        """Keep the answer of the call that claimed a key; False where it has not, or no more."""
        async with self.database.write() as connection:
            kept = await connection.execute(update(replays).where(_of(key, call)).values(answer=answer))
            return kept.rowcount == 1

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
