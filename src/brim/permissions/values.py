"""What a script's words are worth before it runs: its variables followed where they are set once to plain text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from brim.permissions.words import UNKNOWN, Segment, Word, build_words, decode_ansi, decode_bare, decode_double

if TYPE_CHECKING:
    from tree_sitter import Node

_SETTERS = frozenset(["read", "mapfile", "readarray", "getopts", "coproc"])
_FIXED = frozenset(["?", "#", "$", "-", "0"])
_NOT_OF_THE_USER = re.compile(r"IFS|REPLY|MAPFILE|OPTARG|OPTIND|DIRSTACK|FUNCNAME|COPROC|_|BASH_.*|COMP_.*|READLINE_.*")
_PLAIN_OUTPUT = re.compile(
    r"pwd|nproc|whoami|id -un?|uname( -[a-z]+)?|arch|date( -u)?( \+%[\w%:.T-]*)?"
    r"|git rev-parse( --short| --abbrev-ref| --show-toplevel| --verify)*( [A-Za-z][\w./@{}^~]*)?"
    r"|git describe(?: --(?:tags|always|all|long|dirty|abbrev=\d+))*"
    r"|git rev-list --count [\w./^~@-]*|git merge-base [A-Za-z][\w./-]* [A-Za-z][\w./-]*|git branch --show-current"
    r"|(?:[^;&`$()\n]*\| *)?wc -[lwc]+(?: [^;&`$()|\n]*)?"
)
_NUMBER = re.compile(
    r"nproc|date( -u)? [\"']?\+(%[YmdHMSsFTyjNu]|[:_.-])*[\"']?|git rev-list --count [\w./^~@-]*"
    r"|([^;&`$()\n]*\| *)?wc -[lwc](\s*<\s*[\w./-]+)?"
)
"""What prints a number, or a date of digits."""
_BARE = ("word", "number", "variable_name", "special_variable_name", "file_descriptor")
_RAW_STRING = re.compile(r"'[^']*'")
_ANSI_STRING = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_WORDS = (
    "command_name", "word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "number",
    "simple_expansion", "expansion", "command_substitution", "arithmetic_expansion", "$",
)  # fmt: skip
_TIGHT = ("simple_expansion", "concatenation", "variable_assignment", "brace_expression", "subscript", "command_name")
"""What has no blanks between its pieces."""
_LOOSE = ("expansion", "binary_expression", "unary_expression", "test_command", "parenthesized_expression", "case_item")
"""Where a bare word may hold what parts words elsewhere: `${x:-a b}`, `[[ a =~ (b|c) ]]`."""
_BETWEEN = re.compile(r"(?:\\.)|([\s;&|<>()])", re.DOTALL)
_SUBSTITUTION = re.compile(r"(?:\\.)|(\$\(|`|\$\{|\$\[)", re.DOTALL)
_EXPANSION = re.compile(r"(?:\\.)|(\$[\w{(\[@*#?$!-])", re.DOTALL)
_PROCESS = re.compile(r"(?:\\.)|([<>]\()", re.DOTALL)


class Redirect(msgspec.Struct, frozen=True):
    """`operator` as written (`>`, `>>`, `<`, `&>` …)."""

    operator: str
    target: Word


class Call(msgspec.Struct, frozen=True):
    """A simple command. `cwds`: the folders it may run in (None: one that is not known); `text`: its source;
    `feed`: the simple command whose output it gets through a pipe; `given`: the text of a here-document that is its input."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...]
    redirects: tuple[Redirect, ...]
    cwds: tuple[str | None, ...]
    text: str
    feed: tuple[Word, ...] = ()
    given: str | None = None


class Script(msgspec.Struct):
    """`doubts`: why it cannot be judged whole; `variables`: what may be assigned, for scripts inside this one."""

    calls: list[Call]
    doubts: list[str]
    variables: dict[str, list[Word]]
    functions: set[str]


def nodes_of(node: Node, leave: Sequence[str] = ()) -> Iterator[Node]:
    """A node and all below it, in the order of the source, without what lies in the kinds to `leave`."""
    stack = [node]
    while stack:
        each = stack.pop()
        if each.type in leave:
            continue
        yield each
        stack.extend(reversed(each.children))


def _found(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a pattern's group is found; what a backslash escapes is passed over."""
    return any(found[1] for found in pattern.finditer(text))


def _is_for_read(node: Node) -> bool:
    """Whether an assignment stands before a `read`, and holds for it alone."""
    name = (
        node.parent.child_by_field_name("name") if node.parent is not None and node.parent.type == "command" else None
    )
    return name is not None and name.text == b"read"


def _fed_loop(node: Node) -> Node | None:
    """What feeds the loop whose condition a `read` is, through a pipe or from a process: `find . | while read f; do …`."""
    loop = node.parent
    if loop is None or loop.type != "while_statement" or loop.child_by_field_name("condition") != node:
        return None
    above = loop.parent
    if above is not None and above.type == "pipeline" and len(above.named_children) == 2:
        return above.named_children[0] if above.named_children[1] == loop else None
    if above is not None and above.type == "redirected_statement" and len(above.named_children) == 2:
        target = above.named_children[1].child_by_field_name("destination")
        return target if target is not None and target.type == "process_substitution" else None
    return None


def _of_a_path(words: Sequence[Word]) -> str | None:
    """What `dirname` and `basename` make of a path that is known."""
    texts = [word.text for word in words if word.text is not None and not word.glob and not word.tilde]
    if len(texts) != len(words) or len(texts) not in (2, 3) or texts[1].startswith("-") or not texts[1].strip("/"):
        return None
    folder, name = os.path.split(texts[1].rstrip("/"))
    if texts[0] == "dirname" and len(texts) == 2:
        return folder or "."
    if texts[0] == "basename":
        return name.removesuffix(texts[2]) if len(texts) == 3 and name != texts[2] else name
    return None


class Values:
    """The source of a script, what it assigns, and its words. `doubt` collects what cannot be judged."""

    def __init__(self, script: Script, source: bytes, cwds: Sequence[str | None], wild: bool) -> None:
        self.script = script
        self.source = source
        self.cwds: tuple[str | None, ...] = tuple(cwds)
        self.sure: tuple[str | None, ...] = self.cwds
        self.wild = wild
        self.assigned: dict[str, list[Node | Word]] = {name: list(values) for name, values in script.variables.items()}
        self.busy: set[str] = set()
        self.depth = 0
        self.literal_code = False
        self.evaluates = False
        self.feed: tuple[Word, ...] = ()
        self.looped: list[tuple[str, Node]] = []
        self.last_starts = self.cwds

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def doubt(self, why: str) -> None:
        if why not in self.script.doubts:
            self.script.doubts.append(why)

    def keep_variables(self) -> None:
        """What is assigned, for scripts inside this one."""
        for name, values in self.assigned.items():
            self.script.variables[name] = [v if isinstance(v, Word) else self.one_word(v) for v in values]

    def check_leaves(self, root: Node) -> None:
        """Nothing of the source may fall between the nodes, and no leaf may hide a substitution."""
        end, body_end = 0, 0
        for node in nodes_of(root):
            if node.type == "heredoc_body":
                body_end = node.end_byte
            if node.type in ("raw_string", "ansi_c_string", "word", "string"):
                self.literal_code |= self.quotes_code(node)
            self.check_quotes(node)
            if node.type in _TIGHT and any(
                one.end_byte != two.start_byte for one, two in zip(node.children, node.children[1:], strict=False)
            ):
                self.doubt("the grammar takes what blanks part for one word")
            if node.type in ("command", "redirected_statement", "file_redirect", "herestring_redirect"):
                for one, two in zip(node.children, node.children[1:], strict=False):
                    if b"\n" in self.source[one.end_byte : two.start_byte].replace(b"\\\n", b""):
                        self.doubt("a command goes on over a line end")
            if node.type == "heredoc_redirect":
                self.check_heredoc(node)
            if node.child_count:
                continue
            gap = self.source[end : node.start_byte].replace(b"\\\n", b"")
            if node.start_byte < body_end or end < body_end:
                gap = b""
            if gap.strip(b" \t\n") == b"-" and node.type in ("<<", "<<-"):
                gap = b""  # a lone `-` before a here-document gets no node; for every command it means the same as none
            if gap.strip(b" \t\n"):
                self.doubt("the grammar leaves out a part of it")
            end = max(end, node.end_byte)
            text = self.text(node)
            if node.type == "comment" and node.start_byte and self.source[node.start_byte - 1 : node.start_byte] not in (
                b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")",
            ):  # fmt: skip
                self.doubt("a comment begins inside a word")
            if not node.is_named and node.parent is not None:
                self.check_token(node, text)
            if (
                node.type in _BARE
                and node.parent is not None
                and node.parent.type not in _LOOSE
                and _found(_BETWEEN, text)
            ):
                self.doubt("the grammar takes several words, or commands, for one")
            if node.type in ("word", "regex", "string_content", "heredoc_content", "extglob_pattern"):
                process = node.type not in ("string_content", "heredoc_content") and _found(_PROCESS, text)
                bare = node.type == "word" and _found(_EXPANSION, text)
                if process or bare or _found(_SUBSTITUTION, text):
                    self.doubt("the grammar takes a substitution for text")
        if self.source[max(end, body_end) :].replace(b"\\\n", b"").strip(b" \t\n"):
            self.doubt("the grammar leaves out its end")

    def check_token(self, node: Node, text: str) -> None:
        """A lone dollar or a backtick that belongs to nothing is one that the grammar did not understand."""
        kind = node.parent.type if node.parent is not None else ""
        if text == "$" and kind not in ("simple_expansion", "expansion", "translated_string"):
            if re.match(rb"[\w{(\[@*#?$!-]", self.source[node.end_byte : node.end_byte + 1]):
                self.doubt("the grammar takes an expansion for text")
        elif "`" in text and (kind != "command_substitution" or len(text) > 1):
            self.doubt("the grammar takes a substitution for text")

    def check_quotes(self, node: Node) -> None:
        """Quotes must end where bash ends them, and `$"` must not be taken for a lone dollar."""
        kind = node.type
        if kind in ("raw_string", "ansi_c_string"):
            whole = _ANSI_STRING if kind == "ansi_c_string" else _RAW_STRING
            if whole.fullmatch(self.text(node)) is None:
                self.doubt("a quote ends elsewhere than it seems")
        elif kind == "string":
            text = self.source[node.start_byte : node.end_byte]
            for child in node.named_children:
                if child.type != "string_content":
                    start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
                    text = text[:start] + b"x" * (end - start) + text[end:]
            if re.fullmatch(rb'\$?"(?:[^"\\]|\\.)*"', text, re.DOTALL) is None:
                self.doubt("a quote ends elsewhere than it seems")
        elif kind in (
            "command",
            "concatenation",
            "redirected_statement",
            "variable_assignment",
            "array",
            "for_statement",
        ):
            for one, two in zip(node.children, node.children[1:], strict=False):
                if one.end_byte != two.start_byte:
                    continue
                if self.text(one).endswith("$") and self.text(two)[:1] in ("'", '"'):
                    self.doubt("a dollar before a quote is read in two ways")
                elif kind == "command" and one.type in _WORDS and two.type in _WORDS:
                    self.doubt("two words stand without a blank between them")

    def quotes_code(self, node: Node) -> bool:
        """Whether quotes keep a substitution from being one, here; arithmetic would take it for one after all."""
        text = self.text(node)
        if node.type == "raw_string":
            return "$(" in text or "`" in text
        if node.type == "ansi_c_string":
            decoded = decode_ansi(text[2:-1])
            return decoded is None or "$(" in decoded or "`" in decoded
        return "\\`" in text or ("\\$" in text if node.type == "word" else "\\$(" in text)

    def check_heredoc(self, node: Node) -> None:
        """In a here-document with a plain mark every substitution must be a node of its own."""
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if start is None or not any(child.type == "heredoc_end" for child in node.children):
            self.doubt("a here-document has no end")
            return
        mark = self.text(start)
        plain_mark = mark.strip("'")
        dashed = any(child.type == "<<-" for child in node.children)
        end = next(child for child in node.children if child.type == "heredoc_end")
        line = (
            self.source[self.source.rfind(b"\n", 0, end.start_byte) + 1 :].split(b"\n", 1)[0].decode("utf-8", "replace")
        )
        lines = self.text(body).split("\n") if body is not None else []
        if (line.lstrip("\t") if dashed else line) != plain_mark or any(
            (each.lstrip("\t") if dashed else each) == plain_mark for each in lines
        ):
            self.doubt("a here-document ends elsewhere than it seems")
        if re.fullmatch(r"'[\w.-]+'", mark):
            return
        if not re.fullmatch(r"[\w.-]+", mark):
            self.doubt("the mark of a here-document is quoted in an odd way")
        if body is None:
            return
        text = self.source[body.start_byte : body.end_byte]
        for child in body.named_children:
            if child.type not in ("heredoc_content",):
                at = child.start_byte - body.start_byte
                text = text[:at] + b"x" * (child.end_byte - child.start_byte) + text[child.end_byte - body.start_byte :]
        plain = text.decode("utf-8", "replace")
        if _found(_SUBSTITUTION, plain):
            self.doubt("the grammar takes a substitution for text")
        if re.search(r"\\\n", plain):
            self.doubt("a here-document continues a line")

    # -- what is assigned ----------------------------------------------------------------------------------------------

    def collect(self, root: Node) -> None:
        for node in nodes_of(root):
            kind = node.type
            if kind == "variable_assignment":
                name = node.child_by_field_name("name")
                value = node.child_by_field_name("value")
                if name is not None and self.text(name) == "IFS" and _is_for_read(node):
                    continue  # `IFS= read x`: for this command only
                plain = name is not None and name.type == "variable_name" and any(c.type == "=" for c in node.children)
                target = self.text(name).partition("[")[0] if name is not None else "?"
                if not plain or (value is not None and value.type == "array"):
                    self.assign(target, UNKNOWN)
                else:
                    self.assign(target, Word("", "") if value is None else value)
            elif kind == "for_statement":
                variable = node.child_by_field_name("variable")
                values = node.children_by_field_name("value")
                name_text = self.text(variable) if variable is not None else "?"
                for value in values or ():
                    self.assign(name_text, value)
                if not values:
                    self.assign(name_text, UNKNOWN)
            elif kind == "function_definition":
                name = node.child_by_field_name("name")
                if name is not None:
                    self.script.functions.add(self.text(name))
            elif kind == "expansion" and any(c.type in (":=", "=") for c in node.children):
                for child in node.children:
                    if child.type == "variable_name":
                        self.assign(self.text(child), UNKNOWN)
            elif kind == "declaration_command":
                for child in node.named_children:
                    if child.type not in ("variable_assignment", "variable_name"):
                        option = self.text(child)
                        if not option.startswith("-"):
                            self.wild = True
                        elif (
                            re.search(r"[niF]", option)
                            and not option.startswith("--")
                            and "export" not in self.text(node)[:7]
                        ):
                            self.doubt(f"{self.text(node).split()[0]} {option} changes what a variable means")
            elif kind == "command":
                self.collect_command(node)
        for name_text, source in self.looped:
            self.assign(name_text, Word("…", None, splits=True, listed=self.output_of(source)))

    def collect_command(self, node: Node) -> None:
        name_node = node.child_by_field_name("name")
        if name_node is None:
            return
        name = re.sub(r"[\\'\"]", "", self.text(name_node))
        arguments = [self.text(child).strip("'\"") for child in node.children_by_field_name("argument")]
        if name in ("builtin", "command") and arguments:
            name, arguments = arguments[0], arguments[1:]
        if name == "read" and (loop := _fed_loop(node)) is not None:
            variables = [each for each in arguments if re.fullmatch(r"[A-Za-z_]\w*", each)]
            if len(variables) == 1 and all(
                re.fullmatch(r"-r?d?|-r|", each) for each in arguments if each not in variables
            ):
                self.looped.append((variables[0], loop))
                return
        if name in _SETTERS or (name == "printf" and any(a.startswith("-v") for a in arguments)):
            for argument in [*arguments, "REPLY", "MAPFILE", "OPTARG", "COPROC"]:
                if "$" in argument or "`" in argument:
                    self.wild = True
                found = re.match(r"(?:-v|-a)?([A-Za-z_]\w*)", argument)
                if found is not None:
                    self.assign(found[1], UNKNOWN)
        elif name in ("eval", "source", "."):
            self.wild = True
        elif name in ("let", "declare", "export", "local", "typeset", "readonly", "unset"):
            self.evaluates = True
        if name in ("read", "unset", "let", "test", "printf", "declare", "typeset", "local") and any(
            "[" in argument or "v" in argument[:2] for argument in arguments
        ):
            self.evaluates = True

    def assign(self, name: str, value: Node | Word) -> None:
        self.assigned.setdefault(name, []).append(value)

    # -- words ---------------------------------------------------------------------------------------------------------

    def words(self, node: Node) -> list[Word]:
        return build_words(self.text(node), self.segments(node))

    def one_word(self, node: Node) -> Word:
        made = self.words(node)
        return made[0] if len(made) == 1 else Word(self.text(node), None, splits=True)

    def segments(self, node: Node, *, quoted: bool = False) -> list[Segment]:
        kind = node.type
        text = self.text(node)
        if kind in (
            "word",
            "number",
            "variable_name",
            "test_operator",
            "regex",
            "extglob_pattern",
            "special_variable_name",
        ):
            if kind == "number" and node.child_count:
                return [Segment(None, quoted)]
            return decode_bare(text)
        if kind == "raw_string":
            return [Segment(text[1:-1], True)]
        if kind == "ansi_c_string":
            return [Segment(decode_ansi(text[2:-1]), True)]
        if kind == "translated_string":
            return [segment for child in node.named_children for segment in self.segments(child)]
        if kind == "string":
            return self.string_segments(node)
        if kind in ("command_name", "concatenation"):
            return self.joined(node)
        if kind in ("simple_expansion", "expansion"):
            return [self.expansion(node, quoted)]
        if kind == "arithmetic_expansion":
            return [Segment(None, quoted, harmless=True, sample="\0")]
        if kind == "command_substitution":
            inner = re.sub(r"\s+2>\s*/dev/null", "", text[2:-1] if text.startswith("$(") else text[1:-1]).strip()
            if inner == "pwd" and not self.busy:
                return [self.value("PWD", quoted)]
            listed = self.output_of(node)
            if (name := _of_a_path(listed)) is not None:
                return [Segment(name, quoted, computed=True)]
            sample = "\0" if _NUMBER.fullmatch(inner) else ""
            return [Segment(None, quoted, _PLAIN_OUTPUT.fullmatch(inner) is not None, listed=listed, sample=sample)]
        if kind == "process_substitution":
            return [Segment("/dev/fd/", True), Segment(None, True, harmless=True)]
        if kind == "brace_expression":
            return decode_bare(text)
        if kind == "array":
            return [Segment(None, False)]
        if not node.is_named and not node.child_count:
            return decode_bare(text)
        self.doubt(f"a word of the kind {kind} is not understood")
        return [Segment(None, False)]

    def string_segments(self, node: Node) -> list[Segment]:
        """Between the double quotes: the nodes that are expansions, and the source between them as text."""
        made: list[Segment] = [Segment("", True)]
        position = node.start_byte + (2 if self.text(node).startswith("$") else 1)
        for child in node.named_children:
            if child.type == "string_content":
                continue
            made.append(
                Segment(decode_double(self.source[position : child.start_byte].decode("utf-8", "replace")), True)
            )
            made += self.segments(child, quoted=True)
            position = child.end_byte
        made.append(Segment(decode_double(self.source[position : node.end_byte - 1].decode("utf-8", "replace")), True))
        return made

    def output_of(self, node: Node) -> tuple[Word, ...]:
        """The words of the one command that makes what a substitution or a pipe hands on; none where it is not that simple."""
        kind = node.type
        if kind in ("command_substitution", "process_substitution"):
            return self.output_of(node.named_children[0]) if len(node.named_children) == 1 else ()
        if kind == "redirected_statement":
            body = node.child_by_field_name("body")
            quiet = all(
                re.fullmatch(r"2>\s*/dev/null", self.text(each)) for each in node.children_by_field_name("redirect")
            )
            return self.output_of(body) if body is not None and quiet else ()
        if kind == "pipeline":
            first, *others = node.named_children
            return self.output_of(first) if all(passes_lines(self.output_of(each)) for each in others) else ()
        plain = kind == "command" and not any(
            each.type in ("variable_assignment", "file_redirect", "herestring_redirect", "subshell")
            for each in node.children
        )
        return tuple(word for child in node.named_children for word in self.words(child)) if plain else ()

    def joined(self, node: Node) -> list[Segment]:
        made: list[Segment] = []
        position = node.start_byte
        for child in node.children:
            if child.start_byte > position:
                made += decode_bare(self.source[position : child.start_byte].decode("utf-8", "replace"))
            made += self.segments(child)
            position = child.end_byte
        if position < node.end_byte:
            made += decode_bare(self.source[position : node.end_byte].decode("utf-8", "replace"))
        return made

    def expansion(self, node: Node, quoted: bool) -> Segment:
        text = self.text(node)
        found = re.fullmatch(r"\$\{?(\w+|[@*?#$!-])\}?", text)
        if found is not None:
            return self.value(found[1], quoted)
        if re.fullmatch(r"\$\{#\w+(\[[@*]\])?\}", text):
            return Segment(None, quoted, harmless=True, sample="\0")
        if text.startswith("${!") or re.search(r"@[PAKk]\}$", text):
            self.doubt(f"{text} means something else by the time it runs")
        cut = re.match(r"\$\{(\w+)(?:%|\^|,)", text)
        if cut is not None:
            base = self.value(cut[1], quoted)
            starts_plain = base.harmless or (base.text is not None and not base.text.startswith("-"))
            return Segment(None, quoted, harmless=starts_plain)
        return Segment(None, quoted)

    def value(self, name: str, quoted: bool) -> Segment:
        """What is known of a variable: its one value; else whether it can hide an option."""
        if name in _FIXED:
            return Segment(None, quoted, harmless=True, sample="\0" if name in "?#" else "")
        if self.wild or name.isdigit() or name in "@*!" or name in self.busy:
            return Segment(None, quoted)
        values = self.assigned.get(name)
        if values is None and name == "PWD" and not self.busy and len(self.cwds) == 1 and self.cwds[0] is not None:
            return Segment(self.cwds[0], quoted, computed=True)  # here, not where a variable took it
        if values is None and name == "HOME":
            return Segment(os.path.expanduser("~"), quoted, computed=True)
        if values is None:
            return Segment(None, quoted, harmless=_NOT_OF_THE_USER.fullmatch(name) is None)
        self.busy.add(name)
        try:
            made = [word for v in values for word in ([v] if isinstance(v, Word) else self.words(v))]
        finally:
            self.busy.discard(name)
        if len(made) == 1 and made[0].text is not None and not made[0].glob and not made[0].tilde:
            return Segment(made[0].text, quoted, computed=True)
        harmless = all(
            word.harmless and not word.head.startswith("-")
            if word.text is None
            else not re.match(r"-|[*?]", word.text) and not re.search(r"\s-|[\[$`]", word.text)
            for word in made
        )
        known = all(word.text is not None and not word.tilde for word in made) and len(made) <= 50
        one = made[0] if len(made) == 1 else UNKNOWN
        return Segment(
            None, quoted, harmless, choices=tuple(made) if known else (), listed=one.listed, sample=one.sample
        )


def passes_lines(words: Sequence[Word]) -> bool:
    """Whether a command in a pipe hands on some of the lines it gets, unchanged."""
    texts = [word.text or "x" for word in words]
    if texts[:1] in (["sort"], ["uniq"], ["head"], ["tail"]):
        return all(re.fullmatch(r"-[a-bd-z]*\d*|\d+", text) and text != "-o" for text in texts[1:])
    options = [text for text in texts[1:] if text.startswith("-")]
    return texts[:1] == ["grep"] and len(texts) == len(options) + 2 and all(
        re.fullmatch(r"-[vEiFwxP]+", text) for text in options
    )  # fmt: skip
