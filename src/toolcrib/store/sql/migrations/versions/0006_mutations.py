"""Calls of declared mutations, which are kept apart from the sample of all others."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    column = sa.Column("mutation", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("toolcrib_calls", column)
    op.create_index("toolcrib_calls_kept", "toolcrib_calls", ["mutation", "at", "number"])
