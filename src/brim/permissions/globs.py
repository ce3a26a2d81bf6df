"""Whether a pattern of the shell's and a pattern of a rule may mean the same file, told without looking at any."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec


class Piece(msgspec.Struct, frozen=True):
    """One position of a pattern: `text` is one character, "" any one, within a folder unless `deep`; `many`: any number of
    them; `first`: at the start of a name, where the shell's wildcards stand for no dot; `inside`: a class of characters."""

    text: str = ""
    many: bool = False
    deep: bool = False
    first: bool = False
    inside: str = ""


def may_meet(glob: str, pattern: str) -> bool:
    """Whether a glob of the shell's (absolute) may name a file that a pattern of a rule (absolute, `**` goes below, all below
    a folder included) covers. Says yes where a pattern is too odd to tell."""
    # `*env` was written for `.env`; `*.py` beside a rule `.env*` was not
    told = re.search(r"\w", glob.rpartition("/")[2]) is not None and not re.search(
        r"[*?\[]", pattern.rpartition("/")[2]
    )
    one = list(_of_shell(glob, dots=told))
    forms = {pattern, pattern.removesuffix("/**"), pattern.rstrip("/") + "/**"}
    for _ in range(3):
        forms |= {each.replace("/**/", "/", 1) for each in forms}
    return any(_meet(one, list(_of_rule(each))) for each in forms)


def names_it(glob: str, path: str) -> bool:
    """Whether a glob of the shell's names a path, a hidden one included: classes as it reads them."""
    return _meet(list(_of_shell(glob, dots=True)), [Piece(char) for char in path])


def _of_shell(glob: str, *, dots: bool = False) -> Iterator[Piece]:
    """`dots`: wildcards of the last name stand for the dot of a hidden one, too."""
    glob = re.sub(r"\*+", "*", glob)
    position = 0
    while position < len(glob):
        char = glob[position]
        first = (position == 0 or glob[position - 1] == "/") and not (dots and "/" not in glob[position:])
        position += 1
        if char == "[" and (end := re.compile(r"[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]/])*\]").match(glob, position)):
            yield Piece(first=first, inside=end[0][:-1])
            position = end.end()
        elif char in "*?":
            yield Piece(many=char == "*", first=first)
        elif char in "@+!(" or char == "\\":
            yield Piece(many=True)  # perhaps an extended pattern, perhaps an escape: anything at all
            return
        else:
            yield Piece(char)


def _of_rule(pattern: str) -> Iterator[Piece]:
    position = 0
    while position < len(pattern):
        if pattern.startswith("**", position):
            position += 2
            yield Piece(many=True, deep=True)
            continue
        char = pattern[position]
        position += 1
        if char in "*?[":
            yield Piece(many=char != "?")
            position = max(position, pattern.find("]", position) + 1) if char == "[" else position
        else:
            yield Piece(char)


def _meet(one: list[Piece], two: list[Piece]) -> bool:
    """Whether two patterns have a text in common: all pairs of places that can be reached together."""
    todo = [(0, 0, False)]
    seen = set(todo)
    while todo:
        i, j, begun = todo.pop()
        if i == len(one) and j == len(two):
            return True
        left = one[i] if i < len(one) else None
        right = two[j] if j < len(two) else None
        then = []
        if left is not None and left.many:
            then.append((i + 1, j, False))
        if right is not None and right.many:
            then.append((i, j + 1, begun))
        if left is not None and right is not None and _share(left, right, begun):
            then.append((i if left.many else i + 1, j if right.many else j + 1, left.many))
        for each in then:
            if each not in seen:
                seen.add(each)
                todo.append(each)
    return False


def _share(left: Piece, right: Piece, begun: bool) -> bool:
    """Whether one character can stand at both places."""
    if left.text and right.text:
        return left.text == right.text
    if left.text:
        return right.deep or left.text != "/"
    if right.text:
        if right.text == "/" or (right.text == "." and left.first and not begun):
            return False
        return not left.inside or _in_class(left.inside, right.text)
    return True


def _in_class(inside: str, char: str) -> bool:
    if re.search(r"\[[:.=]|\\", inside):
        return True
    negated, body = inside[:1] in ("!", "^"), inside.lstrip("!^") if inside[:1] in ("!", "^") else inside
    found = any(low <= char <= (high or low) for low, high in re.findall(r"(.)(?:-(.))?", body))
    return found != negated
