"""The Alembic environment: runs on the connection and in the transaction that `schema` has opened."""

from alembic import context

from toolcrib.store.sql.migrations import VERSION_TABLE
from toolcrib.store.sql.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
