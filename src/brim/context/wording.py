"""The language of a conversation, and how brim marks the text it writes itself.

Everything brim puts into a view begins with `MARK` in square brackets, so that neither a model nor brim itself, when
it meets such text again in an imported history, takes it for the words of a user.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from brim.conversation import Message

Language: TypeAlias = Literal["en", "zh"]

MARK = "[brim"
"""What every text made by brim begins with."""

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LETTER = re.compile(r"[A-Za-z\u00c0-\u024f]")
_SAMPLE_CHARS = 20_000
_HAN_SHARE = 0.2
"""Above this share of Han among all letters a text counts as Chinese: a Chinese sentence with paths and English
terms in it is above, an English one that quotes a Chinese name is below."""


def is_injected(text: str) -> bool:
    """The text was made by brim (a summary, a notice, a stub), not typed by anyone."""
    return text.lstrip().startswith(MARK)


def language_of_text(text: str) -> Language:
    """`zh` where Han characters are more than a fifth of the letters of its first 20,000 characters, else `en`."""
    sample = text[:_SAMPLE_CHARS]
    han = len(_HAN.findall(sample))
    if not han:
        return "en"
    return "zh" if han > _HAN_SHARE * (han + len(_LETTER.findall(sample))) else "en"


def language_of(messages: Sequence[Message]) -> Language:
    """The language the user writes in; where there is no user text, that of the assistant."""
    for role in ("user", "assistant"):
        pieces: list[str] = []
        length = 0
        for message in messages:
            if message.role == role and (text := message.text) and not is_injected(text):
                # A long paste says little about the language of the person who pasted it.
                pieces.append(text[:400])
                length += len(pieces[-1])
                if length > _SAMPLE_CHARS:
                    break
        if pieces:
            return language_of_text("\n".join(pieces))
    return "en"


class Wording(msgspec.Struct, frozen=True):
    """The sentences and headings of a summary in one language."""

    header: str
    originals: str
    pins: str
    focus: str
    goal: str
    first: str
    latest: str
    rules: str
    facts: str
    said: str
    revised: str
    done: str
    open: str
    answered: str
    no_reply: str
    in_progress: str
    decisions: str
    files: str
    commands: str
    errors: str
    tools: str
    put_back: str
    cut: str
    uses: dict[str, str]
    left_out: str


WORDING: dict[Language, Wording] = {
    "en": Wording(
        header="background: summary of {count} earlier messages, made by brim. It is not a new request and nobody is "
        "speaking here. The user's constraints in it still hold and must be obeyed.",
        originals="Originals: {fetch}.",
        pins="Pinned by the user (verbatim)",
        focus="Kept because the user asked for it (quoted from the conversation)",
        goal="Goal (the user's words)",
        first="First request",
        latest="Latest request among these",
        rules="Constraints in force (the user's words)",
        facts="Facts the user gave (they bind later work)",
        said="Messages of the user, quoted in order",
        revised="no longer holds",
        done="Done",
        open="Not done or open",
        answered="Requests and replies",
        no_reply="no reply yet",
        in_progress="in progress",
        decisions="Decisions and findings of the assistant",
        files="Files",
        commands="Commands and outcomes",
        errors="Errors and dead ends (tool output, quoted)",
        tools="Tools used",
        put_back="Also recorded",
        cut="[… summary cut to its budget …]",
        uses={"read": "read", "wrote": "written", "edited": "edited", "deleted": "deleted", "moved": "moved"},
        left_out="[… {count:,} characters left out …]",
    ),
    "zh": Wording(
        header="背景：以下是 brim 对此前 {count} 条消息的摘要，不是新的请求，也不是任何人在说话。"
        "其中用户的约束仍然有效，必须遵守。",
        originals="原文：{fetch}。",
        pins="用户固定的内容（原文）",
        focus="按用户要求保留（引自对话）",
        goal="目标（用户原话）",
        first="最初的请求",
        latest="其中最近的请求",
        rules="仍然有效的约束（用户原话）",
        facts="用户给出的情况（对后续工作有约束力）",
        said="用户的消息（按顺序引用）",
        revised="已不再适用",
        done="已完成",
        open="未完成或待定",
        answered="请求与答复",
        no_reply="尚无答复",
        in_progress="进行中",
        decisions="助手的决定与发现",
        files="文件",
        commands="命令与结果",
        errors="错误与走不通的路（引用工具输出）",
        tools="用过的工具",
        put_back="另有记录",
        cut="[… 摘要已按预算截断 …]",
        uses={"read": "读", "wrote": "写", "edited": "改", "deleted": "删", "moved": "移"},
        left_out="[… 省略 {count:,} 个字符 …]",
    ),
}
