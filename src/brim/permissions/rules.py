"""Rules as people write them: `tool(pattern)`, `tool`, and, where only commands are meant, a bare `git *`.

A pattern for bash is a list of words, compared with the words of a command after quotes are taken off, so neither
quoting nor spacing hides anything. `*` alone at the end stands for any further words, none included; alone between
other words for exactly one word in an allow rule and for any number in a deny or ask rule; inside a word for characters
of that word only, but at the end of the last one (`npm run test*`) for further words as well. `git *` does not match
`gitk`. `git push:*` is another spelling of `git push *`; as an allow rule `npm run test:*` is about `npm run test:unit`, too.
A deny or ask rule without a star covers every further word, too; an allow rule does not.

What allows is compared narrowly, what denies broadly: options of a deny rule may stand anywhere and in any spelling
(`-rf`, `-f -r`, `--recursive --force`), and a command under another path or name (`npm i`, `apt-get`) is the same command.
One that holds shell syntax (`curl * | sh`) is about the command line as it is written.

A pattern for any other tool is a path (see `brim.permissions.paths`) or, without a path, a glob over the tool's main
argument. The text of a rule is kept as it was given: what is shown is what is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from brim.errors import UsageError
from brim.permissions.words import Word

Decision: TypeAlias = Literal["allow", "ask", "deny"]

TOOLS = ("bash", "read", "write", "edit", "grep", "glob", "recall")
_FORM = re.compile(r"\s*([A-Za-z_*][\w.*-]*)\s*\((.*)\)\s*", re.DOTALL)
_TRUSTED_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin")


class PatternWord(msgspec.Struct, frozen=True):
    """One word of a pattern: `regex` over a whole word, or any words at all (`star`). `literal`: its text without globs;
    `open`: as the last one it covers what follows, too (`test*`, but not `src/*`, which is about a path); `stem`: its text
    up to a star at its end."""

    regex: str
    star: bool
    literal: str | None
    open: bool = False
    stem: str = ""


class Rule(msgspec.Struct, frozen=True):
    """`text` is the rule as it was written, `pattern` None for the whole tool; `origin` says who set it."""

    decision: Decision
    tool: str
    pattern: str | None
    text: str
    origin: str = ""

    def words(self) -> tuple[PatternWord, ...]:
        """The pattern of a bash rule, word by word."""
        return split_pattern(self.pattern or "*", always=self.decision != "allow")

    def readings(self) -> tuple[tuple[PatternWord, ...], ...]:
        """What an allow rule may mean: `npm run test:*` is about `npm run test` and about `npm run test:unit`."""
        colon = self.pattern is not None and self.pattern.endswith(":*") and not self.pattern.endswith((" :*", "\\:*"))
        return (self.words(), split_pattern(self.pattern or "*", colon=False)) if colon else (self.words(),)

    def exact(self) -> bool:
        """Whether nothing in the pattern is left open."""
        return self.pattern is not None and all(word.literal is not None for word in self.words())


def parse_rule(text: str, decision: Decision, origin: str = "", *, commands: bool = True) -> Rule:
    """A rule from its text. Raises UsageError for an empty or unfinished one. `commands`: a bare text that names no
    tool is a pattern for bash.

    Tool names are taken in any case, so that rules of other programs (`Bash(git push:*)`) work.
    """
    given = text.strip()
    if not given:
        raise UsageError(f"an empty {decision} rule", hint="write tool(pattern), for example bash(git push *)")
    found = _FORM.fullmatch(given)
    if found is not None:
        pattern = found[2].strip()
        return Rule(decision, _tool_name(found[1]), None if pattern in ("", "*") else pattern, text, origin)
    if re.match(r"[\w*-]+\(", given):  # a rule that means nothing, a deny rule above all, must not pass for one
        raise UsageError(
            f"the {decision} rule {given!r} does not end in )", hint="write tool(pattern), for example read(.env)"
        )
    if _tool_name(given) in TOOLS or not commands or re.fullmatch(r"\w+__[\w*-]+|mcp_[\w*-]+", given):
        return Rule(decision, _tool_name(given), None, text, origin)
    return Rule(decision, "bash", None if given == "*" else given, text, origin)


def parse_rules(texts: Iterable[str], decision: Decision, origin: str = "") -> list[Rule]:
    """Several rules. A bare word that names both a tool and a command (`grep`, `read`) denies both, but allows the tool."""
    rules: list[Rule] = []
    for text in texts:
        rule = parse_rule(text, decision, origin)
        rules.append(rule)
        if decision != "allow" and rule.pattern is None and rule.tool not in ("bash", "*") and "(" not in text:
            rules.append(Rule(decision, "bash", rule.tool, text, origin))
    return rules


def format_rule(tool: str, pattern: str | None) -> str:
    """The text of a rule, the form in which rules are offered and stored."""
    return tool if pattern is None else f"{tool}({pattern})"


_OTHER_NAMES = {
    "bash": "shell shelltool run_shell_command execute_command run_command runcommand shell_command local_shell",
    "read": "readfile read_file readfiletool read_many_files", "write": "writefile write_file writefiletool create_file",
    "edit": "multiedit notebookedit edit_file edittool apply_patch str_replace_editor", "glob": "globtool list_files",
    "grep": "greptool search_file_content search_files",
}  # fmt: skip
"""What other programs call the tools that brim has, so that their rules hold."""
_TOOL_OF = {name: tool for tool, others in _OTHER_NAMES.items() for name in others.split()}


def _tool_name(name: str) -> str:
    plain = name.lower()
    return plain if plain in TOOLS else _TOOL_OF.get(plain, name)


def tool_matches(rule: Rule, tool: str) -> bool:
    """Whether a rule is about a tool; `*` in its tool name stands for any characters."""
    if re.fullmatch(".*".join(map(re.escape, rule.tool.split("*"))), tool) is not None:
        return True
    # `mcp__server` is all tools of that server
    return re.fullmatch(r"mcp__(?:(?!__).)+", rule.tool) is not None and tool.startswith(f"{rule.tool}__")


def split_pattern(pattern: str, *, colon: bool = True, always: bool = False) -> tuple[PatternWord, ...]:
    """A pattern's words. Quotes and backslashes make the characters in them plain. `colon`: a last `:*` is ` *`, where
    there is no other ` *`, or `always`."""
    if colon and pattern.endswith(":*") and not pattern.endswith("\\:*") and (always or " *" not in pattern):
        pattern = pattern[:-2].rstrip() + " *"
    words: list[PatternWord] = []
    regex, literal, plain, begun, quote = "", "", True, False, ""
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if quote:
            if char == quote:
                quote = ""
                continue
        elif char in "'\"":
            quote, begun = char, True
            continue
        elif char.isspace():
            if begun:
                words.append(_pattern_word(regex, literal, plain))
                regex, literal, plain, begun = "", "", True, False
            continue
        begun = True
        if char == "\\" and quote != "'" and position < len(pattern):
            char = pattern[position]
            position += 1
        elif not quote and char in "*?":
            regex += ".*" if char == "*" else "."
            plain = False
            continue
        regex += re.escape(char)
        literal += char
    if begun:
        words.append(_pattern_word(regex, literal, plain))
    return tuple(words)


def _pattern_word(regex: str, literal: str, plain: bool) -> PatternWord:
    star = regex == ".*" and not plain
    opens = regex.endswith(".*") and not (plain or star or "/" in literal)
    stem = literal if plain or re.escape(literal) + ".*" == regex else ""
    return PatternWord(regex, star, literal if plain else None, opens, stem)


def quote_word(text: str) -> str:
    """A word as part of a pattern that matches just this word."""
    if re.fullmatch(r"[\w@%+=:,./-]+", text) and not text.endswith(":"):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def allows(rule: Rule, words: Sequence[Word]) -> bool:
    """Whether an allow rule for bash covers a command: word by word, nothing skipped, nothing guessed."""
    return any(_allows(pattern, words) for pattern in rule.readings())


def _allows(pattern: Sequence[PatternWord], words: Sequence[Word]) -> bool:
    for position, want in enumerate(pattern):
        if want.star and position == len(pattern) - 1:
            return position > 0 or not words or words[0].text is not None
        if position >= len(words):
            return False
        text = words[position].text
        if text is None:
            if not want.star or position == 0:
                return False
            continue
        if want.literal is None and ".." in text.split("/"):
            return False
        if position == 0:
            text = plain_name(text)
        elif words[position].glob and want.literal is not None:
            return False
        if re.fullmatch(want.regex, text, re.DOTALL) is None:
            return False
    return len(words) == len(pattern) or (bool(pattern) and pattern[-1].open)


def plain_name(name: str) -> str:
    """A command's own name where it lies in a folder of system programs; else the path as it was written."""
    folder, _, base = name.rpartition("/")
    return base if folder in _TRUSTED_FOLDERS else name


def covers_text(pattern: str, text: str) -> bool:
    """Whether a pattern whose stars are any characters covers a whole text. Linear in the text, whatever the pattern."""
    first, *others = pattern.split("*")
    if not others:
        return pattern == text
    *between, last = others
    if not text.startswith(first):
        return False
    position = len(first)
    for piece in between:
        found = text.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    return len(text) - position >= len(last) and text.endswith(last)
