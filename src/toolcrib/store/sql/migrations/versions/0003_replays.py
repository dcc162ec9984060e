"""Create the table of replays: requests with an idempotency key, and their results."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "toolcrib_replays",
        sa.Column("key", WORDS, primary_key=True),
        sa.Column("call", WORDS, nullable=False),
        sa.Column("body", WORDS, nullable=False),
        sa.Column("holder", WORDS, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("answer", sa.Text),
    )
    op.create_index("toolcrib_replays_oldest", "toolcrib_replays", ["at"])
