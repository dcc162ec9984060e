"""Create the first tables: keys, overlay, claims, calls, usage."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _keys()
    _overlay()
    _claims()
    _calls()
    _usage()


def _keys() -> None:
    op.create_table(
        "toolcrib_keys",
        sa.Column("name", WORDS, primary_key=True),
        sa.Column("digest", WORDS, nullable=False),
        sa.Column("permissions", sa.Text, nullable=False),
        sa.Column("contexts", sa.Text),
        sa.Column("home", WORDS, nullable=False),
        sa.Column("act_as", sa.Boolean, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("rotated", sa.Double),
        sa.Column("revoked", sa.Double),
    )


def _overlay() -> None:
    op.create_table(
        "toolcrib_overlay",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )


def _claims() -> None:
    op.create_table(
        "toolcrib_claims",
        sa.Column("name", WORDS, primary_key=True),
        sa.Column("owner", WORDS, nullable=False),
    )


def _calls() -> None:
    op.create_table(
        "toolcrib_calls",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("tool", WORDS, nullable=False),
        sa.Column("caller", WORDS, nullable=False),
        sa.Column("user", WORDS),
        sa.Column("context", WORDS, nullable=False),
        sa.Column("face", WORDS, nullable=False),
        sa.Column("outcome", WORDS, nullable=False),
        sa.Column("code", WORDS),
        sa.Column("milliseconds", sa.Double, nullable=False),
        sa.Column("cached", sa.Boolean, nullable=False),
        sa.Column("trace", WORDS, nullable=False),
    )
    op.create_index("toolcrib_calls_newest", "toolcrib_calls", ["at", "number"])


def _usage() -> None:
    op.create_table(
        "toolcrib_usage",
        sa.Column("day", WORDS, primary_key=True),
        sa.Column("tool", WORDS, primary_key=True),
        sa.Column("caller", WORDS, primary_key=True),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.Column("errors", sa.BigInteger, nullable=False),
        sa.Column("cached", sa.BigInteger, nullable=False),
        sa.Column("milliseconds", sa.Double, nullable=False),
        sa.Column("last_used", sa.Double, nullable=False),
        *(sa.Column(f"l{number:02}", sa.BigInteger, nullable=False) for number in range(15)),
    )
