"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("n", _Key, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("title", sa.Text),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("touched", sa.BigInteger, nullable=False),
        sa.Column("mode", sa.Text),
        sa.Column("model", sa.Text),
        sa.Column("parent", sa.Text),
        sa.Column("parent_seq", sa.BigInteger),
        sa.Column("archived", sa.SmallInteger, nullable=False),
        sa.Column("meta", sa.Text),
        sa.Column("plan", sa.Text),
    )
    op.create_table(
        "messages",
        sa.Column("session", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("api", sa.Text, nullable=False),
        sa.Column("piece", sa.Integer),
        sa.Column("body", sa.Text),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("incomplete", sa.SmallInteger, nullable=False),
        sa.Column("meta", sa.Text),
    )
    op.create_table(
        "drafts",
        sa.Column("session", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("chunk", sa.Text, nullable=False),
    )
    op.create_table(
        "requests",
        sa.Column("id", _Key, primary_key=True),
        sa.Column("session", sa.BigInteger, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("day", sa.Text, nullable=False),
        sa.Column("mode", sa.Text),
        sa.Column("model", sa.Text),
        sa.Column("plan", sa.Text),
        sa.Column("plan_whole", sa.SmallInteger, nullable=False),
        sa.Column("bill", sa.Text),
        sa.Column("input", sa.BigInteger),
        sa.Column("cached_read", sa.BigInteger),
        sa.Column("cached_write", sa.BigInteger),
        sa.Column("output", sa.BigInteger),
        sa.Column("reasoning", sa.BigInteger),
        sa.Column("cost", sa.Double),
        sa.Column("duration", sa.Double),
        sa.Column("ttft", sa.Double),
        sa.Column("finish", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("meta", sa.Text),
    )
    op.create_table(
        "leases",
        sa.Column("session", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("started", sa.Text, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
    )
    op.create_table(
        "blobs",
        sa.Column("n", _Key, primary_key=True),
        sa.Column("hash", sa.Text),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("packed", sa.BigInteger, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "blob_chunks",
        sa.Column("blob", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "blob_uses",
        sa.Column("blob", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("session", sa.BigInteger, primary_key=True, autoincrement=False),
    )
    op.create_index("sessions_project", "sessions", ["project", "touched"])
    op.create_index("requests_session", "requests", ["session", "id"])
    op.create_index("requests_day", "requests", ["day"])
    op.create_index("blobs_hash", "blobs", ["hash"])
    op.create_index("blob_uses_session", "blob_uses", ["session"])
