"""Create the tables of apps, users, installs and sessions; API keys can belong to a user."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("toolcrib_keys", sa.Column("user", WORDS))
    _apps()
    _users()
    _installs()
    op.create_table(
        "toolcrib_marks",
        sa.Column("name", WORDS, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )


def _apps() -> None:
    op.create_table(
        "toolcrib_apps",
        sa.Column("package", WORDS, primary_key=True),
        sa.Column("name", WORDS, nullable=False),
        sa.Column("owner", WORDS, nullable=False),
        sa.Column("public_url", WORDS),
        sa.Column("app_type", WORDS, nullable=False),
        sa.Column("hardware", sa.Text, nullable=False),
        sa.Column("permissions", sa.Text, nullable=False),
        sa.Column("digest", WORDS),
        sa.Column("signing", WORDS),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
    )
    op.create_table(
        "toolcrib_app_tools",
        sa.Column("package", WORDS, _of("toolcrib_apps.package"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("original", sa.Text),
    )


def _users() -> None:
    op.create_table(
        "toolcrib_users",
        sa.Column("id", WORDS, primary_key=True),
        sa.Column("language", WORDS),
        sa.Column("time_zone", WORDS),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "toolcrib_disabled",
        sa.Column("user", WORDS, _of("toolcrib_users.id"), primary_key=True),
        sa.Column("name", WORDS, primary_key=True),
    )
    op.create_table(
        "toolcrib_sessions",
        sa.Column("user", WORDS, _of("toolcrib_users.id"), primary_key=True),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("device", sa.Text),
        sa.Column("language", WORDS),
        sa.Column("time_zone", WORDS),
        sa.Column("started", sa.Double, nullable=False),
    )


def _installs() -> None:
    op.create_table(
        "toolcrib_installs",
        sa.Column("user", WORDS, _of("toolcrib_users.id"), primary_key=True),
        sa.Column("package", WORDS, _of("toolcrib_apps.package"), primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
    )
    op.create_index("toolcrib_installs_package", "toolcrib_installs", ["package", "user"])
    place = ["toolcrib_installs.user", "toolcrib_installs.package"]
    op.create_table(
        "toolcrib_app_data",
        sa.Column("user", WORDS, primary_key=True),
        sa.Column("package", WORDS, primary_key=True),
        sa.Column("key", WORDS, primary_key=True),
        sa.Column("value", WORDS, nullable=False),
        sa.ForeignKeyConstraint(["user", "package"], place, ondelete="CASCADE"),
    )


def _of(parent: str) -> sa.ForeignKey:
    return sa.ForeignKey(parent, ondelete="CASCADE")
