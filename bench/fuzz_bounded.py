"""Fuzz bounded output: random byte streams cut at random chunk borders, each checked against a second, simple description.

    python bench/fuzz_bounded.py [STREAMS] [SEED]

Checks of each: within the cap, valid UTF-8, counts exact, the same result for any chunking, the original kept whole.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "tools"))

from bounded_oracle import check  # type: ignore[import-not-found]

from brim.tools.bounded import Limits

BITS = [
    b"\n", b"\r", b"\r\n", b"\r\r\n", b"1%\r2%\r3%", b"\x1b[31m", b"\x1b[0m", b"\x1b[K", b"\x1b]0;t\x07",
    b"\x1b]8;;x\x1b\\", b"\x1b",
    b"\x1b[", b"\x1b[1;2", b"\x1b(B", b"\x1bP1$r", b"\xc2\x9b1m", b"\xc2\x9c", b"\x1b[G", b"\x1b[2G", b"\0",
            b"\0\0\0", b"\xff", b"\xe4\xb8",
    b"\xf0\x9f\xa6", b"\xed\xa0\xbd", b"\xef\xbf\xbd", b"\x08\x07\x0c", b"word " * 9, b"a line\n" * 25, b"z" * 900, b" " * 300,
    "👩‍👩‍👧🇩🇪👍🏽".encode(), "é中🦊e\u0301".encode(), "搜索 TODO 关键词\n".encode() * 12,
]  # fmt: skip


def stream(rng: random.Random) -> bytes:
    """Mostly text with surprises, now and then pure noise."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(3000))
    return b"".join(
        rng.choice(BITS) if rng.random() < 0.8 else rng.randbytes(rng.randrange(8)) for _ in range(rng.randrange(50))
    )


def chunks(data: bytes, rng: random.Random) -> list[bytes]:
    if rng.random() < 0.1:
        return [data[at : at + 1] for at in range(len(data))]
    borders = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(12)))
    return [data[a:b] for a, b in zip([0, *borders], [*borders, len(data)], strict=True)]


def main() -> None:
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    started, size, cut = time.perf_counter(), 0, 0
    for number in range(streams):
        rng = random.Random(seed * 1_000_003 + number)
        data = stream(rng)
        limits = Limits(
            tokens=rng.choice((1, 5, 30, 80, 200, 1000)),
            lines=rng.choice((None, None, 1, 5, 40)),
            chars=rng.choice((None, None, 10, 200, 2000)),
            head=rng.choice((0.4, 0.6, 1.0)),
        )
        try:
            done = check(data, chunks(data, rng), limits)
        except Exception:
            print(f"stream {number} of seed {seed}: {data!r} with {limits}")
            raise
        size += len(data)
        cut += done.gap is not None
        if number % 10_000 == 9_999:
            print(
                f"{number + 1} streams, {size / 1e6:.1f} MB, {cut} cut, {time.perf_counter() - started:.0f} s",
                flush=True,
            )
    print(f"{streams} streams held (seed {seed})")


if __name__ == "__main__":
    main()
