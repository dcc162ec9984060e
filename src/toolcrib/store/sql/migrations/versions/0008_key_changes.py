"""Add expiry, a grace period for the previous secret, purging and change numbers to API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("toolcrib_keys", sa.Column("expires", sa.Double))
    op.add_column("toolcrib_keys", sa.Column("previous_digest", WORDS))
    op.add_column("toolcrib_keys", sa.Column("previous_until", sa.Double))
    op.add_column("toolcrib_keys", sa.Column("changed", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("toolcrib_keys", sa.Column("purged", sa.Double))
    op.create_index("toolcrib_keys_changed", "toolcrib_keys", ["changed", "name"])
