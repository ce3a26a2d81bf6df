"""A workspace's snippets follow its files, its ignore rules and its questions, over real files, SQLite and ripgrep."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brim.retrieval import Retriever
from brim.retrieval.schema import index_path
from brim.tools.ripgrep import NOISE, find_ripgrep

FILES = {
    "shop/cart.py": "class Cart:\n    def add_item(self, item):\n        self.items.append(item)\n",
    "shop/pricing.py": "def apply_discount(price, percent):\n    return price * (100 - percent) / 100\n",
    "shop/shipping.py": "def estimate_delivery(address):\n    return 3\n",
    "tests/test_pricing.py": "def test_apply_discount():\n    assert apply_discount(100, 10) == 90\n",
    "docs/guide.md": "# Guide\n\n## 运费计算\n\n运费按照收货地址的远近来计算。\n\n## Discounts\n\nA discount is a share.\n",
    "README.md": "# Shop\n\nA small shop.\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for name, text in FILES.items():
        write(folder / name, text)
    return folder


@pytest.fixture
def retriever(workspace: Path, tmp_path: Path) -> Iterator[Retriever]:
    made = open_retriever(workspace, tmp_path / "index")
    yield made
    made.close()


def open_retriever(workspace: Path, folder: Path | None, **given: int) -> Retriever:
    return Retriever(workspace, folder, ripgrep=find_ripgrep(), noise=NOISE, seconds=60, **given)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def paths(retriever: Retriever, question: str, count: int = 5) -> list[str]:
    return [each.path for each in retriever.search(question, count).snippets]


def test_the_code_comes_before_its_test(retriever: Retriever) -> None:
    """What is asked about comes first; its tests come behind it, unless the question asks for them."""
    found = retriever.search("how is the discount applied to a price?", 5).snippets
    assert found[0].path == "shop/pricing.py" and found[0].place == "shop/pricing.py:1-2"
    assert found[0].text == FILES["shop/pricing.py"].rstrip()
    assert paths(retriever, "which test covers apply_discount?")[0] == "tests/test_pricing.py"


def test_a_chinese_question_finds_chinese_text(retriever: Retriever) -> None:
    """Questions in Chinese are answered by what is written in Chinese, and by the names of code they mention."""
    assert paths(retriever, "运费是怎么计算的？")[0] == "docs/guide.md"
    assert paths(retriever, "`add_item` 在哪里定义？")[0] == "shop/cart.py"


@pytest.mark.parametrize(
    "question",
    [
        "what happens in shop/shipping.py?",
        'it fails:\nTraceback (most recent call last):\n  File "/srv/app/shop/shipping.py", line 2, in estimate_delivery\n',
        "shop.shipping is wrong",
        "see shipping.py:1",
        "why does `estimate_delivery` return 3",
    ],
)
def test_what_a_question_names_is_found(retriever: Retriever, question: str) -> None:
    """Paths, lines of tracebacks, modules, file names and names of functions lead to their file."""
    assert paths(retriever, question)[0] == "shop/shipping.py"


@pytest.mark.parametrize("question", ["", "hello", "thanks!", "你好", "and now?", "    \n\n"])
def test_a_question_about_nothing_gets_nothing(retriever: Retriever, question: str) -> None:
    """Greetings and words that stand everywhere bring no snippets."""
    assert retriever.search(question, 5).snippets == ()


def test_the_index_follows_the_files(workspace: Path, retriever: Retriever) -> None:
    """An edit, a new file, a renamed and a deleted one are seen by the next question."""
    assert paths(retriever, "warehouse stock counting") == []
    write(workspace / "shop/stock.py", "def count_warehouse_stock():\n    return 1\n")
    assert paths(retriever, "warehouse stock counting") == ["shop/stock.py"]
    (workspace / "shop/stock.py").rename(workspace / "shop/depot.py")
    assert paths(retriever, "warehouse stock counting") == ["shop/depot.py"]
    write(workspace / "shop/depot.py", "def something_else():\n    return 'a grey elephant'\n")
    assert paths(retriever, "warehouse stock counting") == []
    assert paths(retriever, "where does the grey elephant come from") == ["shop/depot.py"]
    (workspace / "shop/depot.py").unlink()
    assert paths(retriever, "where does the grey elephant come from") == []


def test_an_edit_of_the_same_length_is_seen(workspace: Path, retriever: Retriever) -> None:
    """A change that leaves the size as it was is told by its time."""
    path = workspace / "shop/shipping.py"
    assert paths(retriever, "estimate_delivery")[0] == "shop/shipping.py"
    write(path, FILES["shop/shipping.py"].replace("estimate_delivery", "otherwise_renamed"))
    os.utime(path, ns=(1, 1))
    assert paths(retriever, "where is estimate_delivery") == []
    assert paths(retriever, "where is otherwise_renamed") == ["shop/shipping.py"]


def test_ignored_noise_and_secret_files_are_never_shown(workspace: Path, retriever: Retriever) -> None:
    """What .gitignore names, noise folders, lock files, hidden files, keys and secrets are not indexed."""
    word = "zanzibar quokka"
    write(workspace / ".gitignore", "private/\n*.tmp.py\n")
    for name in (
        "private/notes.md", "a.tmp.py", "node_modules/m/index.js", ".venv/x.py", "poetry.lock", ".env", "prod.env",
        "server.key", "id_rsa", "config/secrets.yaml", "credentials.json", "app.min.js",
    ):  # fmt: skip
        write(workspace / name, f"{word}\n")
    write(workspace / "key.txt", f"{word}\n-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
    write(workspace / "open.md", f"{word}\n")
    write(workspace / "scripts/node_modules", f"{word}\n")  # a file, whatever its name
    assert sorted(paths(retriever, word)) == ["open.md", "scripts/node_modules"]


def test_what_may_not_be_read_is_not_shown(retriever: Retriever) -> None:
    """A path that the caller does not allow is passed over, in snippets and in the tree."""
    found = retriever.search("discount price", 5, allowed=lambda path: not path.startswith("shop/"))
    assert found.snippets and all(not each.path.startswith("shop/") for each in found.snippets)
    assert "cart.py" not in retriever.tree(allowed=lambda path: not path.startswith("shop/"))


def test_what_the_request_holds_already_is_not_shown_again(retriever: Retriever) -> None:
    """A file that was handed over, or a snippet that still stands in the view, is not repeated."""
    first = retriever.search("how is the discount applied to a price?", 5).snippets[0]
    again = retriever.search("how is the discount applied to a price?", 5, shown=[f"x\n{first.text}\ny"]).snippets
    assert first.path not in [each.path for each in again]
    handed = retriever.search("how is the discount applied to a price?", 5, shown=[first.path]).snippets
    assert first.path not in [each.path for each in handed]


def test_binary_huge_and_minified_files_are_skipped(workspace: Path, retriever: Retriever) -> None:
    """Files that nobody reads bring no snippets and break nothing."""
    (workspace / "blob.py").write_bytes(b"furry wombat\0\n" * 10)
    write(workspace / "huge.py", "wombat = 'furry' \n" * 60_000)
    write(workspace / "packed.js", "var wombat=furry;" * 2_000)
    write(workspace / "empty.py", "")
    (workspace / "odd.py").write_bytes(b"# furry wombat caf\xe9\n")
    (workspace / "gbk.py").write_bytes("# furry wombat 考拉计数\n".encode("gb18030"))
    os.mkfifo(workspace / "pipe.py")
    assert sorted(paths(retriever, "furry wombat")) == ["gbk.py", "odd.py"]
    assert paths(retriever, "考拉计数") == ["gbk.py"]


@pytest.mark.parametrize("damage", [b"this is no database", b"", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_index_is_made_anew(workspace: Path, tmp_path: Path, damage: bytes) -> None:
    """Whatever stands in the index's file, the question is answered."""
    folder = tmp_path / "index"
    first = open_retriever(workspace, folder)
    assert first.search("discount price", 5).snippets
    first.close()
    path = index_path(folder, workspace)
    path.write_bytes(damage)
    second = open_retriever(workspace, folder)
    found = second.search("discount price", 5)
    assert found.snippets and (not damage or "damaged" in found.notices[0])
    assert second.search("discount price", 5).notices == ()
    second.close()


def test_damage_inside_is_found_while_asking(workspace: Path, tmp_path: Path) -> None:
    """Pages that are broken behind an intact head are noticed when they are read, and the index is made anew."""
    folder = tmp_path / "index"
    for number in range(200):
        write(workspace / f"more/file{number}.py", f"def function_{number}():\n    return 'marsupial {number}'\n")
    first = open_retriever(workspace, folder)
    assert first.search("marsupial 42 function_42", 5).snippets
    first.close()
    path = index_path(folder, workspace)
    data = bytearray(path.read_bytes())
    for at in range(8192, len(data) - 4096, 4096):
        data[at : at + 64] = b"\xaa" * 64
    path.write_bytes(data)
    second = open_retriever(workspace, folder)
    found = second.search("marsupial 42 function_42", 5)
    assert found.snippets[0].path == "more/file42.py" and "made anew" in found.notices[0]
    second.close()


def test_a_locked_index_is_used_as_it_is(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process writes, what is indexed by then answers, and nothing fails."""
    monkeypatch.setattr("brim.retrieval.schema.WAIT_S", 0.05)
    folder = tmp_path / "index"
    retriever = open_retriever(workspace, folder)
    assert retriever.search("discount price", 5).snippets
    other = sqlite3.connect(index_path(folder, workspace), isolation_level=None)
    other.execute("begin immediate")
    write(workspace / "shop/new.py", "x = 1\n")
    assert retriever.search("discount price", 5).snippets
    other.execute("rollback")
    other.close()
    retriever.close()


def test_an_index_that_cannot_be_written_is_told_and_nothing_more(workspace: Path, tmp_path: Path) -> None:
    """Where no index can be kept the user is told once, and the question goes on without snippets."""
    (tmp_path / "taken").write_text("a file where the folder should be")
    retriever = open_retriever(workspace, tmp_path / "taken" / "index")
    found = retriever.search("discount price", 5)
    assert found.snippets == () and len(found.notices) == 1
    assert retriever.search("discount price", 5).notices == ()
    retriever.close()


_PROCESS = """
import sys
from pathlib import Path
from brim.retrieval import Retriever
from brim.tools.ripgrep import NOISE, find_ripgrep
made = Retriever(Path(sys.argv[1]), Path(sys.argv[2]), ripgrep=find_ripgrep(), noise=NOISE, seconds=60)
found = made.search("marsupial 42 function_42", 5)
print(found.snippets[0].path if found.snippets else found.notices)
"""


def test_processes_index_one_workspace_at_once(workspace: Path, tmp_path: Path) -> None:
    """Several processes that begin together end with one sound index and one answer."""
    for number in range(300):
        write(workspace / f"more/file{number}.py", f"def function_{number}():\n    return 'marsupial {number}'\n")
    command = [sys.executable, "-c", _PROCESS, str(workspace), str(tmp_path / "index")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ends = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], ends
    after = open_retriever(workspace, tmp_path / "index")
    assert paths(after, "marsupial 42 function_42")[0] == "more/file42.py"
    after.close()
    database = sqlite3.connect(index_path(tmp_path / "index", workspace))
    assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    assert database.execute("select count(*), count(distinct path) from files").fetchone() == (306, 306)
    database.close()


def test_a_bound_on_files_keeps_the_nearest_and_says_so_once(workspace: Path, tmp_path: Path) -> None:
    """Beyond the bounds the files nearest to the top are kept, and the user is told one time."""
    retriever = open_retriever(workspace, None, most_files=1)
    found = retriever.search("a small shop", 5)
    assert [each.path for each in found.snippets] == ["README.md"] and "5 files" in found.notices[0]
    assert retriever.search("a small shop", 5).notices == ()
    retriever.close()


def test_an_update_that_runs_out_of_time_goes_on_with_the_next(workspace: Path, tmp_path: Path) -> None:
    """A question waits no longer than it was told to; each one reads on, until all is indexed."""
    retriever = Retriever(workspace, tmp_path / "index", ripgrep=find_ripgrep(), noise=NOISE, seconds=0)
    notices = [retriever.search("discount price", 5).notices for _ in range(len(FILES))]
    assert "1 of 6 files" in notices[0][0] and notices[-1] == ()
    assert retriever.search("discount price", 5).snippets[0].path == "shop/pricing.py"
    retriever.close()


def test_a_long_function_is_shown_where_it_speaks_of_the_question(workspace: Path, retriever: Retriever) -> None:
    """Of a chunk over the size of a snippet the part that holds the question's words is shown, with its first line."""
    lines = [f"    step_{number} = compute(number={number}, of='a long list of numbers')" for number in range(50)]
    lines[40] = "    kangaroo = hop(distance='far')"
    write(workspace / "long.py", "\n".join(["def long_function():", *lines]) + "\n")
    (snippet,) = retriever.search("how far does the kangaroo hop", 1).snippets
    assert "kangaroo" in snippet.text and len(snippet.text) < 2_200 and snippet.text.startswith("def long_function")
    assert snippet.start <= 42 <= snippet.end


def test_the_tree_is_bounded_and_the_same_for_the_same_files(workspace: Path, retriever: Retriever) -> None:
    """The tree opens folders from the top down while there is room, counts the rest, and never changes by itself."""
    for number in range(400):
        write(workspace / f"big/part{number % 20}/file{number}.py", "x = 1\n")
    write(workspace / "shop/logo.png", "no text")
    tree = retriever.tree()
    assert tree == retriever.tree() and len(tree.split("\n")) <= 121
    assert "  part19/ (20 files)" in tree and "  cart.py" in tree and "logo.png" not in tree


@pytest.mark.parametrize(
    "question",
    [
        "fix it",
        "commit this",
        "continue",
        "undo that",
        "write a haiku about the sea",
        "继续",
        "今天天气怎么样",
        "给我讲个笑话",
    ],
)
def test_a_single_common_word_is_chance(workspace: Path, retriever: Retriever, question: str) -> None:
    """A request that shares one word with some file, and is not about it, brings no snippet."""
    for name in ("a", "b", "c"):
        text = "fix, commit, continue and undo: write to the sea. 继续。今天的天气。讲笑话。\n"
        write(workspace / f"{name}.txt", text)
    assert paths(retriever, question) == []


def test_names_that_are_no_text_are_passed_over(workspace: Path, retriever: Retriever) -> None:
    """A file whose name is not UTF-8 breaks neither index nor tree; one with odd characters is found."""
    Path(os.fsdecode(os.fsencode(workspace) + b"/caf\xe9.py")).write_text("def furry_wombat():\n    pass\n")
    write(workspace / 'new\nline\'s "file".py', "def furry_wombat():\n    pass\n")
    found = retriever.search("furry wombat", 5)
    assert [each.path for each in found.snippets] == ['new\nline\'s "file".py'] and found.notices == ()
    assert "caf" not in retriever.tree()


def test_a_question_may_hold_anything(retriever: Retriever) -> None:
    """Lone surrogates, NULs, quotes and operators of the search language are words or nothing, never an error."""
    for question in (
        "\ud800 discount \udfff",
        "\0discount\0",
        'discount" OR *',
        "NEAR(discount) - ^x : {a}",
        "]" * 5000,
        "a/" * 9000,
    ):
        found = retriever.search(question, 5)
        assert found.notices == ()
    assert retriever.search('"discount" AND (price', 5).snippets[0].path == "shop/pricing.py"


def test_indexes_that_nobody_uses_go_when_another_is_made(workspace: Path, tmp_path: Path) -> None:
    """The index of a workspace that was not asked for three months is removed; one in use stays."""
    folder = tmp_path / "index"
    for name, age in (("old", 91), ("recent", 30)):
        write(tmp_path / name / "a.md", "# discount price\n")
        retriever = open_retriever(tmp_path / name, folder)
        assert retriever.search("discount price", 5).snippets
        retriever.close()
        path = index_path(folder, tmp_path / name)
        os.utime(path, (path.stat().st_mtime - age * 86_400,) * 2)
    retriever = open_retriever(workspace, folder)
    assert retriever.search("discount price", 5).snippets
    retriever.close()
    assert not index_path(folder, tmp_path / "old").exists() and index_path(folder, tmp_path / "recent").exists()
