"""Create the append-only audit table; add the creator and the last use of API keys."""

import sqlalchemy as sa
from alembic import op

from toolcrib.store.sql.tables import APPEND_ONLY

revision = "0005"
down_revision = "0004"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("toolcrib_keys", sa.Column("created_by", WORDS))
    op.add_column("toolcrib_keys", sa.Column("last_used", sa.Double))
    op.create_table(
        "toolcrib_audit",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("actor_kind", WORDS, nullable=False),
        sa.Column("actor", WORDS, nullable=False),
        sa.Column("user", WORDS),
        sa.Column("frontend", WORDS, nullable=False),
        sa.Column("address", WORDS, nullable=False),
        sa.Column("process", WORDS, nullable=False),
        sa.Column("action", WORDS, nullable=False),
        sa.Column("target", WORDS, nullable=False),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text),
        sa.Column("outcome", WORDS, nullable=False),
        sa.Column("previous", WORDS, nullable=False),
        sa.Column("hash", WORDS, nullable=False),
    )
    for statement in APPEND_ONLY[op.get_context().dialect.name]:
        op.execute(statement)
