"""The run-time overlay: one versioned document, replaced with compare-and-swap on its version."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import select, update

from toolcrib.model import Json, JsonObject
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.secrets import StoredSecrets, ValueLocation, is_encrypted
from toolcrib.store.sql.tables import overlay

OVERLAY_ROW_ID = 1
"""Primary key of the only row."""


@dataclass(frozen=True, slots=True)
class SqlOverlay:
    """The overlay in a table of one row. The settings of each server are encrypted as one value."""

    database: Database
    secrets: StoredSecrets = field(default_factory=StoredSecrets)

    async def load(self) -> tuple[int, JsonObject]:
        """Return the version (0 if never saved) and the document."""
        async with self.database.read() as connection:
            row = (await connection.execute(select(overlay.c.version, overlay.c.document))).one_or_none()
            if row is None:
                return 0, {}
            cipher = await self.secrets.reader(connection, servers_of(row.document).values())

            def decrypted(name: str, value: Json) -> Json:
                return (
                    json.loads(cipher.decrypt(server_location(name), value)) if is_encrypted(value) else value
                )

            return row.version, with_servers(row.document, decrypted)

    async def save(self, document: JsonObject, *, expected: int) -> int | None:
        """Replace the document if its version is `expected`; return the new version, None on a conflict."""
        async with self.database.write() as connection:
            cipher = await self.secrets.writer(connection) if servers_of(document) else None
            if cipher is not None:
                encrypt = cipher.encrypt
                document = with_servers(
                    document, lambda name, value: encrypt(server_location(name), json.dumps(value))
                )
            values = {"version": expected + 1, "document": document}
            if expected == 0:
                insert = self.database.insert(overlay).values(id=OVERLAY_ROW_ID, **values)
                statement = insert.on_conflict_do_nothing(index_elements=[overlay.c.id])
            else:
                statement = update(overlay).where(overlay.c.version == expected).values(values)
            return expected + 1 if (await connection.execute(statement)).rowcount == 1 else None


def server_location(name: str) -> ValueLocation:
    """Return the place of a server's settings, to which their ciphertext is bound."""
    return overlay.name, str(OVERLAY_ROW_ID), f"mcp.servers.{name}"


def servers_of(document: JsonObject) -> Mapping[str, Json]:
    """Return the servers of a document, as stored (encrypted or plain)."""
    mcp = document.get("mcp")
    servers: Any = cast("JsonObject", mcp).get("servers") if isinstance(mcp, Mapping) else None
    return cast("JsonObject", servers) if isinstance(servers, Mapping) else {}


def with_servers(document: JsonObject, change: Callable[[str, Json], Json]) -> JsonObject:
    """Copy a document with the settings of each server mapped through `change`."""
    servers = servers_of(document)
    if not servers:
        return document
    changed = {name: change(name, value) for name, value in servers.items()}
    return {**document, "mcp": {**document["mcp"], "servers": changed}}
