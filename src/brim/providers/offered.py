"""What a very small model may choose from: words for an argument, lines of a result.

A model of 135M parameters cannot write an argument, but it can pick one. So the reply's schema offers it the words of
the user's own message as arguments, and the lines of a tool's result as the substance of an answer: whatever it picks
really stands there. Which word, which tool, which lines, and whether to answer or to call again, is the model's choice;
nothing here looks at what a message means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_QUOTED = re.compile(
    r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|‘([^’\n]+)’|「([^」\n]+)」|『([^』\n]+)』|(?<!\w)'([^'\n]+)'(?!\w)"
)
_PIECE = re.compile(
    r"(?P<han>[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)"
    r"|(?P<word>[^\s\u3000-\u303f\u3400-\u9fff\uf900-\uffef,;!?\"'`“”‘’()]+)|(?P<other>\S)"
)
_NAME = re.compile(r"[a-zA-Z*][._/*][a-zA-Z*]|^[A-Z_]{2,}\d*$|^\*\.")
_PLURAL = re.compile(r"^([A-Z]{3,})s$")  # TODOs: what stands in the files is TODO
_PATH = re.compile(r"(?<![\w/.])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,5}(?![\w/])")
_NOTICE = re.compile(r"^\[.*\]$")

# Words that ask rather than name: left out of what is offered, unless they stand in quotes.
_ENGLISH_WORDS = (
    "a about all an and any are at be by calls can code command contain contains could directory do does each "
    "end ends every execute explain file files find folder for from give grep have hello here hey hi how i in "
    "inside into is it its joke keyword keywords launch let line lines list located look match matches me "
    "mention mentions my named names occur occurrences of on open or out place places please print project "
    "read repository run say search see show source sources start tell text than thank thanks that the their "
    "them there these this those to up us use used uses using was we were what when where which who whose why "
    "will with word words would you your "
)
_CHINESE_WORDS = (
    "一下 一个 一句话 下 中 了 什么 代码 你 你好 使用 全部 关键字 关键词 内容 列一下 列出 到 单词 去 名为 名字 "
    "吗 吧 含有 呢 命令 和 哪 哪些 哪儿 哪里 在 地方 字 帮 帮我 我 所 所有 打开 执行 找 找一下 找一找 找出 "
    "找到 搜 搜一下 搜索 文件 文件夹 是 显示 有 有没有 来 查 查一下 查找 查看 用 用了 用到 的 目录 看 看一下 "
    "看看 给 给我 解释 词 说 请 读 读一下 读取 谁 调用 谢谢 跑 跑一下 运行 这 这个 那 那个 都 里 里面 项目 "
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_CHINESE = sorted(_CHINESE_WORDS.split(), key=len, reverse=True)
_MOST_WORDS = 24
_LONGEST_WORD = 120
_LONGEST_LINE = 160
_MOST_LINES = 400


def is_chinese(text: str) -> bool:
    """Whether a text has Han characters."""
    return _HAN.search(text) is not None


def words_of(text: str) -> list[str]:
    """Words of a message that can be an argument, in order: quoted ones, runs of words, and names in them.

    Without the words that only ask, unless they stand in quotes; Chinese is cut at such words.
    """
    found: dict[str, None] = {}
    for quoted in _QUOTED.finditer(text):
        found[next(group for group in quoted.groups() if group is not None).strip()] = None
    run: list[str] = []
    for piece in _PIECE.finditer(text):
        word = piece["word"]
        if word is not None:
            word = word.rstrip(".:") if not word.endswith("*") else word
            word = _PLURAL.sub(r"\1", word)
            if word and word.lower() not in _ENGLISH and re.search(r"[\w*]", word):
                run.append(word)
                continue
        _add_run(found, run)
        if piece["han"] is not None:
            found.update(dict.fromkeys(_cut_chinese(piece["han"])))
    _add_run(found, run)
    words = [word for word in found if word and len(word) <= _LONGEST_WORD]
    return words[:_MOST_WORDS]


def _add_run(found: dict[str, None], run: list[str]) -> None:
    """A run of words whole; apart, too, each that looks like a name, and what follows a verb that opens a sentence."""
    found[" ".join(run)] = None
    if len(run) > 1:
        found.update(dict.fromkeys(word for word in run if _NAME.search(word)))
        if re.fullmatch(r"[A-Z][a-z]+", run[0]):
            found[" ".join(run[1:])] = None
    run.clear()


def _cut_chinese(run: str) -> list[str]:
    for stop in _CHINESE:
        run = run.replace(stop, " ")
    return run.split()


def paths_of(text: str, most: int = 6) -> list[str]:
    """File names and paths with an extension that stand in a result, in order, each once."""
    found: dict[str, None] = {}
    for path in _PATH.finditer(text):
        found[path[0]] = None
        if len(found) == most:
            break
    return list(found)


def lines_of(result: str) -> list[str]:
    """The lines of a result that say something: no blank ones, no notices in brackets unless there is nothing else."""
    lines = [line.rstrip() for line in result.splitlines() if line.strip()]
    return [line for line in lines if not _NOTICE.match(line)] or lines


def line_groups(lines: Sequence[str], most: int = 5) -> list[list[str]]:
    """Lines as up to `most` groups of neighbours, of which an answer picks one line each.

    So no line is picked twice and the picks are spread over the whole. Each line is offered once, a long one by its
    beginning, and of very many lines an even choice.
    """
    offered = list(dict.fromkeys(line[:_LONGEST_LINE] for line in lines))
    if len(offered) > _MOST_LINES:
        offered = [offered[i * len(offered) // _MOST_LINES] for i in range(_MOST_LINES)]
    count = min(most, len(offered))
    return [offered[i * len(offered) // count : (i + 1) * len(offered) // count] for i in range(count)]


def sentences(chinese: bool, picked: int, of: int) -> Sequence[str]:
    """Openings of an answer that picks lines; each is true whatever is picked."""
    if picked == of:
        return ("结果如下：", "工具返回的内容：") if chinese else ("This is the result:", "The tool returned this:")
    if chinese:
        return (f"结果共 {of} 行，其中 {picked} 行：", f"从 {of} 行结果中选出 {picked} 行：")
    return (f"{picked} of the {of} lines of the result:", f"The result has {of} lines, among them:")
