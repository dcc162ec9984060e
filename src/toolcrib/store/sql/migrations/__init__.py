"""Schema migrations (Alembic): one file in `versions` and one entry here per change."""

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
"""Oldest first. Repeated here, so that an ordinary start does not have to load Alembic."""

VERSION_TABLE = "toolcrib_revision"
