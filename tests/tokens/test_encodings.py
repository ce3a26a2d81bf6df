"""Which encoding a model counts with, and that counting never leaves the machine."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brim.conversation.clean import clean_text
from brim.tokens import counter_for, encoding_of
from brim.tokens.encodings import _chunks, _tiktoken_has, _with_tiktoken, bare_name, batch_count


@pytest.mark.parametrize(
    ("model", "encoding", "exact"),
    [
        ("gpt-4o", "o200k_base", True),
        ("openai/gpt-4o-mini-2024-07-18", "o200k_base", True),
        ("gpt-4.1-nano", "o200k_base", True),
        ("GPT-5.6", "o200k_base", True),
        ("o3-mini", "o200k_base", True),
        ("o1", "o200k_base", True),
        ("ft:gpt-4o-2024-08-06:acme::abc", "o200k_base", True),
        ("azure/gpt-35-turbo", "cl100k_base", True),
        ("gpt-4", "cl100k_base", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("openrouter/openai/gpt-oss-120b", "o200k_harmony", True),
        ("qwen3.5-plus", "qwen3.5", True),
        ("dashscope/qwen-max", "qwen3.5", False),
        ("claude-sonnet-4-5", "cl100k_base", False),
        ("bedrock/us.anthropic.claude-opus-4-1-v1:0", "cl100k_base", False),
        ("gemini-3-pro-preview", "cl100k_base", False),
        ("deepseek-chat", "cl100k_base", False),
        ("mistral-large-latest", "cl100k_base", False),
        ("ollama/llama3.2", "cl100k_base", False),
        ("my-company/custom-model-v7", "cl100k_base", False),
        ("olmo-2", "cl100k_base", False),
        ("", "cl100k_base", False),
        (None, "cl100k_base", False),
    ],
)
def test_each_model_counts_with_its_encoding(model: str | None, encoding: str, exact: bool) -> None:
    """OpenAI and Qwen models get their own encoding, everything else cl100k_base and says that it is a fallback."""
    assert encoding_of(model) == (encoding, exact)
    counter = counter_for(model)
    assert counter.exact is exact
    assert counter.name == (encoding if exact else f"{encoding} (fallback)")


def test_models_of_one_encoding_share_their_counter() -> None:
    """A counter is made once: counts cached for one model serve the next of the same kind."""
    assert counter_for("gpt-4o") is counter_for("openai/gpt-4o-2024-08-06")
    assert counter_for("claude-sonnet-4-5") is not counter_for("gpt-4o")


def test_bare_name_drops_providers_and_regions() -> None:
    """Prefixes of routers, regions and fine-tuning do not hide a model."""
    assert bare_name("Bedrock/eu.anthropic.claude-x") == "claude-x"
    assert bare_name("ft:gpt-4o:org::id") == "gpt-4o:org::id"
    assert bare_name(None) == ""


_OFFLINE = """
import sys
def watch(event, arguments):
    if event.startswith("socket."):
        raise SystemExit(f"touched the network: {{event}}")
sys.addaudithook(watch)
{before}
from brim.tokens import counter_for
counter = counter_for({model!r})
counts = [counter.count_text("hello world"), counter.count_text("hello world!")]
print(counter.name, counter.exact, *counts, sep="|")
"""


@pytest.mark.parametrize("missing", [(), ("toktok",), ("toktok", "tiktoken")])
@pytest.mark.parametrize("model", ["gpt-4o", "text-davinci-003", "llama3.2"])
def test_a_fresh_process_without_network_counts_at_once(tmp_path: Path, missing: tuple[str, ...], model: str) -> None:
    """With a dead proxy and an empty cache a count needs no socket, tiktoken or not."""
    before = f"sys.modules.update(dict.fromkeys({list(missing)!r}))"
    env = {**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9",
           "TIKTOKEN_CACHE_DIR": str(tmp_path)}  # fmt: skip
    program = _OFFLINE.format(before=before, model=model)
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    name, exact, first, second = done.stdout.strip().split("|")
    assert 1 <= int(first) <= 6 and 1 <= int(second) <= 6
    assert not list(tmp_path.iterdir())
    if missing or model != "gpt-4o":
        assert exact == "False" and ("estimate" in name or "fallback" in name)


def test_tiktoken_is_not_asked_for_what_it_would_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent, damaged or disabled cache means that tiktoken is left alone, and a damaged file is not removed."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert not _tiktoken_has("p50k_base")
    damaged = tmp_path / "ec7223a39ce59f226a68acc30dc1af2788490e15"
    damaged.write_bytes(b"not a vocabulary")
    assert not _tiktoken_has("p50k_base")
    assert damaged.exists()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert not _tiktoken_has("p50k_base")
    assert batch_count("no_such_encoding") is None


def test_pieces_for_tiktoken_are_the_whole_text() -> None:
    """Cutting a long text for tiktoken loses nothing, with spaces and without."""
    for text in ("word " * 5_000, "x" * 20_001, "a\n" * 9_000, ""):
        pieces = _chunks(text)
        assert "".join(pieces) == text
        assert max(map(len, pieces)) <= 4_000


def _vocabularies() -> Path | None:
    """Folder with tiktoken's files: its cache, or those inside an installed litellm. None if there is neither."""
    places = [os.environ.get("TIKTOKEN_CACHE_DIR")]
    spec = importlib.util.find_spec("litellm")
    if spec is not None and spec.origin is not None:
        places.append(str(Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"))
    for place in places:
        if place and (Path(place) / "fb374d419588a4632f3f557e76b4b70aebbca790").exists():
            return Path(place)
    return None


_TEXT = st.text(st.characters(codec="utf-8"), max_size=200) | st.text("ab 01{}\n你好🔥", max_size=400)


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_counts_equal_tiktokens(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast counter differs from tiktoken on no text."""
    folder = _vocabularies()
    if folder is None:
        pytest.skip(
            "no vocabulary of tiktoken here: set TIKTOKEN_CACHE_DIR to a folder that has one, or install litellm"
        )
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    theirs, ours = _with_tiktoken(encoding), batch_count(encoding)
    assert theirs is not None and ours is not None

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(_TEXT, max_size=20))
    def same(texts: list[str]) -> None:
        assert theirs(texts) == ours(texts)

    same()
    samples = [
        Path(__file__).read_text(),
        clean_text("half \ud83d pair"),
        "<|endoftext|><|im_start|>",
        "\0\0",
        "'a'*9 '" * 9,
    ]
    assert theirs(samples[1:]) == ours(samples[1:])
    assert abs(theirs(samples[:1])[0] - ours(samples[:1])[0]) <= 2  # one seam between pieces


def test_tiktoken_in_pieces_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tiktoken stands in, a long run of one character does not freeze the process."""
    folder = _vocabularies()
    if folder is None:
        pytest.skip(
            "no vocabulary of tiktoken here: set TIKTOKEN_CACHE_DIR to a folder that has one, or install litellm"
        )
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    count = _with_tiktoken("cl100k_base")
    assert count is not None
    assert 0 < count(["a" * 1_000_000])[0] <= 1_000_000
