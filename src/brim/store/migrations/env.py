"""Run by Alembic: migrations go through the connection, and inside the transaction, that brim opened."""

from alembic import context

from brim.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
