"""Where a store is, and how it is opened: created at the newest schema, migrated, refused, or saved what can be.

Nothing here imports SQLAlchemy before a store is really opened.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from brim.errors import ConfigError, StoreUnusable

if TYPE_CHECKING:
    from brim.store.database import Database, Unwritable
    from brim.store.store import Store

TEMPORARY = "temporary:"
"""The URL of a store that is gone when it is closed: what `--no-session` uses."""


def data_dir() -> Path:
    """Where brim keeps data: BRIM_DATA_DIR, else the user's data folder."""
    if named := os.environ.get("BRIM_DATA_DIR"):
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("brim"))


def open_store(
    url: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    salvage: bool = True,
    clock: Callable[[], float] = time.time,
) -> Store:
    """Open a store.

    `url`: None for `brim.db` in `data_dir()`, a path or `sqlite:///path`, `postgresql://…`, or `TEMPORARY`.
    A fresh one is created at the newest schema, an older one migrated; an SQLite file's former state stays beside it. A
    damaged SQLite file is opened read-only with what can be saved, one in a place that cannot be written as it stands
    (`Store.damage` says what is wrong); both are refused where `salvage` is False.

    Raises StoreUnusable where there is none and `create` is False, where it is newer than this brim, or where it can be
    neither read nor written; ConfigError for a URL that is neither SQLite nor Postgres, or a missing driver.
    """
    text = os.fspath(url) if url is not None else str(data_dir() / "brim.db")
    if text == TEMPORARY:
        return _open_temporary(clock)
    path = _sqlite_path(text)
    if path is None:
        return _open(_postgres_url(text), None, clock)
    from brim.store.database import Damaged, Unwritable

    _prepare_file(path, create)
    try:
        return _open(text, path, clock)
    except Damaged as damage:
        if not salvage:
            raise
        return open_saved(path, damage, clock)
    except Unwritable as reason:
        if not salvage:
            raise
        return _open_to_read(path, reason, clock)


def _open(
    url: str, path: Path | None, clock: Callable[[], float], *, durable: bool = True, still: bool = False
) -> Store:
    from brim.store.database import Database
    from brim.store.migrate import bring_to_head, copy_before
    from brim.store.store import Store

    database: Database = Database(url, path=path, durable=durable, still=still)
    try:
        migrated = bring_to_head(database)
        store = Store(database, clock=clock)
        store.migrated = migrated
        store.former = copy_before(path, migrated) if path is not None and migrated else None
        return store
    except BaseException:
        database.close()
        raise


def _open_temporary(clock: Callable[[], float]) -> Store:
    import shutil
    import tempfile
    import weakref

    folder = Path(tempfile.mkdtemp(prefix="brim-"))
    store = _open(TEMPORARY, folder / "brim.db", clock, durable=False)
    # also when the process ends, or the store is let go, without a close
    store.at_close(weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True))
    return store


def _open_to_read(path: Path, reason: Unwritable, clock: Callable[[], float]) -> Store:
    """A read-only store of a file that cannot be written: the file itself, or, where a log stands beside it, a copy of both.
    Raises `reason` where that cannot be had either."""
    import shutil
    import tempfile
    import weakref

    log = Path(f"{path}-wal")
    folder: Path | None = None
    try:
        if not path.is_file() or not path.stat().st_size:
            raise reason
        if log.exists() and log.stat().st_size:
            folder = Path(tempfile.mkdtemp(prefix="brim-"))
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", folder / f"brim.db{suffix}")
            store = _open(str(path), folder / "brim.db", clock, durable=False)
            store.at_close(weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True))
        else:
            store = _open(str(path), path, clock, still=True)
    except (OSError, StoreUnusable):
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise reason from None
    store.seal(path, reason.message, reason.hint)
    return store


def open_saved(path: Path, damage: StoreUnusable, clock: Callable[[], float]) -> Store:
    """A read-only store with what can be read of the damaged file; the file itself is not touched."""
    from brim.store.salvage import save_what_can_be

    store = _open_temporary(clock)
    report = save_what_can_be(path, store.database)
    store.seal(path, f"{damage.message}. {report}")
    return store


def _sqlite_path(url: str) -> Path | None:
    if url.startswith("sqlite:"):
        rest = url.partition(":///")[2]
        if not rest:
            raise ConfigError(f"the store URL {url!r} names no file", hint="write sqlite:////absolute/path/brim.db")
        return Path(rest).expanduser()
    if "://" in url:
        return None
    return Path(url).expanduser()


def _postgres_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        return f"postgresql+psycopg://{rest}"
    raise ConfigError(
        f"the store URL scheme {scheme!r} is unknown", hint="use a file path, sqlite:/// or postgresql://"
    )


def _prepare_file(path: Path, create: bool) -> None:
    """Make folder and file, readable by their owner alone: they hold conversations."""
    if path.exists():
        return
    if not create:
        raise StoreUnusable(f"there is no session database at {path}", hint="the first `ai` creates it")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreUnusable(
            f"cannot create the session database {path}: {error.strerror}",
            hint="make the folder writable, set BRIM_DATA_DIR to another one, or run without saving: --no-session",
        ) from error
