"""Add the clock reading, owners and sizes of stored results, last use of sessions, and MCP sessions."""

from time import time

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "toolcrib_clock",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seen", sa.Double, nullable=False),
        sa.Column("boot", WORDS, nullable=False),
        sa.Column("elapsed", sa.Double, nullable=False),
        sa.Column("wall", sa.Double, nullable=False),
    )
    op.create_table(
        "toolcrib_mcp_sessions",
        sa.Column("id", WORDS, primary_key=True),
        sa.Column("principal", WORDS, nullable=False),
        sa.Column("used", sa.Double, nullable=False),
        sa.Column("ended", sa.Boolean, nullable=False),
    )
    op.create_index("toolcrib_mcp_sessions_used", "toolcrib_mcp_sessions", ["used"])
    op.create_index("toolcrib_mcp_sessions_principal", "toolcrib_mcp_sessions", ["principal", "used"])
    op.add_column("toolcrib_replays", sa.Column("owner", WORDS, nullable=False, server_default=""))
    op.add_column("toolcrib_replays", sa.Column("bytes", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE toolcrib_replays SET bytes = length(answer) WHERE answer IS NOT NULL")
    op.create_index("toolcrib_replays_owner", "toolcrib_replays", ["owner", "at", "bytes"])
    op.add_column("toolcrib_sessions", sa.Column("used", sa.Double, nullable=False, server_default="0"))
    # Their last use is unknown, so their idle timeout starts now.
    op.execute(sa.text("UPDATE toolcrib_sessions SET used = :now").bindparams(now=time()))
    op.create_index("toolcrib_sessions_used", "toolcrib_sessions", ["used"])
