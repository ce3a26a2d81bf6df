"""A bash script taken apart: every simple command that it may run, with its words, redirections and place.

The grammar is tree-sitter's. What it does not parse, and every construct that is not known here, becomes a doubt: the
script is then asked about. Values of variables are followed where the script sets them once to plain text; everything
else that is only known at run time is an unknown word. The order of commands does not matter but for `cd`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from brim.permissions.words import (
    UNKNOWN,
    Segment,
    Word,
    build_words,
    decode_ansi,
    decode_bare,
    decode_double,
    names,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


class Redirect(msgspec.Struct, frozen=True):
    """`operator` as written (`>`, `>>`, `<`, `&>` …)."""

    operator: str
    target: Word


class Call(msgspec.Struct, frozen=True):
    """A simple command. `cwds`: the folders it may run in (None: one that is not known); `text`: its source."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...]
    redirects: tuple[Redirect, ...]
    cwds: tuple[str | None, ...]
    text: str


class Script(msgspec.Struct):
    """`doubts`: why it cannot be judged whole; `variables`: what may be assigned, for scripts inside this one."""

    calls: list[Call]
    doubts: list[str]
    variables: dict[str, list[Word]]
    functions: set[str]


_STRUCTURE = names(
    "program list pipeline if_statement elif_clause else_clause do_group case_item negated_command"
    " variable_assignments compound_statement"
)
_TEXT = names(
    "word string raw_string ansi_c_string translated_string concatenation simple_expansion expansion"
    " string_content arithmetic_expansion number brace_expression regex extglob_pattern special_variable_name"
    " variable_name subscript binary_expression unary_expression postfix_expression parenthesized_expression"
    " ternary_expression test_operator array heredoc_content heredoc_start heredoc_end file_descriptor"
    " command_name comment"
)
_OPERANDS = names("word string raw_string ansi_c_string concatenation simple_expansion expansion number variable_name")
_RESERVED = names("{ } if then elif else fi for while until do done case esac select function in [[ ]] ! ((")
_SETTERS = frozenset(["read", "mapfile", "readarray", "getopts", "coproc"])
_FIXED = frozenset(["?", "#", "$", "-", "0"])
_NOT_OF_THE_USER = re.compile(r"IFS|REPLY|MAPFILE|OPTARG|OPTIND|DIRSTACK|FUNCNAME|COPROC|_|BASH_.*|COMP_.*|READLINE_.*")
_PLAIN_OUTPUT = re.compile(
    r"pwd|nproc|whoami|id -un?|uname( -[a-z]+)?|arch|date( -u)?( \+%[\w%:.T-]*)?"
    r"|git rev-parse( --short| --abbrev-ref| --show-toplevel| --verify)*( [A-Za-z][\w./@{}^~]*)?"
    r"|git rev-list --count [\w./^~@-]*|git merge-base [A-Za-z][\w./-]* [A-Za-z][\w./-]*|git branch --show-current"
    r"|(?:[^;&`$()\n]*\| *)?wc -[lwc]+(?: [^;&`$()|\n]*)?"
)
_SUBSTITUTION = re.compile(r"(?:\\.)|(\$\(|`|\$\{|\$\[)", re.DOTALL)
_PROCESS = re.compile(r"(?:\\.)|([<>]\()", re.DOTALL)
# Characters that a terminal, the grammar and bash see differently.
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\x80-\xa0\u1680\u2000-\u200a\u2028\u2029\u202a-\u202f\u205f\u2066-\u2069\u3000\ufeff]"
)


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse_script(
    text: str, cwds: Sequence[str | None], variables: Mapping[str, list[Word]] | None = None, *, wild: bool = False
) -> Script:
    """Take a script apart. `cwds`: where it starts; `variables`: what a surrounding script assigns. Never raises."""
    script = Script([], [], dict(variables or {}), set())
    odd = _ODD.search(text)
    if odd is not None:
        script.doubts.append(f"it holds the character U+{ord(odd[0]):04X}, which is not what it looks like")
    if re.search(r"[^\s\\]\\\n[^\s]", text):
        script.doubts.append("a line is continued inside a word")
    try:
        source = text.encode("utf-8")
    except UnicodeEncodeError:
        script.doubts.append("it holds half a character")
        source = text.encode("utf-8", "replace")
    if len(source) > 100_000:
        script.doubts.append(f"it is {len(source)} bytes long")
        return script
    root = _parser().parse(source).root_node
    if root.has_error:
        script.doubts.append("the grammar of bash does not parse it whole")
    _Reader(script, source, cwds, wild).read(root)
    return script


def _nodes(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        each = stack.pop()
        yield each
        stack.extend(reversed(each.children))


class _Reader:
    """One pass over the tree for what is assigned, one for the commands."""

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

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def doubt(self, why: str) -> None:
        if why not in self.script.doubts:
            self.script.doubts.append(why)

    def read(self, root: Node) -> None:
        try:
            self.check_leaves(root)
            self.collect(root)
            self.visit(root)
            self.keep_variables()
        except RecursionError:
            self.doubt("it is nested too deeply")
        if self.literal_code and self.evaluates:
            self.doubt("text that looks like a command stands where arithmetic may run it")

    def keep_variables(self) -> None:
        """What is assigned, for scripts inside this one."""
        for name, values in self.assigned.items():
            self.script.variables[name] = [v if isinstance(v, Word) else self.one_word(v) for v in values]

    def check_leaves(self, root: Node) -> None:
        """Nothing of the source may fall between the nodes, and no leaf may hide a substitution."""
        end, body_end = 0, 0
        for node in _nodes(root):
            if node.type == "heredoc_body":
                body_end = node.end_byte
            if node.type in ("raw_string", "ansi_c_string", "word", "string"):
                self.literal_code |= self.quotes_code(node)
            if node.type == "command":
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
            if node.type in ("word", "regex", "string_content", "heredoc_content", "extglob_pattern"):
                process = node.type not in ("string_content", "heredoc_content") and _found(_PROCESS, text)
                if process or _found(_SUBSTITUTION, text):
                    self.doubt("the grammar takes a substitution for text")
        if self.source[end:].strip(b" \t\n\\"):
            self.doubt("the grammar leaves out its end")

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
        for node in _nodes(root):
            kind = node.type
            if kind == "variable_assignment":
                name = node.child_by_field_name("name")
                value = node.child_by_field_name("value")
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

    def collect_command(self, node: Node) -> None:
        name_node = node.child_by_field_name("name")
        if name_node is None:
            return
        name = re.sub(r"[\\'\"]", "", self.text(name_node))
        arguments = [self.text(child).strip("'\"") for child in node.children_by_field_name("argument")]
        if name in ("builtin", "command") and arguments:
            name, arguments = arguments[0], arguments[1:]
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
            return [Segment(None, quoted, harmless=True)]
        if kind == "command_substitution":
            inner = re.sub(r"\s+2>\s*/dev/null", "", text[2:-1] if text.startswith("$(") else text[1:-1]).strip()
            return [Segment(None, quoted, harmless=_PLAIN_OUTPUT.fullmatch(inner) is not None)]
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
            return Segment(None, quoted, harmless=True)
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
            return Segment(None, quoted, harmless=True)
        if self.wild or name.isdigit() or name in "@*!" or name in self.busy:
            return Segment(None, quoted)
        values = self.assigned.get(name)
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
            word.harmless
            if word.text is None
            else not re.match(r"-|[*?]", word.text) and not re.search(r"\s-|[\[$`]", word.text)
            for word in made
        )
        return Segment(None, quoted, harmless=harmless)

    # -- commands ------------------------------------------------------------------------------------------------------

    def visit(self, node: Node) -> None:
        """Walk one node; afterwards `sure` is where the shell stands if the node succeeded."""
        self.depth += 1
        if self.depth > 150:
            raise RecursionError
        try:
            self.visit_kind(node)
        finally:
            self.depth -= 1

    def visit_kind(self, node: Node) -> None:
        kind = node.type
        if kind == "list":
            self.visit_list(node)
        elif kind == "command":
            self.visit_command(node, ())
        elif kind == "redirected_statement":
            self.visit_redirected(node)
        elif kind in ("pipeline", "subshell", "command_substitution", "process_substitution"):
            self.visit_apart(node)
        elif kind in ("while_statement", "for_statement", "c_style_for_statement", "function_definition"):
            if re.search(rb"\b(cd|pushd|popd)\b", self.source[node.start_byte : node.end_byte]):
                self.cwds = _union(self.cwds, (None,))
            if kind == "c_style_for_statement":
                for child in node.named_children:
                    if child.type not in ("do_group", "compound_statement"):
                        self.check_arithmetic(child)
            self.visit_children(node)
        elif kind == "declaration_command":
            self.visit_declaration(node)
        elif kind == "variable_assignment":
            self.visit_assignment(node)
        elif kind == "test_command":
            self.visit_test(node)
        elif kind in ("unset_command", "case_statement") or kind in _STRUCTURE or kind in _TEXT:
            if kind in ("arithmetic_expansion", "subscript") or (
                kind == "compound_statement" and self.text(node)[:2] == "(("
            ):
                self.check_arithmetic(node)
            if kind == "expansion" and (colon := next((c for c in node.children if c.type == ":"), None)) is not None:
                for child in node.named_children:
                    if child.start_byte > colon.start_byte:
                        self.check_arithmetic(child)
            if kind == "unset_command":
                self.evaluates = True
                self.add_call(
                    node, [Word("unset", "unset"), *(w for c in node.named_children for w in self.words(c))], [], ()
                )
            self.visit_children(node)
        elif kind == "file_redirect":
            self.add_call(node, [], [], self.redirect(node)[0])
            self.visit_children(node)
        elif kind in ("herestring_redirect", "heredoc_redirect", "heredoc_body", "ERROR"):
            self.visit_children(node)
        elif node.is_named:
            self.doubt(f"a {kind.replace('_', ' ')} is not understood")
            self.visit_children(node)
        if kind not in ("command", "list", "redirected_statement"):
            self.sure = self.cwds

    def visit_children(self, node: Node) -> None:
        for child in node.children:
            if child.is_named:
                self.visit(child)

    def visit_apart(self, node: Node) -> None:
        """What runs in a process of its own leaves the shell's folder alone."""
        if node.type == "command_substitution" and self.text(node).startswith("`") and "\\" in self.text(node):
            self.doubt("a backslash stands between backticks")
        before = self.cwds
        for child in node.children:
            if child.is_named:
                self.visit(child)
            if node.type == "pipeline":
                self.cwds = before
        self.cwds = before

    def visit_list(self, node: Node) -> None:
        before = self.cwds
        left, operator, right = node.children[0], node.children[1], node.children[-1]
        self.visit(left)
        sure = self.sure
        self.cwds = sure if operator.type == "&&" else _union(before, self.cwds)
        for child in node.children[1:-1]:
            if child.is_named:
                self.visit(child)
        if right is not left:
            self.visit(right)
        last = self.sure
        self.cwds = _union(before, sure, self.cwds)
        self.sure = last if operator.type == "&&" else self.cwds

    def visit_redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        redirects: list[Redirect] = []
        extra: list[Word] = []
        for child in node.children_by_field_name("redirect"):
            if child.type == "file_redirect":
                made, more = self.redirect(child)
                redirects += made
                extra += more
                self.visit_children(child)
            elif child.type == "heredoc_redirect":
                # the rest of the line hangs below the here-document: arguments, redirections, a pipe, a list
                for inner in child.named_children:
                    if inner.type == "file_redirect":
                        made, more = self.redirect(inner)
                        redirects += made
                        extra += more
                        self.visit_children(inner)
                    elif inner.type in ("heredoc_start", "heredoc_end"):
                        continue
                    elif inner in child.children_by_field_name("argument"):
                        extra += self.words(inner)
                        self.visit(inner)
                    else:
                        self.visit(inner)
            else:
                self.visit(child)
        if body is not None and body.type == "command":
            self.visit_command(body, redirects, extra)
            return
        if extra:
            self.doubt("words follow a redirection")
        before = self.cwds
        if body is not None:
            self.visit(body)
        if redirects:
            # of a list or a pipe, the grammar gives to the whole what belongs to the last command
            after, sure = self.cwds, self.sure
            self.cwds = _union(before, after, sure)
            self.add_call(node, [], [], redirects)
            self.cwds, self.sure = after, sure

    def redirect(self, node: Node) -> tuple[list[Redirect], list[Word]]:
        operator = next((c.type for c in node.children if not c.is_named), "")
        targets = node.children_by_field_name("destination")
        words = [word for target in targets for word in self.words(target)]
        if not targets:
            # `>&-` closes
            return ([] if operator.endswith("&-") else [Redirect(operator, UNKNOWN)]), []
        first = self.words(targets[0])
        target = first[0] if len(first) == 1 else UNKNOWN
        return [Redirect(operator, target)], words[len(first) :]

    def visit_command(self, node: Node, redirects: Sequence[Redirect], extra: Sequence[Word] = ()) -> None:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        own = list(redirects)
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self.assignment(child))
            elif child.type == "file_redirect":
                made, more = self.redirect(child)
                own += made
                words += more
            elif child.type == "herestring_redirect":
                pass
            elif child.type == "subshell" and words and words[0].text == "time":
                self.visit(child)  # `time (…)`
                continue
            elif child.is_named:
                words += self.words(child)
            elif child.type not in ("(", ")"):
                words += build_words(self.text(child), decode_bare(self.text(child)))
            else:
                self.doubt("a parenthesis stands among the words of a command")
            if child.type == "file_redirect":
                self.visit_children(child)
            elif child.is_named and child.type != "variable_assignment":
                self.visit(child)
        name = node.child_by_field_name("name")
        if name is not None and self.text(name) in _RESERVED:
            self.doubt(f"{self.text(name)!r} stands where the grammar expects a command")
        words += extra
        self.add_call(node, words, assignments, own)

    def add_call(
        self, node: Node, words: Sequence[Word], assignments: Sequence[tuple[str, Word]], redirects: Sequence[Redirect]
    ) -> None:
        self.script.calls.append(
            Call(tuple(words), tuple(assignments), tuple(redirects), self.cwds, self.text(node).strip())
        )
        self.sure = self.cwds
        name = words[0].text if words else None
        if name in ("builtin", "command") and len(words) > 1:
            words, name = words[1:], words[1].text
        if name in ("cd", "pushd", "popd"):
            self.sure = self.moved(words)
            self.cwds = _union(self.cwds, self.sure)

    def moved(self, words: Sequence[Word]) -> tuple[str | None, ...]:
        rest = [word for word in words[1:] if word.text is None or not re.fullmatch(r"-[LPe@-]+|-n", word.text)]
        if words[0].text == "popd" or len(rest) > 1:
            return (None,)
        if not rest:
            return (os.path.expanduser("~") if words[0].text == "cd" else None,)
        target = rest[0]
        if target.text is None or target.glob or target.text.startswith(("-", "+")):
            return (None,)
        text = os.path.expanduser(target.text) if target.tilde else target.text
        return tuple(
            None if cwd is None and not text.startswith("/") else os.path.join(cwd or "/", text) for cwd in self.cwds
        )

    def assignment(self, node: Node) -> tuple[str, Word]:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        self.visit_children(node)
        if name is not None and name.type == "subscript":
            self.evaluates = True
        word = Word("", "") if value is None else self.one_word(value)
        return (self.text(name) if name is not None else "?"), word

    def visit_assignment(self, node: Node) -> None:
        name, word = self.assignment(node)
        self.add_call(node, [], [(name, word)], ())

    def visit_declaration(self, node: Node) -> None:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self.assignment(child))
            elif child.is_named:
                words += self.words(child)
                self.visit(child)
            else:
                words.append(Word(self.text(child), self.text(child)))
        self.add_call(node, words, assignments, ())

    def visit_test(self, node: Node) -> None:
        single = node.children[0].type == "["
        for inner in _nodes(node):
            if single and not inner.is_named and inner.type in ("<", ">", "<<", ">>", "&&", "||"):
                self.doubt("a test writes into a file")
            if inner.type == "test_operator" and self.text(inner) in (
                "-v",
                "-R",
                "-eq",
                "-ne",
                "-lt",
                "-gt",
                "-le",
                "-ge",
            ):
                self.evaluates = True
                if self.text(inner) in ("-v", "-R"):
                    operand = inner.next_sibling
                    word = self.one_word(operand) if operand is not None and operand.type in _OPERANDS else UNKNOWN
                    if word.text is None or re.search(r"[$`]", word.text):
                        self.doubt("a test evaluates the name that it is given")
                elif not single:
                    self.check_arithmetic(inner.parent or inner)
        self.visit_children(node)

    def check_arithmetic(self, node: Node) -> None:
        """Arithmetic evaluates what its variables hold: `a[$(command)]` in a variable is run."""
        self.evaluates = True
        index = node.child_by_field_name("index") if node.type == "subscript" else None
        for inner in _nodes(index or node):
            if inner.type in ("variable_name", "word") and re.fullmatch(r"[A-Za-z_]\w*", self.text(inner)):
                self.check_numeric(self.value(self.text(inner), True))
            elif inner.type == "command_substitution":
                self.check_numeric(self.segments(inner)[0])
            elif inner.type in ("raw_string", "ansi_c_string", "string", "concatenation"):
                for segment in self.segments(inner):
                    self.check_numeric(segment)

    def check_numeric(self, segment: Segment) -> None:
        if segment.text is None and not segment.harmless:
            self.doubt("arithmetic evaluates a text that is not known")
        elif segment.text is not None and "[" in segment.text:
            self.doubt("arithmetic evaluates an index")


def _union(*groups: Sequence[str | None]) -> tuple[str | None, ...]:
    made = tuple(dict.fromkeys(each for group in groups for each in group))
    return made if len(made) <= 8 else (None,)


def _found(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a pattern's group is found; what a backslash escapes is passed over."""
    return any(found[1] for found in pattern.finditer(text))
