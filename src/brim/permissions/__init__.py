"""What tools may do: rules, the judgement of commands and paths, the sandbox, and the masking of secrets."""

from brim.permissions.check import MODES, Mode, check
from brim.permissions.rules import Rule, format_rule, parse_rule, parse_rules
from brim.permissions.verdict import Part, Verdict
from brim.permissions.walks import LeftOut, left_out

__all__ = [
    "MODES",
    "LeftOut",
    "Mode",
    "Part",
    "Rule",
    "Verdict",
    "check",
    "format_rule",
    "left_out",
    "parse_rule",
    "parse_rules",
]
