"""Add the giver of each app's URL (the kind of key that set it); NULL for apps stored before."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("toolcrib_apps", sa.Column("url_giver", WORDS))
