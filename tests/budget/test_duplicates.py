"""Text that stands in a request twice is found, named, and found once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brim.budget import duplicates
from brim.conversation import Message, Text, assistant, call, result, user

FILE = "\n".join(f"def function_number_{i}(argument: int) -> int: return argument + {i}" for i in range(40))


def test_a_file_read_twice_is_named() -> None:
    """Both places are told in words, with how much stands twice and how it begins."""
    messages = [
        user("look at this"),
        assistant("", call("read", {"path": "a.py"}, id="1")),
        result("1", FILE),
        assistant("", call("cat", {"path": "a.py"}, id="2")),
        result("2", "here it is:\n" + FILE + "\nthe end"),
    ]
    (found,) = duplicates(messages)
    assert (found.first, found.again, found.lines) == (2, 4, 40)
    assert found.chars == len(FILE) + 1
    assert found.sample.startswith("def function_number_0")
    assert found.where == "result of cat (message 4) repeats result of read (message 2)"


def test_pastes_and_written_files_count_too() -> None:
    """One long line, a file in a call's arguments, and a repetition inside one message are found; the longest first."""
    long_line = "x".join(str(i) for i in range(400))
    messages = [
        user(long_line),
        user(f"again:\n{long_line}"),
        assistant("", call("write", {"path": "b.py", "content": FILE}, id="1")),
        user(FILE),
        user(FILE[:1_200] + "\n--- and once more ---\n" + FILE[:1_200]),
    ]
    found = duplicates(messages)
    assert [one.chars for one in found] == sorted((one.chars for one in found), reverse=True)
    assert {(one.first, one.again) for one in found} >= {(0, 1), (2, 3)}
    assert any(one.again == 4 for one in found)


def test_short_and_common_lines_are_no_duplicates() -> None:
    """Braces, blank lines, greetings and different texts are left in peace."""
    assert duplicates([user("hello, how are you doing today?")] * 5) == []
    assert duplicates([user("}\n" * 500), user("}\n" * 500)]) == []
    assert duplicates([user(FILE), user(FILE.replace("function", "method"))]) == []


def test_a_large_history_takes_no_time() -> None:
    """Ten thousand results that repeat each other are compared: time grows with the text alone, not with the pairs."""
    messages = [
        result(str(i), f"{FILE}\n{i}" if i % 10 == 0 else f"unique line number {i} of it\n" * 20) for i in range(10_000)
    ]
    assert len(duplicates(messages)) > 900


@given(st.lists(st.lists(st.sampled_from(["a" * 30, "b" * 40, "c", "", "d" * 500]), max_size=12), max_size=6))
def test_what_is_reported_really_stands_twice(texts: list[list[str]]) -> None:
    """Each finding points at text that is there, at least as long as asked for."""
    messages = [Message("user", (Text("\n".join(lines)),)) for lines in texts]
    for one in duplicates(messages, min_chars=60):
        assert one.chars >= 60 and one.first <= one.again
        assert one.sample in messages[one.first].text and one.sample in messages[one.again].text
