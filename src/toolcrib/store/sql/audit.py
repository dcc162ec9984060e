"""The audit log: a hash chain in a table, extended inside the writing transaction."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace

from sqlalchemy import func, insert, select

from toolcrib.interfaces import FIRST_PREVIOUS, AuditEntry, AuditRecord, digest_of
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.tables import audit, storable

CHAIN_LOCK_KEY = 0x746F6F6C61756474
"""Key of the Postgres advisory lock that serializes appends: `toolaudt` in ASCII."""

TEXT_FIELDS = tuple(each.name for each in fields(AuditEntry) if each.type in (str, "str"))


@dataclass(frozen=True, slots=True)
class SqlAudit:
    """The hash chain of audit records."""

    database: Database

    async def add(self, entry: AuditEntry) -> AuditRecord:
        """Append a record to the chain and return it."""
        entry = _storable(entry)
        async with self.database.write() as connection:
            # SQLite holds its write lock already. On Postgres another replica could read the same last
            # record (a race), so an advisory lock serializes the appending transactions.
            if connection.dialect.name == "postgresql":
                await connection.execute(select(func.pg_advisory_xact_lock(CHAIN_LOCK_KEY)))
            newest = select(audit.c.number, audit.c.hash).order_by(audit.c.number.desc()).limit(1)
            last = (await connection.execute(newest)).one_or_none()
            number, previous = (1, FIRST_PREVIOUS) if last is None else (last.number + 1, last.hash)
            digest = digest_of(entry.content(number, previous))
            record = AuditRecord(**asdict(entry), number=number, previous=previous, hash=digest)
            await connection.execute(insert(audit), asdict(record))
        return record

    async def recent(
        self,
        *,
        limit: int,
        before: int | None = None,
        actor: str | None = None,
        action: str | None = None,
        since: float | None = None,
    ) -> Sequence[AuditRecord]:
        """Return records newest first, optionally with a number below `before` and by the given filters."""
        query = select(audit).order_by(audit.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.number < before)
        if actor is not None:
            query = query.where(audit.c.actor == actor)
        if action is not None:
            group = audit.c.action.startswith(f"{action}.", autoescape=True)
            query = query.where((audit.c.action == action) | group)
        if since is not None:
            query = query.where(audit.c.at >= since)
        return [AuditRecord(**row) for row in await self.database.rows(query)]


def _storable(entry: AuditEntry) -> AuditEntry:
    """Return the entry as both databases return it, so that its hash can be verified later."""
    texts = {name: storable(getattr(entry, name)) for name in TEXT_FIELDS}
    user = None if entry.user is None else storable(entry.user)
    return replace(entry, **texts, user=user)
