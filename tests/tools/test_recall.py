"""recall: an original is walked through to its end, found by pattern, and itself bounded."""

from __future__ import annotations

import pytest

from .conftest import Bench, body, pages


def test_pages_of_an_original_are_the_original(bench: Bench) -> None:
    """Following the offsets gives every character of what a command printed."""
    bench.with_caps(bash=300, read=500)
    output = bench.call("bash", command='for i in $(seq 1 3000); do echo "line $i é汉"; done')
    whole = "".join(f"line {i} é汉\n" for i in range(1, 3001))
    assert output.handle is not None and pages(bench, "recall", handle=output.handle) == whole
    assert pages(bench, "recall", handle=output.handle[:7]) == whole


@pytest.mark.parametrize("printed", ["'x' * 70000 + 'END'", "'汉👩‍👩‍👧' * 9000", "'a\\\\r' * 5000 + 'b' * 9000"])
def test_a_notice_leads_to_the_first_missing_character(bench: Bench, printed: str) -> None:
    """The offset and character that a notice names are exactly where showing stopped, inside a line, too."""
    bench.with_caps(bash=400)
    output = bench.call("bash", command=f'python3 -c "print({printed})"')
    shown = output.text.split("\n")[1]
    gap = output.text.split("recall handle ")[1]
    offset, char = int(gap.split("offset ")[1].split(",")[0].split(".")[0]), int(gap.split("char ")[1].split(".")[0])
    assert offset == 1 and char == len(shown) + 1
    following = bench.call("recall", handle=output.handle, offset=offset, char=char)
    line = eval(printed.replace("\\\\", "\\")).rsplit("\r", 1)[-1]
    assert (shown + body(following)).startswith(line[: len(shown) + 100])


def test_original_reads_like_the_output(bench: Bench) -> None:
    """Colours and overwritten progress are gone from the original as they were from the output: line numbers agree."""
    bench.with_caps(bash=200)
    output = bench.call(
        "bash", command=r"for i in $(seq 1 2000); do printf '\033[32m%s\033[0m: 1%%\r%s: 100%%\n' $i $i; done"
    )
    page = bench.call("recall", handle=output.handle, offset=1000, limit=2)
    assert body(page) == "1000: 100%\n1001: 100%\n"


def test_grep_in_an_original(bench: Bench) -> None:
    """A pattern gives the lines that match, numbered, bounded, with the total; a wrong one is an error; none is said."""
    output = bench.call("bash", command="seq 1 50000")
    found = bench.call("recall", handle=output.handle, pattern="^1999[89]")
    assert found.text.splitlines()[:3] == ["19998:19998", "19999:19999", f"[2 matching lines in {output.handle}]"]
    many = bench.call("recall", handle=output.handle, pattern="7")
    assert bench.ctx.count(many.text) <= bench.ctx.caps.grep + 60 and many.meta["total_lines"] > 10_000
    assert f"of {many.meta['total_lines']} shown" in many.text and "Narrow the pattern" in many.text
    assert "No line of" in bench.call("recall", handle=output.handle, pattern="x").text
    wrong = bench.call("recall", handle=output.handle, pattern="(")
    assert wrong.is_error and "fix the regular expression" in wrong.text and "literal" not in wrong.text
    across = bench.call("recall", handle=f"recall handle {output.handle}.", pattern=r"^777\n778$")
    assert across.text.splitlines()[:2] == ["777:777", "778:778"]
    assert "19998:19998" in bench.call("recall", handle=output.handle, pattern="-e|19998").text


def test_wrong_handles(bench: Bench) -> None:
    """A handle that is unknown, too short or empty is an error that says so; quotes and brackets around one are forgiven."""
    output = bench.call("bash", command="seq 1 50000")
    for handle in ("", "  ", "ab", "ffffffffffff", "../../etc/passwd", "汉"):
        assert bench.call("recall", handle=handle).is_error
    assert not bench.call("recall", handle=f"[{output.handle}].", limit=1).is_error
    assert bench.call("recall", handle=output.handle, limit=0).is_error
    past = bench.call("recall", handle=output.handle, offset=50_001)
    assert past.is_error and "has 50000 lines" in past.text


def test_originals_of_the_history(bench: Bench) -> None:
    """A handle of the history is asked for there first."""
    bench.ctx.originals = {"5-9.0123456789": "a message\nof two lines"}.get
    assert body(bench.call("recall", handle="5-9.0123456789")) == "a message\nof two lines\n"
    assert "2:of two lines" in bench.call("recall", handle="5-9.0123456789", pattern="two").text
    assert bench.call("recall", handle="9-9.0123456789").is_error
