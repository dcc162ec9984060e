"""The last reading of the clock, stored so that time goes on after a restart and never back."""

import logging
from contextlib import suppress
from dataclasses import asdict, fields

import anyio
from sqlalchemy import select

from toolcrib.clock import Clock, ClockReading
from toolcrib.errors import ToolcribError
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.health import MAX_LOCK_SECONDS
from toolcrib.store.sql.tables import clock as table

log = logging.getLogger(__name__)

SAVE_SECONDS = 60.0
"""Between two stored readings."""
_ROW = 1
_READING = tuple(each.name for each in fields(ClockReading))


async def resume(database: Database, clock: Clock) -> None:
    """Let a clock go on from the last reading, where there is one."""
    async with database.read() as connection:
        columns = (table.c[name] for name in _READING)
        query = select(*columns).where(table.c.id == _ROW)
        found = (await connection.execute(query)).mappings().one_or_none()
    if found is not None:
        clock.resume(ClockReading(**found))


async def save(database: Database, clock: Clock) -> None:
    """Store a reading; one that is behind the stored one, as of a replica, changes nothing."""
    insert = database.insert(table).values(id=_ROW, **asdict(clock.reading()))
    new = {name: insert.excluded[name] for name in _READING}
    later = insert.excluded["seen"] > table.c.seen
    async with database.write(wait=MAX_LOCK_SECONDS) as connection:
        place = [table.c.id]
        await connection.execute(insert.on_conflict_do_update(index_elements=place, set_=new, where=later))


async def keep_saving(database: Database, clock: Clock, every: float = SAVE_SECONDS) -> None:
    """Store a reading at once and then every minute, until cancelled; and a last one then."""
    try:
        while True:
            try:
                await save(database, clock)
            except ToolcribError as error:
                log.warning("the time cannot be stored now, and is tried again: %s", error)
            await anyio.sleep(every)
    finally:
        with anyio.move_on_after(MAX_LOCK_SECONDS, shield=True), suppress(ToolcribError):
            await save(database, clock)
