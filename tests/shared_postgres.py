"""A real Postgres on loopback, started from the system's own package and gone when the tests are over."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


def _postgres_bin() -> Path | None:
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    found = shutil.which("postgres")
    return Path(found).resolve().parent if found else None


def _as_user(command: list[str]) -> list[str]:
    """Postgres refuses to run as root: root runs it as the package's own user."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serve_postgres() -> Iterator[str]:
    """The URL of a server of our own; skips the test where no server is installed."""
    binaries = _postgres_bin()
    if binaries is None:
        pytest.skip("no Postgres server installed here (Debian: apt-get install postgresql)")
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    folder = Path(tempfile.mkdtemp(prefix="brim-pg-", dir="/tmp"))
    data = folder / "data"
    data.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        shutil.chown(data, "postgres")
    subprocess.run(
        _as_user(
            [str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync"]
        ),
        check=True,
        capture_output=True,
    )
    port = _free_port()
    control = _as_user([str(binaries / "pg_ctl"), "-D", str(data), "-l", str(folder / "log"), "-w"])
    subprocess.run(
        [
            *control,
            "-o",
            f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200 -k {folder}",
            "start",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(folder)


def new_schema(server: str) -> str:
    """A schema is a database of its own to brim, and made in a millisecond."""
    import psycopg

    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"')
    return f"{server}?options=-csearch_path%3D{name}"
