"""What Alembic runs to reach the database: on the connection, in the transaction, that `schema` opened."""

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
