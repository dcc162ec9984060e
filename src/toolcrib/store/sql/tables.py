"""Tables of the store."""

import json
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    event,
    false,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from toolcrib.interfaces import LATENCY_BOUNDS
from toolcrib.model import Json

# --- Database triggers that make the audit table append-only: updates and deletes are rejected ---

_SQLITE_BODY = "BEGIN SELECT RAISE(ABORT, 'audit records cannot be changed or deleted'); END"
# INSERT OR REPLACE deletes without firing the delete trigger; Postgres has no such statement.
_SQLITE_REPLACE = "INSERT ON toolcrib_audit WHEN NEW.number <= (SELECT max(number) FROM toolcrib_audit)"

APPEND_ONLY: dict[str, tuple[str, ...]] = {
    "sqlite": (
        f"CREATE TRIGGER toolcrib_audit_update BEFORE UPDATE ON toolcrib_audit {_SQLITE_BODY}",
        f"CREATE TRIGGER toolcrib_audit_delete BEFORE DELETE ON toolcrib_audit {_SQLITE_BODY}",
        f"CREATE TRIGGER toolcrib_audit_replace BEFORE {_SQLITE_REPLACE} {_SQLITE_BODY}",
    ),
    "postgresql": (
        """
        CREATE OR REPLACE FUNCTION toolcrib_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'audit records cannot be changed or deleted'; END $$
        """,
        """
        CREATE TRIGGER toolcrib_audit_change BEFORE UPDATE OR DELETE ON toolcrib_audit
        FOR EACH ROW EXECUTE FUNCTION toolcrib_audit_refuse()
        """,
        """
        CREATE TRIGGER toolcrib_audit_truncate BEFORE TRUNCATE ON toolcrib_audit
        FOR EACH STATEMENT EXECUTE FUNCTION toolcrib_audit_refuse()
        """,
    ),
}
"""DDL by dialect. A database administrator can drop the triggers; `audit verify` detects later changes."""


# --- The current table definitions; `migrations` has their history ---


def storable(text: str) -> str:
    """Replace characters that databases reject in text: NUL and lone surrogates."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode()


class StorableText(TypeDecorator[str]):
    """Text that both engines accept and sort alike: one invalid string must not fail a whole batch."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the column type; Postgres needs collation C, since it sorts by locale by default."""
        return Text(collation="C") if dialect.name == "postgresql" else Text()

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


@lru_cache(maxsize=1024)
def _names(text: str) -> frozenset[str]:
    # Cached, since a hundred thousand keys share a handful of different sets.
    return frozenset(json.loads(text))


class NameSet(TypeDecorator[frozenset[str]]):
    """A set of names as a JSON list."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: frozenset[str] | None, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(sorted(value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> frozenset[str] | None:
        return None if value is None else _names(value)


class JsonText(TypeDecorator[Json]):
    """JSON as text: the native JSON types of the engines reorder or reject some of it."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Json, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Json:
        return None if value is None else json.loads(value)


metadata = MetaData()

keys = Table(
    "toolcrib_keys",
    metadata,
    Column("name", StorableText, primary_key=True),
    Column("digest", StorableText, nullable=False),
    Column("permissions", NameSet, nullable=False),
    Column("contexts", NameSet),
    Column("home", StorableText, nullable=False),
    Column("act_as", Boolean, nullable=False),
    Column("user", StorableText),
    Column("created", Double, nullable=False),
    Column("rotated", Double),
    Column("revoked", Double),
    Column("created_by", StorableText),
    Column("last_used", Double),
    Column("expires", Double),
    Column("previous_digest", StorableText),
    Column("previous_until", Double),
    # The number of the row's last change, so that replicas can read changes incrementally.
    Column("changed", BigInteger, nullable=False, server_default="0"),
    # A purged key is a tombstone: only its name is left, which is never reused.
    Column("purged", Double),
    Index("toolcrib_keys_changed", "changed", "name"),
)

overlay = Table(
    "toolcrib_overlay",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("document", JsonText, nullable=False),
)

data_keys = Table(
    "toolcrib_data_keys",
    metadata,
    Column("id", StorableText, primary_key=True),
    Column("wrapped_by", StorableText, nullable=False),
    Column("salt", StorableText, nullable=False),
    Column("check", StorableText, nullable=False),
    Column("wrapped", StorableText, nullable=False),
    Column("created", Double, nullable=False),
)
"""Wrapped data keys, which encrypt the secrets in other tables; the newest one is current."""

claims = Table(
    "toolcrib_claims",
    metadata,
    Column("name", StorableText, primary_key=True),
    Column("owner", StorableText, nullable=False),
)

definitions = Table(
    "toolcrib_definitions",
    metadata,
    Column("name", StorableText, primary_key=True),
    Column("definition", JsonText, nullable=False),
    Column("seal", StorableText, nullable=False),
    Column("trusted", StorableText, nullable=False),
    Column("seen", Double, nullable=False),
)

calls = Table(
    "toolcrib_calls",
    metadata,
    # A surrogate key: call ids come from clients, and a duplicate must not fail its batch.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", StorableText, nullable=False),
    Column("at", Double, nullable=False),
    Column("tool", StorableText, nullable=False),
    Column("caller", StorableText, nullable=False),
    Column("user", StorableText),
    Column("context", StorableText, nullable=False),
    Column("face", StorableText, nullable=False),
    Column("outcome", StorableText, nullable=False),
    Column("code", StorableText),
    Column("milliseconds", Double, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("trace", StorableText, nullable=False),
    Column("mutation", Boolean, nullable=False, server_default=false()),
    Index("toolcrib_calls_newest", "at", "number"),
    Index("toolcrib_calls_kept", "mutation", "at", "number"),
)

replays = Table(
    "toolcrib_replays",
    metadata,
    Column("key", StorableText, primary_key=True),
    Column("call", StorableText, nullable=False),
    Column("body", StorableText, nullable=False),
    Column("holder", StorableText, nullable=False),
    Column("at", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("answer", Text),
    Column("owner", StorableText, nullable=False, server_default=""),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Index("toolcrib_replays_oldest", "at"),
    # A covering index with the sizes, so that totals do not read the stored results.
    Index("toolcrib_replays_owner", "owner", "at", "bytes"),
)

LATENCY_COLUMNS = tuple(f"l{number:02}" for number in range(len(LATENCY_BOUNDS) + 1))
"""One column per latency bucket, so that the database can sum them."""

usage = Table(
    "toolcrib_usage",
    metadata,
    Column("day", StorableText, primary_key=True),
    Column("tool", StorableText, primary_key=True),
    Column("caller", StorableText, primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("cached", BigInteger, nullable=False),
    Column("milliseconds", Double, nullable=False),
    Column("last_used", Double, nullable=False),
    *(Column(bucket, BigInteger, nullable=False) for bucket in LATENCY_COLUMNS),
)

apps = Table(
    "toolcrib_apps",
    metadata,
    Column("package", StorableText, primary_key=True),
    Column("name", StorableText, nullable=False),
    Column("owner", StorableText, nullable=False),
    Column("public_url", StorableText),
    Column("url_giver", StorableText),
    Column("app_type", StorableText, nullable=False),
    Column("hardware", JsonText, nullable=False),
    Column("permissions", JsonText, nullable=False),
    Column("digest", StorableText),
    Column("signing", StorableText),
    Column("version", BigInteger, nullable=False),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
)


def _cascading(parent: str) -> ForeignKey:
    """Return a foreign key with cascading delete: a new app must not inherit rows of a deleted namesake."""
    return ForeignKey(parent, ondelete="CASCADE")


app_tools = Table(
    "toolcrib_app_tools",
    metadata,
    Column("package", StorableText, _cascading("toolcrib_apps.package"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("definition", JsonText, nullable=False),
    Column("original", JsonText),
)

users = Table(
    "toolcrib_users",
    metadata,
    Column("id", StorableText, primary_key=True),
    Column("language", StorableText),
    Column("time_zone", StorableText),
    Column("created", Double, nullable=False),
)

installs = Table(
    "toolcrib_installs",
    metadata,
    Column("user", StorableText, _cascading("toolcrib_users.id"), primary_key=True),
    Column("package", StorableText, _cascading("toolcrib_apps.package"), primary_key=True),
    Column("at", Double, nullable=False),
    Column("settings", JsonText, nullable=False),
    Index("toolcrib_installs_package", "package", "user"),
)

disabled = Table(
    "toolcrib_disabled",
    metadata,
    Column("user", StorableText, _cascading("toolcrib_users.id"), primary_key=True),
    Column("name", StorableText, primary_key=True),
)

sessions = Table(
    "toolcrib_sessions",
    metadata,
    Column("user", StorableText, _cascading("toolcrib_users.id"), primary_key=True),
    Column("id", StorableText, nullable=False),
    Column("device", JsonText),
    Column("language", StorableText),
    Column("time_zone", StorableText),
    Column("started", Double, nullable=False),
    Column("used", Double, nullable=False, server_default="0"),
    Index("toolcrib_sessions_used", "used"),
)

mcp_sessions = Table(
    "toolcrib_mcp_sessions",
    metadata,
    Column("id", StorableText, primary_key=True),
    Column("principal", StorableText, nullable=False),
    Column("used", Double, nullable=False),
    Column("ended", Boolean, nullable=False),
    Index("toolcrib_mcp_sessions_used", "used"),
    Index("toolcrib_mcp_sessions_principal", "principal", "used"),
)

clock = Table(
    "toolcrib_clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seen", Double, nullable=False),
    Column("boot", StorableText, nullable=False),
    Column("elapsed", Double, nullable=False),
    Column("wall", Double, nullable=False),
)
"""One row: the latest clock reading of any process."""

app_data = Table(
    "toolcrib_app_data",
    metadata,
    Column("user", StorableText, primary_key=True),
    Column("package", StorableText, primary_key=True),
    Column("key", StorableText, primary_key=True),
    Column("value", StorableText, nullable=False),
    ForeignKeyConstraint(
        ["user", "package"], ["toolcrib_installs.user", "toolcrib_installs.package"], ondelete="CASCADE"
    ),
)

marks = Table(
    "toolcrib_marks",
    metadata,
    Column("name", StorableText, primary_key=True),
    Column("number", BigInteger, nullable=False),
)
"""Numbers by name. Most are change counters, which allow cheap polling for changes."""

audit = Table(
    "toolcrib_audit",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("actor_kind", StorableText, nullable=False),
    Column("actor", StorableText, nullable=False),
    Column("user", StorableText),
    Column("frontend", StorableText, nullable=False),
    Column("address", StorableText, nullable=False),
    Column("process", StorableText, nullable=False),
    Column("action", StorableText, nullable=False),
    Column("target", StorableText, nullable=False),
    Column("before", JsonText),
    Column("after", JsonText),
    Column("outcome", StorableText, nullable=False),
    Column("previous", StorableText, nullable=False),
    Column("hash", StorableText, nullable=False),
)
for dialect, statements in APPEND_ONLY.items():
    for statement in statements:
        event.listen(audit, "after_create", DDL(statement).execute_if(dialect=dialect))
