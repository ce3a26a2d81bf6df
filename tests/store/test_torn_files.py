"""Files of sessions that a crash, a full disk or two writers left behind: what is whole is read, what is not is named."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from brim.conversation import assistant, call, result, system, user
from brim.errors import UsageError
from brim.formats import parse_message
from brim.store import Store, open_store
from brim.store.importing import Imported

LINES = [json.dumps({"role": "user" if n % 2 == 0 else "assistant", "content": f"m{n}"}).encode() for n in range(10)]


def joined(*parts: bytes | list[bytes]) -> bytes:
    return b"\n".join(line for part in parts for line in ([part] if isinstance(part, bytes) else part)) + b"\n"


def read(store: Store, data: bytes) -> tuple[list[str], Imported]:
    done = store.import_session(data, project="/w", name="s.jsonl")
    return [each.message.text for each in store.load(done.session.id)], done


def test_a_record_with_line_ends_as_they_are(store: Store) -> None:
    """A writer that did not escape the line ends in a string has not lost the record, nor those behind it."""
    spread = b'{"role": "user", "content": "a\n{b}\n\n{\\"c\\": 1}"}'
    texts, done = read(store, joined(LINES[:4], spread, LINES[5:]))
    assert texts == ["m0", "m1", "m2", "m3", 'a\n{b}\n\n{"c": 1}', "m5", "m6", "m7", "m8", "m9"]
    assert done.warnings == ["s.jsonl, line 5: mended, it held line ends as they are, up to line 8"]


def test_records_written_for_the_eye(store: Store) -> None:
    """Records over several lines each are records; one that was torn costs none of those behind it."""
    pretty = [json.dumps(json.loads(line), indent=2).encode() for line in LINES]
    texts, done = read(store, joined(pretty))
    assert texts == [f"m{n}" for n in range(10)] and not done.warnings
    texts, done = read(store, joined(LINES[:4], LINES[4][:25], LINES[5:]))
    assert texts == ["m0", "m1", "m2", "m3", "m5", "m6", "m7", "m8", "m9"]
    assert done.warnings == ["s.jsonl, line 5: skipped, no JSON"]


def test_two_writers_at_once(store: Store) -> None:
    """Where a whole record was written into the middle of another, the whole one is kept."""
    mixed = LINES[4][:25] + LINES[5] + LINES[4][25:]
    texts, done = read(store, joined(LINES[:4], mixed, LINES[6:]))
    assert texts == ["m0", "m1", "m2", "m3", "m5", "m6", "m7", "m8", "m9"]
    [warning] = done.warnings
    assert warning.startswith("s.jsonl, line 5:") and "around a whole one" in warning


@pytest.mark.parametrize("place", ["begin", "middle", "end", "in a string", "behind a record"])
def test_nul_bytes_anywhere(store: Store, place: str) -> None:
    """A run of NUL bytes costs no message wherever it stands, reaches no message, and is named with its line."""
    nuls = b"\0" * 400
    lines = list(LINES)
    line = {"begin": 1, "middle": 5, "end": 11}.get(place, 5)
    if place == "in a string":
        lines[4] = lines[4].replace(b"m4", b"m" + nuls + b"4")
    elif place == "behind a record":
        lines[4] += nuls
    else:
        lines.insert(line - 1, nuls)
    texts, done = read(store, joined(lines))
    assert texts == [
        "m0",
        "m1",
        "m2",
        "m3",
        "m\ufffd4" if place == "in a string" else "m4",
        *(f"m{n}" for n in range(5, 10)),
    ]
    [warning] = done.warnings
    assert warning.startswith(f"s.jsonl, line {line}:") and "NUL bytes" in warning


def test_one_value_that_breaks_off(store: Store) -> None:
    """A message list or a body that was not written to its end is read as far as it goes, at the same line or over many."""
    messages = [json.loads(line) for line in LINES]
    for value in (messages, {"model": "gpt-4o", "messages": messages, "temperature": 1}):
        for indent in (None, 1):
            whole = json.dumps(value, indent=indent).encode()
            end = whole.index(b"m8") + 1
            texts, done = read(store, whole[:end])
            assert texts == [f"m{n}" for n in range(8)]
            assert len(done.warnings) == 1 and "no JSON" in done.warnings[0] and "s.jsonl, line " in done.warnings[0]
            torn = whole.replace(b'"m4"', b'"m4')
            texts, done = read(store, torn)
            assert texts[:4] == ["m0", "m1", "m2", "m3"] and texts[-4:] == ["m6", "m7", "m8", "m9"] and done.warnings
    texts, done = read(store, json.dumps(messages).encode() + b"\0" * 300)
    assert len(texts) == 10 and done.warnings == ["s.jsonl: mended, it had NUL bytes in it"]
    texts, done = read(store, joined(json.dumps(messages[:5]).encode(), json.dumps(messages[5:]).encode()))
    assert texts == [f"m{n}" for n in range(10)] and not done.warnings


def test_line_ends_within_text_that_are_none(store: Store) -> None:
    """U+2028, U+2029 and U+0085 in a text, which some readers take for line ends, end no record."""
    odd = {"role": "user", "content": "a\u2028b\u2029c\x85d"}
    texts, done = read(store, joined(LINES[:4], json.dumps(odd, ensure_ascii=False).encode(), LINES[5:]))
    assert texts[4] == odd["content"] and len(texts) == 10 and not done.warnings


@pytest.mark.parametrize(
    ("data", "said"), [(b"", "is empty"), (b" \n\n", "is empty"), (b"\0" * 4096, "4,096 NUL bytes")]
)
def test_nothing_is_left(store: Store, data: bytes, said: str) -> None:
    """A file of which a crash has left nothing is told for what it is."""
    with pytest.raises(UsageError, match=said):
        read(store, data)


def _log_line(n: int) -> dict[str, Any]:
    said: Any = f"m{n}" if n % 2 == 0 else [{"type": "text", "text": f"m{n}"}]
    role = "assistant" if n % 2 else "user"
    message = {"role": role, "content": said, **({"id": f"msg{n}", "model": "claude-x"} if n % 2 else {})}
    return {"type": role, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "message": message}


@pytest.mark.parametrize("order", [[*range(10), 8, 9], [*range(10), *range(10)], [0, 1, 2, 5, 4, 3, 6, 7, 9, 8]])
def test_a_log_written_twice_or_out_of_order(store: Store, order: list[int]) -> None:
    """Lines of a Claude Code log that stand there twice are read once, and one behind its successor is in its place."""
    data = joined([json.dumps(_log_line(n)).encode() for n in order])
    texts, done = read(store, data)
    assert texts == [f"m{n}" for n in range(10)] and done.kind == "Claude Code log" and not done.warnings


def test_parents_in_a_circle(store: Store) -> None:
    """A log whose lines name each other as parents is read in the order of its lines."""
    lines = [_log_line(n) for n in range(10)]
    lines[4]["parentUuid"] = "u6"
    texts, _ = read(store, joined([json.dumps(line).encode() for line in lines]))
    assert texts == [f"m{n}" for n in range(10)]


def test_a_file_of_another_kind_makes_no_session(store: Store) -> None:
    """Where not one line can be read as a message, the first reason is told, and no empty session is left."""
    data = joined([json.dumps({"type": "event", "payload": {"n": n}}).encode() for n in range(3)])
    with pytest.raises(UsageError, match=r"no message that could be read; s\.jsonl, line 1: "):
        read(store, data)
    assert not store.list_sessions()


def _damaged(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    end = min(len(data), at + chance.randrange(1, 200))
    return chance.choice(
        [
            data[:at], data[:at] + data[end:], data[:at] + b"\0" * (end - at) + data[end:],
            data[:at] + b"\0" * (end - at) + data[at:], data[:at] + chance.randbytes(5) + data[at + 5 :],
            data[:at] + b"\n" + data[at:], data[:at] + data[at - 20 : end] + data[at:],
        ]
    )  # fmt: skip


def test_damaged_exports(store: Store, tmp_path: Path) -> None:
    """However an export is damaged, what comes in is a session that can be gone on with, or a plain refusal; what is lost is
    told, and a plan that may not fit any more is not kept."""
    made = store.new_session("/work", "auto", "m", title="a title", meta={"profile": "code"}).id
    store.append(
        made, [system("s"), user("q é🔥"), assistant("a", call("f", {"x": 1}, id="c1")), result("c1", 'r\n"x"')]
    )
    wire: dict[str, Any] = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
            {"type": "text", "text": "and now?"},
        ],
    }
    store.append(made, parse_message(wire, "anthropic.messages"))
    store.record_request(made, mode="auto", plan={"fates": [1]}, usage={"input": 9}, cost=0.5)
    store.record_request(made, mode="auto", plan={"fates": [1, 2]}, error="boom")
    store.append(made, [user("last")])
    store.blobs(made).put(b"the original \xff" * 20)
    count = len(store.load(made))
    exports = [
        json.dumps(store.export_session(made, originals=True)).encode(),
        json.dumps(store.export_session(made, originals=True), indent=1).encode(),
        "".join(store.export_lines(made, originals=True)).encode(),
    ]
    chance = random.Random(7)
    refused = whole = 0
    with open_store(tmp_path / "other.db") as other:
        for turn in range(300):
            data = _damaged(exports[turn % 3], chance)
            try:
                done = other.import_session(data, project="/w", name="e")
            except UsageError:
                refused += 1
                assert data.count(b'"seq"') < 12
                continue
            found = other.load(done.session.id)
            whole += len(found) == count
            assert len(found) >= count or done.warnings, data
            assert other.last_plan(done.session.id) in (None, {"fates": [1, 2]})
            other.append(done.session.id, [user("goes on")])
    assert refused < 75 and whole > 50


def test_an_export_cut_between_its_lines(store: Store) -> None:
    """Lines that are missing at the end of an export are missed, although each line that is there is whole."""
    made = store.new_session("/work").id
    store.append(made, [user(f"m{n}") for n in range(5)])
    lines = list(store.export_lines(made))
    texts, done = read(store, "".join(lines[:4]).encode())
    assert texts == ["m0", "m1", "m2"] and done.warnings == ["s.jsonl, line 1: 2 of 5 messages are lost"]
    texts, done = read(store, "".join(lines[2:]).encode())
    assert texts == ["m1", "m2", "m3", "m4"] and done.kind == "brim export"
    assert "1 of 5 messages are lost" in done.warnings[-1]
