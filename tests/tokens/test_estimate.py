"""The estimate without a tokenizer: near the truth on every kind of text, never far below it."""

from __future__ import annotations

import base64
import json
import random
import statistics
from pathlib import Path

import pytest
import toktok
from hypothesis import given, settings
from hypothesis import strategies as st

import brim
from brim.tokens import estimate_tokens
from brim.tokens.estimate import estimate_batch, estimate_by_chars

ENGLISH = (
    """The committee met on Thursday to go over what had been agreed in spring. Nobody had brought the minutes, so
they began by writing down what each of them remembered, which took most of the morning. By noon it was clear that
two different budgets had been passed, both of them signed, and that the larger one had already been spent. The
treasurer, who had been against it from the start, said nothing and looked out of the window. It was raining again,
and the river had come up over the lower path. Somebody suggested that they adjourn until the accounts were complete;
somebody else asked when that would be. There was a short silence. "In my experience," the chairman said at last,
"accounts are never complete. They are only ever abandoned at a moment that suits the accountant." They voted, and
the motion to carry on was passed by a single voice. The afternoon went quickly after that. """
    * 2
)
CHINESE = (
    """会议在星期四举行,讨论春天已经商定的事情。没有人带会议记录,所以他们先把各自记得的内容写下来,这花了大半个上午。
到了中午,大家才明白通过了两份不同的预算,两份都签了字,而数额较大的那一份已经花完了。财务主管从一开始就反对,他什么也没说,
只是看着窗外。又下雨了,河水已经漫过了下面的小路。有人建议等账目齐全以后再开会;另一个人问那要等到什么时候。沉默了一会儿。
主席最后说:“根据我的经验,账目从来不会齐全,只是在会计方便的时候停下来而已。”他们投票表决,继续开会的动议以一票之差获得通过。
在这之后,下午过得很快。请把这个项目里所有的 TODO 关键词都列出来,并且说明每一个文件的用途和修改建议。"""
    * 2
)


def o200k(texts: list[str]) -> list[int]:
    counts: list[int] = toktok.batch_count(texts, "o200k_base")
    return counts


def pieces(text: str, size: int = 600) -> list[str]:
    return [text[at : at + size] for at in range(0, max(1, len(text) - size // 2), size)]


def python_sources() -> list[str]:
    root = Path(brim.__file__).parent
    text = "\n".join(path.read_text("utf-8") for path in sorted((root / "budget").glob("*.py")))
    return pieces(text, 1_500)


def records() -> list[dict[str, object]]:
    r = random.Random(5)
    return [
        {"id": r.randrange(10**6), "name": r.choice(["alpha", "beta worker", "gamma"]), "ok": r.random() < 0.5,
         "tags": r.sample(["new", "paid", "blocked", "retry"], 2), "total": round(r.random() * 900, 2),
         "address": {"street": f"{r.randrange(200)} Main Street", "city": "Springfield"}}
        for _ in range(120)
    ]  # fmt: skip


def log_lines() -> str:
    r = random.Random(6)
    return "\n".join(
        f"2026-11-{r.randrange(1, 28):02}T{r.randrange(24):02}:{r.randrange(60):02}:{r.randrange(60):02}Z "
        f"{r.choice(['INFO', 'WARN', 'ERROR'])} [{r.choice(['http', 'worker-3', 'db.pool'])}] "
        f"{r.choice(['request', 'retry', 'connection'])} {r.getrandbits(64):016x} took {r.randrange(9_000)} ms from "
        f"10.{r.randrange(256)}.{r.randrange(256)}.{r.randrange(256)}"
        for _ in range(250)
    )


@pytest.mark.parametrize(
    ("texts", "most"),
    [
        (pieces(ENGLISH), 0.06),
        (python_sources(), 0.08),
        (pieces(CHINESE, 300), 0.12),
        (pieces(json.dumps(records(), indent=2), 1_200), 0.10),
        (pieces(json.dumps(records(), separators=(",", ":")), 1_200), 0.10),
        (pieces(log_lines(), 1_200), 0.08),
    ],
    ids=["english", "python", "chinese", "json", "minified json", "logs"],
)
def test_the_median_error_is_small(texts: list[str], most: float) -> None:
    """On prose, code, Chinese, JSON and logs the median piece is within a few percent of o200k_base."""
    errors = [abs(estimate_tokens(text) / true - 1) for text, true in zip(texts, o200k(texts), strict=True)]
    assert statistics.median(errors) <= most


def dense() -> dict[str, str]:
    r = random.Random(7)
    hexes = "\n".join(f"{r.getrandbits(160):040x}" for _ in range(400))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    b64 = "".join(r.choice(letters) for _ in range(12_000))
    mini = "function a(b,c){return b[c]||(b[c]={d:1,e:[2,3]}),!b.f&&g(b.h?i(j):k)};" * 150
    return {"hex": hexes, "base64": b64, "minified": mini, "emoji": "👩‍👩‍👧‍👦🏳️‍🌈🧑🏽‍🚀🔥🎉" * 100}


@pytest.mark.parametrize(("kind", "least"), [("hex", 8_700), ("base64", 7_400), ("minified", 5_000), ("emoji", 2_500)])
def test_dense_text_is_not_taken_for_words(kind: str, least: int) -> None:
    """Hashes, base64, minified code and joined emoji: near the true count where characters / 4 sees a third of it."""
    text = dense()[kind]
    assert least <= estimate_tokens(text) <= 1.25 * o200k([text])[0]


@pytest.mark.parametrize(
    "text",
    ["=" * 5_000, "-" * 80 + "\n" + "x = 1\n" * 20, " " * 10_000 + "deep", "\n" * 3_000, "a" * 50_000, "0" * 9_000,
     "A" * 9_000, "\t" * 2_000, "你" * 2_000, base64.b64encode(bytes(9_000)).decode()],
)  # fmt: skip
def test_runs_of_one_character_are_not_overshot(text: str) -> None:
    """A bar, padding or zeros: within a factor of 2.5 of the true count, both ways."""
    true = o200k([text])[0]
    assert true / 2.5 <= estimate_tokens(text) <= 2.5 * true + 4


@given(st.text(st.characters(), max_size=500))
@settings(max_examples=200, deadline=None)
def test_any_text_has_an_estimate(text: str) -> None:
    """No text raises, none but the empty one is free, and twice the text is not less."""
    assert (estimate_tokens(text) == 0) == (text == "")
    assert estimate_tokens(text + text) >= estimate_tokens(text) - 1
    assert estimate_batch("classes")([text, text]) == [estimate_tokens(text)] * 2


def test_time_grows_with_the_length_alone() -> None:
    """A megabyte is estimated whatever it is made of; with time that grew faster, this would not end."""
    for text in ("word and word " * 75_000, "x" * 1_000_000, "-=" * 500_000, "搜索关键词" * 70_000):
        assert estimate_tokens(text) > 0


def test_the_rule_of_thumb_is_there_on_request() -> None:
    """characters / 4 x 1.2, rounded up."""
    assert estimate_by_chars("x" * 100) == 30 and estimate_by_chars("x") == 1 and estimate_by_chars("") == 0
    assert estimate_batch("chars")(["x" * 100]) == [30]
