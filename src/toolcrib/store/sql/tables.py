"""The tables as they are now; `migrations` tells how they came to be."""

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
from toolcrib.store.sql.append_only import APPEND_ONLY


def storable(text: str) -> str:
    """Replace what no database takes as text: zero characters and halves of pairs."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode()


class Words(TypeDecorator[str]):
    """Text that both engines take and sort alike, whatever came in: one bad name must not sink a batch."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Postgres sorts by the database's language unless told otherwise."""
        return Text(collation="C") if dialect.name == "postgresql" else Text()

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


@lru_cache(maxsize=1024)
def _names(text: str) -> frozenset[str]:
    # Kept, since a hundred thousand keys hold a handful of different sets.
    return frozenset(json.loads(text))


class NameSet(TypeDecorator[frozenset[str]]):
    """A set of names as a JSON list."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: frozenset[str] | None, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(sorted(value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> frozenset[str] | None:
        return None if value is None else _names(value)


class Document(TypeDecorator[Json]):
    """JSON kept letter by letter: the engines' own JSON types reorder or refuse some of it."""

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
    Column("name", Words, primary_key=True),
    Column("digest", Words, nullable=False),
    Column("permissions", NameSet, nullable=False),
    Column("contexts", NameSet),
    Column("home", Words, nullable=False),
    Column("act_as", Boolean, nullable=False),
    Column("user", Words),
    Column("created", Double, nullable=False),
    Column("rotated", Double),
    Column("revoked", Double),
    Column("created_by", Words),
    Column("last_used", Double),
    Column("expires", Double),
    Column("previous_digest", Words),
    Column("previous_until", Double),
    # The number of the last change of the row, so that others read what has changed and nothing else.
    Column("changed", BigInteger, nullable=False, server_default="0"),
    # Of a purged key nothing is left but its name, which is never given out again.
    Column("purged", Double),
    Index("toolcrib_keys_changed", "changed", "name"),
)

overlay = Table(
    "toolcrib_overlay",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("document", Document, nullable=False),
)

data_keys = Table(
    "toolcrib_data_keys",
    metadata,
    Column("id", Words, primary_key=True),
    Column("wrapped_by", Words, nullable=False),
    Column("salt", Words, nullable=False),
    Column("check", Words, nullable=False),
    Column("wrapped", Words, nullable=False),
    Column("created", Double, nullable=False),
)
"""What encrypts secrets in other tables, itself encrypted; the newest is the one in use."""

claims = Table(
    "toolcrib_claims",
    metadata,
    Column("name", Words, primary_key=True),
    Column("owner", Words, nullable=False),
)

definitions = Table(
    "toolcrib_definitions",
    metadata,
    Column("name", Words, primary_key=True),
    Column("definition", Document, nullable=False),
    Column("seal", Words, nullable=False),
    Column("trusted", Words, nullable=False),
    Column("seen", Double, nullable=False),
)

calls = Table(
    "toolcrib_calls",
    metadata,
    # Our own number, since ids come from outside and a repeated one must not sink its batch.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", Words, nullable=False),
    Column("at", Double, nullable=False),
    Column("tool", Words, nullable=False),
    Column("caller", Words, nullable=False),
    Column("user", Words),
    Column("context", Words, nullable=False),
    Column("face", Words, nullable=False),
    Column("outcome", Words, nullable=False),
    Column("code", Words),
    Column("milliseconds", Double, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("trace", Words, nullable=False),
    Column("mutation", Boolean, nullable=False, server_default=false()),
    Index("toolcrib_calls_newest", "at", "number"),
    Index("toolcrib_calls_kept", "mutation", "at", "number"),
)

replays = Table(
    "toolcrib_replays",
    metadata,
    Column("key", Words, primary_key=True),
    Column("call", Words, nullable=False),
    Column("body", Words, nullable=False),
    Column("holder", Words, nullable=False),
    Column("at", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("answer", Text),
    Column("owner", Words, nullable=False, server_default=""),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Index("toolcrib_replays_oldest", "at"),
    # With the sizes, so that nobody reads through answers to add them up.
    Index("toolcrib_replays_owner", "owner", "at", "bytes"),
)

BUCKETS = tuple(f"l{number:02}" for number in range(len(LATENCY_BOUNDS) + 1))
"""One column per latency bucket, so that the database can add them up."""

usage = Table(
    "toolcrib_usage",
    metadata,
    Column("day", Words, primary_key=True),
    Column("tool", Words, primary_key=True),
    Column("caller", Words, primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("cached", BigInteger, nullable=False),
    Column("milliseconds", Double, nullable=False),
    Column("last_used", Double, nullable=False),
    *(Column(bucket, BigInteger, nullable=False) for bucket in BUCKETS),
)

apps = Table(
    "toolcrib_apps",
    metadata,
    Column("package", Words, primary_key=True),
    Column("name", Words, nullable=False),
    Column("owner", Words, nullable=False),
    Column("public_url", Words),
    Column("url_giver", Words),
    Column("app_type", Words, nullable=False),
    Column("hardware", Document, nullable=False),
    Column("permissions", Document, nullable=False),
    Column("digest", Words),
    Column("signing", Words),
    Column("version", BigInteger, nullable=False),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
)


def _of(parent: str) -> ForeignKey:
    """What goes with its parent: an app added later under the same name must find nothing of an older one."""
    return ForeignKey(parent, ondelete="CASCADE")


app_tools = Table(
    "toolcrib_app_tools",
    metadata,
    Column("package", Words, _of("toolcrib_apps.package"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("definition", Document, nullable=False),
    Column("original", Document),
)

users = Table(
    "toolcrib_users",
    metadata,
    Column("id", Words, primary_key=True),
    Column("language", Words),
    Column("time_zone", Words),
    Column("created", Double, nullable=False),
)

installs = Table(
    "toolcrib_installs",
    metadata,
    Column("user", Words, _of("toolcrib_users.id"), primary_key=True),
    Column("package", Words, _of("toolcrib_apps.package"), primary_key=True),
    Column("at", Double, nullable=False),
    Column("settings", Document, nullable=False),
    Index("toolcrib_installs_package", "package", "user"),
)

disabled = Table(
    "toolcrib_disabled",
    metadata,
    Column("user", Words, _of("toolcrib_users.id"), primary_key=True),
    Column("name", Words, primary_key=True),
)

sessions = Table(
    "toolcrib_sessions",
    metadata,
    Column("user", Words, _of("toolcrib_users.id"), primary_key=True),
    Column("id", Words, nullable=False),
    Column("device", Document),
    Column("language", Words),
    Column("time_zone", Words),
    Column("started", Double, nullable=False),
    Column("used", Double, nullable=False, server_default="0"),
    Index("toolcrib_sessions_used", "used"),
)

mcp_sessions = Table(
    "toolcrib_mcp_sessions",
    metadata,
    Column("id", Words, primary_key=True),
    Column("principal", Words, nullable=False),
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
    Column("boot", Words, nullable=False),
    Column("elapsed", Double, nullable=False),
    Column("wall", Double, nullable=False),
)
"""One row: the latest reading of any process's clock."""

app_data = Table(
    "toolcrib_app_data",
    metadata,
    Column("user", Words, primary_key=True),
    Column("package", Words, primary_key=True),
    Column("key", Words, primary_key=True),
    Column("value", Words, nullable=False),
    ForeignKeyConstraint(
        ["user", "package"], ["toolcrib_installs.user", "toolcrib_installs.package"], ondelete="CASCADE"
    ),
)

marks = Table(
    "toolcrib_marks",
    metadata,
    Column("name", Words, primary_key=True),
    Column("number", BigInteger, nullable=False),
)
"""Numbers by name. Most count up with every change of something, to see cheaply whether there was one."""

audit = Table(
    "toolcrib_audit",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("actor_kind", Words, nullable=False),
    Column("actor", Words, nullable=False),
    Column("user", Words),
    Column("frontend", Words, nullable=False),
    Column("address", Words, nullable=False),
    Column("process", Words, nullable=False),
    Column("action", Words, nullable=False),
    Column("target", Words, nullable=False),
    Column("before", Document),
    Column("after", Document),
    Column("outcome", Words, nullable=False),
    Column("previous", Words, nullable=False),
    Column("hash", Words, nullable=False),
)
for dialect, statements in APPEND_ONLY.items():
    for statement in statements:
        event.listen(audit, "after_create", DDL(statement).execute_if(dialect=dialect))
