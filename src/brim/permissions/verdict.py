"""What a check answers: one decision, and the parts that it is made of."""

from __future__ import annotations

from typing import Any

import msgspec

from brim.permissions.rules import Decision


class Part(msgspec.Struct, frozen=True):
    """One thing that was judged: a simple command, a redirection, a path. `rule`: the text of the rule that decided, None
    where the mode or a built-in list did. `needs`: the rule that would allow it, where it asks and one part of it could."""

    text: str
    decision: Decision
    why: str
    rule: str | None = None
    needs: str | None = None


class Verdict(msgspec.Struct, frozen=True):
    """`decision`: allow, ask or deny. `why`: one sentence. `rule`: the rule that decided; for "ask", the (first) rule that
    would allow. `needs`: all rules that together would allow what is asked; empty where no rule can."""

    decision: Decision
    why: str
    rule: str | None = None
    parts: tuple[Part, ...] = ()
    needs: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """JSON-serialisable."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made

    def flags(self) -> str:
        """The command line options that would allow what is asked: `--allow 'bash(git push *)'`."""
        import shlex

        return " ".join(f"--allow {shlex.quote(rule)}" for rule in self.needs)
