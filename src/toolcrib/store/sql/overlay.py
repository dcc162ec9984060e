"""What was changed at run time: one document with a version, replaced whole by whoever saw the last one."""

from dataclasses import dataclass

from sqlalchemy import select, update

from toolcrib.model import JsonObject
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import overlay

ROW = 1
"""There is one overlay, so there is one row."""


@dataclass(frozen=True, slots=True)
class SqlOverlay:
    """The overlay in a table of one row."""

    database: Database

    async def load(self) -> tuple[int, JsonObject]:
        """The version (0 if never saved) and the document."""
        async with self.database.read() as connection:
            found = await connection.execute(select(overlay.c.version, overlay.c.document))
            row = found.one_or_none()
            return (row.version, row.document) if row else (0, {})

    async def save(self, document: JsonObject, *, expected: int) -> int | None:
        """Replace it if its version is still `expected`; the new version, or None where someone was first."""
        values = {"version": expected + 1, "document": document}
        if expected == 0:
            insert = self.database.insert(overlay).values(id=ROW, **values)
            statement = insert.on_conflict_do_nothing(index_elements=[overlay.c.id])
        else:
            statement = update(overlay).where(overlay.c.version == expected).values(values)
        async with self.database.write() as connection:
            done = await connection.execute(statement)
            return expected + 1 if done.rowcount == 1 else None
