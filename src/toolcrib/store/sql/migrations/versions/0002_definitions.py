"""Create the table of tool definitions, as last seen, with the hash of the first one seen."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "toolcrib_definitions",
        sa.Column("name", WORDS, primary_key=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("seal", WORDS, nullable=False),
        sa.Column("trusted", WORDS, nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
    )
