"""A bash script taken apart: every simple command that it may run, with its words, redirections and place.

The grammar is tree-sitter's. What it does not parse, and every construct that is not known here, becomes a doubt: the
script is then asked about. Values of variables are followed where the script sets them once to plain text; everything
else that is only known at run time is an unknown word. The order of commands does not matter but for `cd`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from brim.permissions.values import Call, Redirect, Script, Values, nodes_of, passes_lines
from brim.permissions.words import UNKNOWN, Segment, Word, build_words, decode_bare, names

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


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
_MOVES = re.compile(rb"\b(cd|pushd|popd)\b")
_SAME_SHELL = names("builtin command time")
"""What runs a builtin in the shell itself."""
_RESERVED = names("{ } if then elif else fi for while until do done case esac select function in [[ ]] ! ((")
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
    if re.search(r"(?:^|\n)[ \t]*\\\n", text):
        script.doubts.append("a line holds only a backslash")
    if re.search(r"(?:[^\s]|\\[ \t])\\\n[^\s]", text):
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


class _Reader(Values):
    """One pass over the tree for what is assigned, one for the commands."""

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
            # a loop may come back to where it has been, and a function is run wherever it is called
            whole = kind == "function_definition"
            if _MOVES.search(self.source if whole else self.source[node.start_byte : node.end_byte]):
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
        feed: tuple[Word, ...] = ()
        for child in node.children:
            simple = child.type == "command" and not any(
                each.type in ("command_substitution", "process_substitution") for each in nodes_of(child)
            )
            if child.is_named:
                # an input that is redirected comes from elsewhere; the grammar may hang it on the whole pipe
                self.feed = feed if simple and b"<" not in self.source else ()
                self.visit(child)
                self.feed = ()
                last = self.script.calls[-1].words if simple and self.script.calls else ()
                feed = feed if feed and passes_lines(last) else last
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
            last_starts = self.cwds
            self.visit(right)
            self.last_starts = last_starts
        last = self.sure
        self.cwds = _union(before, sure, self.cwds)
        self.sure = last if operator.type == "&&" else self.cwds

    def visit_redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        redirects: list[Redirect] = []
        extra: list[Word] = []
        given: list[str | None] = []
        # of a list, the grammar gives to the whole what belongs to the last command, which may run elsewhere
        elsewhere = {"PWD"} - self.busy if body is not None and body.type != "command" else set()
        self.busy |= elsewhere
        for child in node.children_by_field_name("redirect"):
            if child.type == "file_redirect":
                made, more = self.redirect(child)
                redirects += made
                extra += more
                self.visit_children(child)
            elif child.type == "heredoc_redirect":
                given.append(self.heredoc_text(child))
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
                given.append(self.herestring_text(child))
                self.visit(child)
        self.busy -= elsewhere
        if body is not None and body.type == "command":
            self.visit_command(body, redirects, extra, given)
            return
        if extra:
            self.doubt("words follow a redirection")
        before = self.cwds
        if body is not None:
            self.visit(body)
        if redirects:
            after, sure = self.cwds, self.sure
            last = body.children[-1] if body is not None and body.type == "list" else None
            if last is not None and last.type == "pipeline":
                last = last.children[-1]
            self.cwds = self.last_starts if last is not None and last.type == "command" else _union(before, after, sure)
            self.add_call(node, [], [], redirects)
            self.cwds, self.sure = after, sure

    def heredoc_text(self, node: Node) -> str | None:
        """What stands in a here-document; None where something of it is expanded."""
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if any(child.type == "file_descriptor" and self.text(child) != "0" for child in node.children):
            return None
        text = self.text(body) if body is not None else ""
        if start is None or (not self.text(start).startswith("'") and re.search(r"[$`\\]", text)):
            return None
        return re.sub(r"(?m)^\t+", "", text) if any(child.type == "<<-" for child in node.children) else text

    def herestring_text(self, node: Node) -> str | None:
        words = [word for child in node.named_children for word in self.words(child)]
        plain = node.type == "herestring_redirect" and not any(
            child.type == "file_descriptor" and self.text(child) != "0" for child in node.children
        )
        return words[0].text if plain and len(words) == 1 else None

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

    def visit_command(
        self, node: Node, redirects: Sequence[Redirect], extra: Sequence[Word] = (), given: Sequence[str | None] = ()
    ) -> None:
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
                given = [*given, self.herestring_text(child)]
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
        alone = len(given) == 1 and not any(each.operator.startswith("<") for each in own)
        self.add_call(node, words, assignments, own, given[0] if alone else None)

    def add_call(
        self,
        node: Node,
        words: Sequence[Word],
        assignments: Sequence[tuple[str, Word]],
        redirects: Sequence[Redirect],
        given: str | None = None,
    ) -> None:
        text = self.text(node).strip()
        self.script.calls.append(
            Call(tuple(words), tuple(assignments), tuple(redirects), self.cwds, text, self.feed, given)
        )
        self.feed = ()
        self.sure = self.cwds
        while len(words) > 1 and words[0].text in _SAME_SHELL:
            words = words[1:]
            while len(words) > 1 and (words[0].text or "").startswith("-"):
                words = words[1:]
        name = words[0].text if words else None
        if name in ("cd", "pushd", "popd"):
            self.sure = self.moved(words)
            self.cwds = _union(self.cwds, self.sure)
        elif name in ("eval", "trap", "source", ".") and _may_move(words):
            self.cwds = self.sure = _union(self.cwds, (None,))

    def moved(self, words: Sequence[Word]) -> tuple[str | None, ...]:
        rest = [word for word in words[1:] if word.text is None or not re.fullmatch(r"-[LPe@-]+|-n", word.text)]
        if words[0].text == "popd" or len(rest) > 1:
            return (None,)
        if not rest:
            return (os.path.expanduser("~") if words[0].text == "cd" else None,)
        target = rest[0]
        if target.text is None or target.glob or target.text.startswith(("-", "+")):
            return (None,)
        if target.tilde and not re.match(r"~(/|$)", target.text):
            return (None,)  # `~-`, `~+`, somebody's home
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
        for inner in nodes_of(node, leave=("command_substitution", "process_substitution")):
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
        for inner in nodes_of(index or node):
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


def _may_move(words: Sequence[Word]) -> bool:
    """Whether what this shell runs out of a text or a file may go to another folder."""
    if words[0].text in ("source", "."):
        return len(words) != 2 or re.fullmatch(r"[\w./-]*bin/activate", words[1].text or "") is None
    return any(word.text is None or re.search(r"\b(cd|pushd|popd|source)\b|\\|['\"]|\$|(^|\s)\.\s", word.text)
               for word in words[1:])  # fmt: skip


def _union(*groups: Sequence[str | None]) -> tuple[str | None, ...]:
    made = tuple(dict.fromkeys(each for group in groups for each in group))
    return made if len(made) <= 8 else (None,)
