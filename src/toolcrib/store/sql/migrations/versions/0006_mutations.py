"""Add a mutation flag to calls: mutations have a retention limit separate from other calls."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    column = sa.Column("mutation", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("toolcrib_calls", column)
    op.create_index("toolcrib_calls_kept", "toolcrib_calls", ["mutation", "at", "number"])
