"""Requests tell apart what was written to a provider's cache for an hour: it has a price of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("requests") as table:
        table.add_column(sa.Column("cached_write_1h", sa.BigInteger))
