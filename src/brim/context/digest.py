"""What the digest of a tool result keeps: a pure function of the result's text and of what else stands in the view.

A result that the model has read keeps each line that carries something seen nowhere else in the view: a code-like
identifier (with `_ . / -`, a digit or an inner capital), or a Chinese value. What an arriving result merely repeats
from text that still stands above, block by block, need not be sent a second time. Both answers are character ranges
(whole lines; of a line over 240 characters the surroundings), and the engine writes the marks between them.

`Seen` is the index both need. It follows from the history and the plan alone, so it can be rebuilt at any time, and it
is kept up message by message: one new message costs the length of its own text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

Span: TypeAlias = tuple[int, int]
Kind: TypeAlias = Literal["code", "run", "list", "grep", "data", "text"]

LONG_LINE = 240
"""Characters; a longer line is cut inside. A page of source code has hardly any."""
AROUND = 64
"""Characters that stay to either side of what is new in a long line: about a phrase, or a JSON row's neighbours."""
LEAST_SAVING = 10
"""Tokens a digest must save; below, a mark costs as much as it saves."""
MARK_BYTES = 60
"""A run of at most so many bytes stays: one short line between two that stay. Cutting it saves 6 tokens at the most, and
what stays then reads as blocks rather than as fragments (measured: 0.3 points of cost, 0.5 points of support)."""
BLOCK_LINES = 3
"""A repeat is at least three lines in a row, or one row of JSON: single lines such as `return None` are everywhere."""
BLOCK_BYTES = 120
"""A repeat is at least this long (30 tokens), so that the mark naming its source pays."""

HEAD = 112
"""Characters of a JSON row that name it: its first pairs. They stay also where the row goes."""
ERROR_CHARS = 6_000
"""At most so much of a failed result is held to be its error text (about 2,000 tokens)."""
ERROR_TAIL = 3
"""Lines at the end of a failed result that are part of it: the last word on what went wrong."""

_LOOK = 400
"""Characters of a line by which it is judged: enough for a kind, and no line is long enough to be slow."""
_WORD = re.compile(r"[A-Za-z_][\w./-]{3,}|\d{3,}")
_CODE_LIKE = re.compile(r"\d|[_./-]|[a-z][A-Z]")
_QUOTED = re.compile(r'"([^"\\\n]*)"')
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_CLAUSE = re.compile('[^\\s，。！？；：、,.!?;:（）()“”"]{4,}')
_PROSE = re.compile(r"(?<!\w)(?:[A-Za-z][a-z']*[,.;:]?[ \t]+){7}[A-Za-z]")
_ROW_END = re.compile(r"\}\s*,\s*(?=\{)")


def identifiers(line: str) -> Iterator[tuple[str, int, int]]:
    """The code-like identifiers and quoted Chinese values of one line, each with its place in it."""
    for match in _WORD.finditer(line):
        word = match.group().strip("./-")
        if len(word) >= 3 and _CODE_LIKE.search(word):
            yield word, match.start(), match.end()
    if _HAN.search(line):
        quoted = False
        for match in _QUOTED.finditer(line):
            if len(match.group(1)) >= 2 and _HAN.search(match.group(1)):
                quoted = True
                yield match.group(1), match.start(), match.end()
        if not quoted:
            for match in _CLAUSE.finditer(line):
                if _HAN.search(match.group()):
                    yield match.group(), match.start(), match.end()
    elif _PROSE.search(line, 0, _LOOK):
        yield line.strip(), 0, len(line)


def lines_of(text: str) -> list[Span]:
    """The lines of a text as character ranges, newlines included; together they are the text."""
    spans: list[Span] = []
    start = 0
    while (end := text.find("\n", start)) >= 0:
        spans.append((start, end + 1))
        start = end + 1
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def units_of(text: str) -> list[Span]:
    """Lines, and long lines of JSON cut between their rows (`}, {`): what a repeat is made of."""
    units: list[Span] = []
    for start, end in lines_of(text):
        if end - start > LONG_LINE:
            at = start
            for match in _ROW_END.finditer(text, start, end):
                units.append((at, match.end()))
                at = match.end()
            units.append((at, end))
        else:
            units.append((start, end))
    return units


class Repeat(msgspec.Struct, frozen=True):
    """The range `[start, end)` of an arriving result stands already, word for word, in message `source`."""

    start: int
    end: int
    source: int
    lines: int


class Seen:
    """What stands in the view: identifiers with counts, the blocks of lines and who holds them, and sole holders.

    `count[word]` is on how many lines the view shows it. `_blocks` maps the hash of three lines in a row, or of a row of
    JSON, to the message that shows it. `_sole` maps an identifier or a line to the one tool result that alone has it,
    or to -1: by it one learns that a result is being used. Memory: a few words per line of history.
    """

    def __init__(self) -> None:
        self.count: dict[str, int] = {}
        self.missed = 0
        self._lost: set[int] = set()
        self._blocks: dict[int, int] = {}
        self._held: dict[int, list[int]] = {}
        self._sole: dict[int, int] = {}

    def arrive(self, index: int, text: str, spans: Sequence[Span] | None = None, *, result: bool) -> set[int]:
        """Message `index` enters the view, whole or only with `spans` of its text. A message that is no tool result
        is also a use of the results that alone held what it says: their indices are returned."""
        pieces = [text] if spans is None else [text[a:b] for a, b in spans]
        shown = "\n".join(pieces)
        self.add(shown)
        self._hold(index, pieces)
        hit: set[int] = set()
        missed = False
        for key in _keys(shown):
            if key in self._lost:
                self._lost.discard(key)
                missed = missed or not result
            owner = self._sole.get(key, -2)
            if not result:
                if owner >= 0:
                    hit.add(owner)
                self._sole[key] = -1
            elif owner != -1:
                self._sole[key] = index
        self.missed += missed
        return hit

    def lower(self, index: int, text: str, before: Sequence[Span] | None, after: Sequence[Span]) -> None:
        """Message `index` now shows only `after` of its text instead of `before` (None: all of it)."""
        self.remove(text if before is None else "\n".join(text[a:b] for a, b in before))
        pieces = [text[a:b] for a, b in after]
        shown = "\n".join(pieces)
        self.add(shown)
        stays = set(_keys(shown))
        self._lost.update(key for key in _keys(text) if self._sole.get(key) == index and key not in stays)
        for key in self._held.pop(index, ()):
            if self._blocks.get(key) == index:
                del self._blocks[key]
        self._hold(index, pieces)

    def add(self, text: str) -> None:
        """Count the identifiers of a text that the view shows."""
        for line in text.split("\n"):
            for word, _, _ in identifiers(line):
                self.count[word] = self.count.get(word, 0) + 1

    def remove(self, text: str) -> None:
        """Take back what `add` counted."""
        for line in text.split("\n"):
            for word, _, _ in identifiers(line):
                left = self.count.get(word, 0) - 1
                if left > 0:
                    self.count[word] = left
                else:
                    self.count.pop(word, None)

    def holder(self, block: int) -> int | None:
        """The message that shows this block (a hash of `_block_keys`)."""
        return self._blocks.get(block)

    def _hold(self, index: int, pieces: Sequence[str]) -> None:
        keys = [
            key for piece in pieces for key in _block_keys([piece[a:b] for a, b in units_of(piece)]) if key is not None
        ]
        self._held[index] = keys
        for key in keys:
            self._blocks[key] = index


def _keys(text: str) -> Iterator[int]:
    """What a later message may use of a text: its identifiers and its lines of 20 to 240 characters."""
    for line in text.split("\n"):
        stripped = line.strip()
        if 20 <= len(stripped) <= LONG_LINE:
            yield hash(stripped)
        for word, _, _ in identifiers(line):
            yield hash(word)


def _block_keys(units: Sequence[str]) -> list[int | None]:
    """For each unit the key of the block that begins there: itself if it is long, else it and the next two."""
    bare = [unit.rstrip("\n, ]") for unit in units]
    keys: list[int | None] = []
    for k, unit in enumerate(bare):
        if len(unit.encode("utf-8", "surrogatepass")) >= BLOCK_BYTES and len(unit) > LONG_LINE // 2:
            keys.append(hash(unit.lstrip("[ ")))
        elif k + BLOCK_LINES <= len(bare):
            keys.append(hash(tuple(bare[k : k + BLOCK_LINES])))
        else:
            keys.append(None)
    return keys


def repeats(text: str, seen: Seen) -> list[Repeat]:
    """The blocks of an arriving result that stand above word for word; [] if nothing worth a mark does.

    The caller may leave them out of the view from the start, which costs no cache: a mark that names the source is as
    good as the text, since the text is there. The source counts as used from then on (`Ledger.touch`), so it is as
    young as what refers to it.
    """
    units = units_of(text)
    pieces = [text[a:b] for a, b in units]
    keys = _block_keys(pieces)
    found: list[Repeat] = []
    k = 0
    while k < len(units):
        key = keys[k]
        source = seen.holder(key) if key is not None else None
        if source is None:
            k += 1
            continue
        end = k
        reach = k
        while reach < len(units):
            key = keys[reach]
            if key is None or seen.holder(key) != source:
                break
            long = len(pieces[reach]) > LONG_LINE // 2
            end = max(end, reach + (1 if long else BLOCK_LINES))
            reach += 1
        start_char, end_char = units[k][0], units[min(end, len(units)) - 1][1]
        if len(text[start_char:end_char].encode("utf-8", "surrogatepass")) >= BLOCK_BYTES:
            found.append(Repeat(start_char, end_char, source, min(end, len(units)) - k))
        k = max(end, k + 1)
    return found


def without(text: str, found: Sequence[Repeat], kind: Kind) -> list[Span]:
    """The ranges of an arriving result that stay once its repeats are left out; of rows of JSON, their heads as well."""
    kept: list[Span] = []
    heads = barest(text, kind, failed=False) if kind == "data" else []
    at = 0
    for repeat in found:
        if repeat.start > at:
            _extend(kept, (at, repeat.start))
        for span in _within(heads, [(repeat.start, repeat.end)]):
            _extend(kept, span)
        at = repeat.end
    if at < len(text):
        _extend(kept, (at, len(text)))
    return kept


def barest(text: str, kind: Kind, *, failed: bool, spans: Sequence[Span] | None = None) -> list[Span]:
    """The ranges that stay of a result whatever happens below the trigger: [] means a stub.

    Of a failed result its error text: the lines with error words, their neighbours, and the end. Of rows of JSON their
    heads, which name them. `spans` is what the view shows now; nothing outside it comes back.
    """
    kept: list[Span] = []
    if failed:
        kept = error_spans(text)
    elif kind == "data":
        for start, end in units_of(text):
            if end - start > HEAD + AROUND:
                stop = text.rfind('", "', start, start + HEAD)
                kept.append((start, stop + 2 if stop > start + HEAD // 2 else start + HEAD))
            else:
                _extend(kept, (start, end))
    return kept if spans is None else _within(kept, spans)


def error_spans(text: str) -> list[Span]:
    """The lines of a failed result that say what failed: those with error words and one to either side, and the end."""
    lines = lines_of(text)
    if len(text) <= ERROR_CHARS // 20:
        return [(0, len(text))]
    wanted: set[int] = set(range(max(0, len(lines) - ERROR_TAIL), len(lines)))
    used = sum(lines[k][1] - lines[k][0] for k in wanted)
    for k in range(len(lines) - 1, -1, -1):
        start, end = lines[k]
        if not _ERROR.search(text, start, end):
            continue
        for near in (k, k - 1, k + 1):
            if 0 <= near < len(lines) and near not in wanted:
                used += lines[near][1] - lines[near][0]
                if used > ERROR_CHARS:
                    break
                wanted.add(near)
    kept: list[Span] = []
    for k in sorted(wanted):
        _extend(kept, lines[k])
    return [(max(start, end - ERROR_CHARS), end) for start, end in kept]


def _within(spans: Sequence[Span], outer: Sequence[Span]) -> list[Span]:
    """The parts of `spans` that lie inside `outer`; both in order."""
    return [(max(a, c), min(b, d)) for a, b in spans for c, d in outer if max(a, c) < min(b, d)]


def digest(
    text: str,
    seen: Seen,
    *,
    spans: Sequence[Span] | None = None,
    stays: Sequence[Span] = (),
    mark_bytes: int = MARK_BYTES,
) -> list[Span]:
    """The ranges of a read result that its digest keeps: [] means a stub, and `[(0, len(text))]` that nothing goes.

    `spans` is what the view shows of it now (None: all of it), and must be counted in `seen`. A run of lines is only
    left out where it is longer than its mark (`mark_bytes` of UTF-8). The ranges `stays` (what `barest` gives) stay.
    """
    shown = [(0, len(text))] if spans is None else list(spans)
    own: dict[str, int] = {}
    units: list[tuple[int, int, list[tuple[str, int, int]]]] = []
    for first, last in shown:
        for start, end in lines_of(text[first:last]):
            words = list(identifiers(text[first + start : first + end]))
            units.append((first + start, first + end, words))
            for word, _, _ in words:
                own[word] = own.get(word, 0) + 1
    new = {word for word, times in own.items() if seen.count.get(word, 0) <= times}
    kept: list[Span] = []
    cut: list[Span] = []

    def close() -> None:
        # A run that is no longer than its mark stays: cutting it would save nothing and read worse.
        if cut and sum(len(text[a:b].encode("utf-8", "surrogatepass")) for a, b in cut) <= mark_bytes:
            for span in cut:
                _extend(kept, span)
        cut.clear()

    any_new = False
    at = 0
    for start, end, words in units:
        hits = [(a, b) for word, a, b in words if word in new]
        at = next((at for at in range(at, len(stays)) if stays[at][1] > start), len(stays))
        must = at < len(stays) and stays[at][0] < end
        if not hits and not must:
            cut.append((start, end))
            continue
        any_new = True
        close()
        new.difference_update(word for word, _, _ in words)
        if end - start <= LONG_LINE or not (hits or must):
            _extend(kept, (start, end))
        else:
            around = [(max(start, start + a - AROUND), min(end, start + b + AROUND)) for a, b in hits]
            around += [(max(a, start), min(b, end)) for a, b in stays[at:] if a < end]
            for span in sorted(around):
                _extend(kept, span, gap=12)
    if not any_new:
        return []
    close()
    return kept


def _extend(spans: list[Span], span: Span, gap: int = 0) -> None:
    """Append a range, joined to the last one where they touch (or nearly do)."""
    if spans and span[0] <= spans[-1][1] + gap:
        spans[-1] = (spans[-1][0], max(spans[-1][1], span[1]))
    else:
        spans.append(span)


_ERROR = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)|error|errors|failed|FAILED|ERROR|failure|fatal|panic|Traceback|denied|refused|"
    r"not found|No such file|cannot|timed out)\b|错误|失败|异常|出错|拒绝|超时|未找到|无法"
)
_NUMBERED = re.compile(r"^\s{0,8}\d+[\t:|→]|^\s+\d+\s*$")
_FOUND = re.compile(r"^[\w./+-]*[./][\w./+-]*[:-]\d*[:-]?")
_ONE_WORD = re.compile(r"^(?:[-dlrwx]{10}.*|\S+)$")
_RAN = re.compile(
    r"Traceback|\b(?:passed|failed|FAILED|PASSED|warnings?|Error|Exception|Requirement already|collected|OK)\b"
    r"|^(?:={3,}|-{3,})|\bRan \d+ tests?|\.\.\. ok$"
)


def kind_of(text: str) -> Kind:
    """What a result looks like, by its lines: source code, search hits, a listing, or the output of a run.

    The name of the tool says little (`bash` is all of them); how soon a result is used again differs by this kind.
    """
    head = text[:400].lstrip()
    if head[:1] in "[{" and '":' in head:
        return "data"
    lines = [line[:_LOOK] for line in text.split("\n", 400)[:400] if line.strip() and not line.startswith("<")]
    count = len(lines)
    if not count:
        return "run"
    if sum(bool(_NUMBERED.match(line)) for line in lines) >= 0.6 * count:
        return "code"
    if sum(bool(_HAN.search(line) or _PROSE.search(line)) for line in lines) >= 0.5 * count:
        return "text"
    ran = sum(bool(_RAN.search(line)) for line in lines)
    if sum(bool(_FOUND.match(line)) for line in lines) >= 0.6 * count and ran <= 0.3 * count:
        return "grep"
    if sum(bool(_ONE_WORD.match(line)) for line in lines) >= 0.7 * count:
        return "list"
    if ran and ran >= max(1.0, 0.04 * count):
        return "run"
    return "code" if sum(line[0] in " \t" for line in lines) >= 0.4 * count else "run"


def tokens_cut(text: str, kept: Collection[Span], tokens: int) -> int:
    """The tokens of a text of `tokens` that `kept` leaves out, by share of UTF-8 bytes: an estimate without a count."""
    whole = len(text.encode("utf-8", "surrogatepass")) or 1
    stays = sum(len(text[a:b].encode("utf-8", "surrogatepass")) for a, b in kept)
    return round(tokens * (whole - stays) / whole)
