"""What a context policy costs on a recorded conversation, and what it takes away.

A policy maps the history before an assistant message to the view that is sent. Every assistant message from the third
message of a conversation on is one request; what it needed counts from the fifth on. For each request:

    cache     the longest common prefix, message by message, with the view before is read, the rest is written; after
              a pause longer than the cache's life everything is written
    need      what the recorded assistant message uses of the history before it (see `yardstick`)
    shown     a need counts as shown only where it stands as it stood; a request whose needs are all shown is supported
    refetch   any other request is charged one more that reads its view and writes the messages that hold what is
              missing: the latest ones, at least 800 and at most 8,000 tokens

    cost = read * price_read + written * price_write, refetches included

What a conversation needs does not depend on the policy, so `Recording` works it out once; each `Measure` then only
looks at the texts a view did not have before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from brim.replay.yardstick import Places, Wire, cjk_values, places, text_of, weight

REFETCH = (800, 8_000)
FIRST_REQUEST, FIRST_NEED = 2, 4
"""Indices of the messages from which on an assistant message counts as a request, and its needs count."""


class Row(msgspec.Struct, frozen=True):
    """One request. `message`: index of the assistant message it led to; tokens read, written and fetched again; how many
    things it `needs` and how many of them are `missing`; `broke`: index in the view of the first message that differs
    from the view before (-1: none does), and `lost`, the tokens that could have been read otherwise."""

    message: int
    read: int
    written: int
    refetched: int
    needs: int
    missing: int
    broke: int = -1
    lost: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of the view."""
        return self.read + self.written


class Recording:
    """A conversation, with what each of its requests needs and since when each thing has stood where. Assistant messages
    before index `since` were the answers of another recording's requests."""

    def __init__(self, messages: Sequence[Wire], since: int = 0) -> None:
        self.messages = messages
        self._first = max(FIRST_REQUEST, since)
        self.texts = [text_of(message) for message in messages]
        self.sizes = [weight(text) for text in self.texts]
        self.known: dict[str, Places] = {}
        self._since: dict[str, dict[str, int]] = {}
        self._excerpt_since: dict[str, dict[str, int]] = {}
        self._last: dict[str, list[int]] = {}
        self.needs: dict[int, tuple[str, ...]] = {}
        self._read()

    def _read(self) -> None:
        values: set[str] = set()
        for index, (message, text) in enumerate(zip(self.messages, self.texts, strict=True)):
            here = self.known.get(text)
            if here is None:
                here = self.known[text] = places(text)
            if message["role"] == "assistant" and index >= FIRST_NEED:
                need = {word for word in here if word in self._since}
                need.update(value for value in values if value in text)
                self.needs[index] = tuple(sorted(need))
            self._add(index, text, here)
            if message["role"] == "tool":
                values.update(value for value in cjk_values(text) if value in self._since)

    def _add(self, index: int, text: str, here: Places) -> None:
        lines = {line.strip() for line in text.split("\n")}
        for word, where in here.items():
            since = self._since.setdefault(word, {})
            for place in where:
                since.setdefault(place, index)
                if place not in lines:
                    self._excerpt_since.setdefault(word, {}).setdefault(place, index)
            self._last.setdefault(word, []).append(index)

    @property
    def requests(self) -> Iterator[int]:
        """Indices of the assistant messages that count as requests."""
        return (
            index
            for index, message in enumerate(self.messages)
            if message["role"] == "assistant" and index >= self._first
        )

    def stood(self, word: str, where: Sequence[str], index: int) -> bool:
        """Whether one of these surroundings is one in which `word` stood before message `index`."""
        since = self._since.get(word, {})
        return any(since.get(place, index) < index for place in where)

    def excerpts(self, word: str, index: int) -> list[str]:
        """The pieces of long lines in which `word` stood before message `index`."""
        return [place for place, since in self._excerpt_since.get(word, {}).items() if since < index]

    def holders(self, words: Iterable[str], index: int) -> set[int]:
        """The messages before `index` in which each of these words stood last."""
        return {last[bisect_left(last, index) - 1] for last in (self._last[word] for word in words)}

    def refetch(self, missing: Sequence[str], index: int) -> int:
        """Tokens that fetching again what is missing at message `index` writes."""
        if not missing:
            return 0
        holders = self.holders(missing, index)
        low, high = REFETCH
        return min(high, max(low, sum(self.sizes[holder] for holder in holders)))


class Measure:
    """One policy's views over one recording, request after request."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._own = {id(message): text for message, text in zip(recording.messages, recording.texts, strict=True)}
        self._number: dict[str, int] = {}
        self._texts: list[str] = []
        self.sizes: list[int] = []
        self._holders: dict[str, list[int]] = {}
        self._shown: set[tuple[str, int]] = set()
        self._within: dict[tuple[str, int], bool] = {}
        self.view: list[int] = []
        """The last view, as numbers of its texts."""

    def request(self, index: int, view: Sequence[Wire], cold: bool = False) -> Row:
        """Measures the request that led to message `index`. `cold`: it came after the cache's life."""
        before, now = self.view, [self._text(message) for message in view]
        same = 0
        for old, new in zip(before, now, strict=False):
            if old != new:
                break
            same += 1
        broke, lost = -1, 0
        if same < len(before):
            broke, lost = same, sum(self.sizes[number] for number in before[same:])
        if cold:
            lost += sum(self.sizes[number] for number in now[:same])
            same = 0
        self.view = now
        sizes = [self.sizes[number] for number in now]
        need = self.recording.needs.get(index, ())
        missing = self._missing(index, now, need) if need else []
        return Row(
            index,
            sum(sizes[:same]),
            sum(sizes[same:]),
            self.recording.refetch(missing, index),
            len(need),
            len(missing),
            broke,
            lost,
        )

    def _text(self, message: Wire) -> int:
        text = self._own.get(id(message))
        if text is None:
            text = text_of(message)
        number = self._number.get(text)
        if number is None:
            number = self._number[text] = len(self._texts)
            self._texts.append(text)
            self.sizes.append(weight(text))
            for word in self._places(text):
                self._holders.setdefault(word, []).append(number)
        return number

    def _places(self, text: str) -> Places:
        known = self.recording.known.get(text)
        if known is None:
            known = self.recording.known[text] = places(text)
        return known

    def _missing(self, index: int, view: list[int], need: Sequence[str]) -> list[str]:
        inside = set(view)
        left = [word for word in need if not self._stands(word, index, inside)]
        return [word for word in left if not self._excerpted(word, index, view)]

    def _stands(self, word: str, index: int, inside: set[int]) -> bool:
        for number in reversed(self._holders.get(word, ())):
            if number not in inside:
                continue
            if (word, number) in self._shown:
                return True
            if self.recording.stood(word, self._places(self._texts[number])[word], index):
                self._shown.add((word, number))  # what stood once has stood there ever since
                return True
        return False

    def _excerpted(self, word: str, index: int, view: list[int]) -> bool:
        """Whether the view holds a piece of a long line with the word in it, inside whatever line."""
        excerpts = self.recording.excerpts(word, index)
        if not excerpts:
            return False
        for number in view:
            within = self._within.get((word, number))
            if within is None:
                within = self._within[(word, number)] = word in self._texts[number]
            if within and any(excerpt in self._texts[number] for excerpt in excerpts):
                return True
        return False
