"""How the tables came to be: one file in `versions` and one entry here per change."""

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
"""Oldest first. Said here too, so that an ordinary start need not load Alembic to know."""

VERSION_TABLE = "toolcrib_revision"
