"""The passes: plain functions `(draft, goal) -> fates`. Each reads a draft and says what to lower and why.

`goal` is the figure (tokens of all messages) that the caller wants to get under; a pass that works piece by piece stops
there. Nothing is decided twice: a pass looks only at what still has a higher fate than the one it gives.
"""

from brim.context.passes.cap import cap
from brim.context.passes.compress import compress
from brim.context.passes.expire import expire
from brim.context.passes.fit_bytes import fit_bytes
from brim.context.passes.recent import drop_oldest, keep_recent, trim_newest
from brim.context.passes.select import select
from brim.context.passes.supersede import supersede
from brim.context.passes.truncate import truncate

__all__ = [
    "cap",
    "compress",
    "drop_oldest",
    "expire",
    "fit_bytes",
    "keep_recent",
    "select",
    "supersede",
    "trim_newest",
    "truncate",
]
