"""Originals: kept whole, found by handle, streamed in flat memory."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import textwrap

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brim.conversation.hashing import handle_of_text
from brim.errors import StoreUnusable
from brim.store import BlobMissing, Blobs, BlobWriter, Store, open_store
from brim.store.blobtable import PIECE


def test_protocols_are_kept(store: Store) -> None:
    """What a store hands out is what tools are written against."""
    blobs: Blobs = store.blobs()
    writer: BlobWriter = blobs.open_writer()
    assert writer.write(b"abc") == 3
    handle = writer.close()
    assert handle == hashlib.sha256(b"abc").hexdigest()[:12]
    assert blobs.get(handle) == b"abc"


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE, 5 * PIECE + 17])
def test_any_size_comes_back(store: Store, size: int) -> None:
    """Bytes of any size, written in odd portions, come back whole, in parts and as a stream."""
    data = random.Random(size).randbytes(size)
    blobs = store.blobs()
    handle = blobs.put(data[at : at + 100_003] for at in range(0, size, 100_003))
    assert blobs.get(handle) == data
    assert blobs.info(handle) == (handle, size, size)
    middle = max(0, PIECE - 10)
    assert blobs.get(handle, middle, 50) == data[middle : middle + 50]
    assert blobs.get(handle, size + 5, 10) == b""
    with blobs.open_reader(handle) as reader:
        assert reader.read() == data
        reader.seek(middle)
        assert reader.read(20) == data[middle : middle + 20]
        reader.seek(-3, os.SEEK_END) if size >= 3 else reader.seek(0)
        assert reader.read() == (data[-3:] if size >= 3 else data)


@given(offset=st.integers(0, 3 * PIECE), length=st.none() | st.integers(0, 3 * PIECE))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_range_comes_back(store: Store, offset: int, length: int | None) -> None:
    """A range is the same slice that Python takes of the bytes."""
    data = random.Random(1).randbytes(2 * PIECE + 1000)
    handle = store.blobs().put(data)
    assert store.blobs().get(handle, offset, length) == data[offset : None if length is None else offset + length]


def test_text_keeps_its_handle(store: Store) -> None:
    """A text's handle is the one that the context engine computes for it; any text comes back."""
    for text in ("", "TODO 关键词 🔥", "nul \0 and\r\nlines"):
        handle = store.blobs().put_text(text)
        assert handle == handle_of_text(text)
        assert store.blobs().get_text(handle) == text
    assert store.blobs().get_text(store.blobs().put(b"caf\xe9")) == "caf�"


def test_same_content_is_kept_once(store: Store) -> None:
    """The same bytes twice give the same handle and one row."""
    one, two = store.new_session("/a").id, store.new_session("/b").id
    data = os.urandom(3 * PIECE)
    assert store.blobs(one).put(data) == store.blobs(two).put(data)
    with store.database.definition() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM blobs").scalar_one() == 1
        assert connection.exec_driver_sql("SELECT count(*) FROM blob_chunks").scalar_one() == 3
        assert connection.exec_driver_sql("SELECT count(*) FROM blob_uses").scalar_one() == 2


def test_cap_stops_storing_and_says_so(store: Store) -> None:
    """Past the cap nothing more is kept, and writer and blob tell how much there was."""
    blobs = store.blobs(cap=PIECE + 10)
    writer = blobs.open_writer()
    data = os.urandom(PIECE * 3)
    kept = [writer.write(data[:PIECE]), writer.write(data[PIECE : 2 * PIECE]), writer.write(data[2 * PIECE :])]
    assert kept == [PIECE, 10, 0]
    assert (writer.stored, writer.total) == (PIECE + 10, 3 * PIECE)
    handle = writer.close()
    assert blobs.info(handle) == (handle, PIECE + 10, 3 * PIECE)
    assert blobs.get(handle) == data[: PIECE + 10]


def test_opting_out_keeps_nothing(store: Store) -> None:
    """A store that keeps no originals takes the bytes, and gives no handle."""
    writer = store.blobs(cap=0).open_writer()
    writer.write(b"secret")
    assert (writer.stored, writer.total, writer.close()) == (0, 6, "")
    with store.database.definition() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM blobs").scalar_one() == 0


def test_discarded_writer_leaves_nothing(store: Store) -> None:
    """What was written but not closed is gone."""
    with store.blobs().open_writer() as writer:
        writer.write(os.urandom(PIECE * 9))
    with pytest.raises(ValueError, match="closed"):
        writer.close()
    with store.database.definition() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM blobs").scalar_one() == 0
        assert connection.exec_driver_sql("SELECT count(*) FROM blob_chunks").scalar_one() == 0


def test_handles_may_be_longer_or_shorter(store: Store) -> None:
    """Any unambiguous prefix finds a blob; too short, unknown or ambiguous ones are told apart."""
    blobs = store.blobs()
    handle = blobs.put(b"some text")
    digest = hashlib.sha256(b"some text").hexdigest()
    for name in (digest, digest[:20], digest[:6], handle.upper()):
        assert blobs.get(name) == b"some text"
    with pytest.raises(BlobMissing, match="no handle"):
        blobs.get("ab")
    with pytest.raises(BlobMissing, match="no handle"):
        blobs.get("not hex!")
    with pytest.raises(BlobMissing, match="nothing is kept"):
        blobs.get("000000000000")
    with store.database.definition() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO blobs (hash, size, packed, total, created) VALUES ('{digest[:14]}ff', 0, 0, 0, 0)"
        )
    with pytest.raises(BlobMissing, match="short for 2"):
        blobs.get(handle)
    assert blobs.put(b"some text") == digest[:15], "a handle is as long as it must be"


def test_damaged_original_is_named(store: Store) -> None:
    """An original that lost a piece, or has a broken one, is an error with its handle, not shorter text."""
    blobs = store.blobs()
    data = os.urandom(3 * PIECE)
    handle = blobs.put(data)
    with store.database.definition() as connection:
        connection.exec_driver_sql(f"DELETE FROM blob_chunks WHERE start = {PIECE}")
    assert blobs.get(handle, 0, PIECE) == data[:PIECE]
    with pytest.raises(StoreUnusable, match=f"{handle} is damaged"):
        blobs.get(handle)


def test_memory_stays_flat(url: str) -> None:
    """200 MB streamed through a writer, 64 MB of it kept and read back, hold a few MB at a time."""
    script = textwrap.dedent("""
        import hashlib, resource, sys
        from brim.store import open_store
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        with open_store(sys.argv[1]) as store:
            blobs = store.blobs()
            blobs.get(blobs.put(b"warm" * 300_000))
            before = peak()
            with blobs.open_writer() as writer:
                for n in range(3200):
                    writer.write((b"%d a line of output\\n" % n) * 3000)
                handle = writer.close()
            assert blobs.size(handle) == 64 * 1024 * 1024, blobs.size(handle)
            digest = hashlib.sha256()
            with blobs.open_reader(handle) as reader:
                while piece := reader.read(65536):
                    digest.update(piece)
            assert digest.hexdigest().startswith(handle)
            print(peak() - before)
    """)
    done = subprocess.run([sys.executable, "-c", script, url], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 30


def test_blobs_outlive_the_store(url: str) -> None:
    """A recall after a restart returns the original bytes."""
    with open_store(url) as first:
        session = first.new_session("/work").id
        handle = first.blobs(session).put(b"the whole output")
    with open_store(url) as second:
        assert second.blobs(session).get(handle) == b"the whole output"
