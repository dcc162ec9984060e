"""Create the table of data keys, which encrypt secrets in other tables; opening the store encrypts those."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "toolcrib_data_keys",
        sa.Column("id", WORDS, primary_key=True),
        sa.Column("wrapped_by", WORDS, nullable=False),
        sa.Column("salt", WORDS, nullable=False),
        sa.Column("check", WORDS, nullable=False),
        sa.Column("wrapped", WORDS, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
