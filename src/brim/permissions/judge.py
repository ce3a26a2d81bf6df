"""Bash commands judged: every simple command, every file written, everything run through something else.

Of all parts the strictest decision holds. A part is denied by a deny rule, asked about by an ask rule or because it
cannot be judged, allowed by an allow rule of its own, by the list of harmless commands, or by the mode.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence

import msgspec

from brim.permissions.disguises import DisguiseJudge
from brim.permissions.effects import Effect
from brim.permissions.files import NOTHING
from brim.permissions.forbidding import forbids, forbids_at
from brim.permissions.git import git_effects, strip_globals
from brim.permissions.harmless import (
    FURNITURE,
    LOOKERS,
    SILENT,
    TEXTUAL,
    git_only_looks,
    is_dangerous_name,
    is_of_the_shell,
    is_safe_value,
    is_usual_path,
)
from brim.permissions.interpreters import RUNS_CODE
from brim.permissions.operands import WRITERS, changed_by
from brim.permissions.paths import is_below
from brim.permissions.programs import canonical, program_effects
from brim.permissions.rules import Rule, allows, covers_text, format_rule, plain_name, quote_word
from brim.permissions.shell import parse_script
from brim.permissions.snippets import python_files
from brim.permissions.spellings import kindred, other_spellings
from brim.permissions.values import Call, Script
from brim.permissions.verdict import Part
from brim.permissions.words import Word, known, names, variants
from brim.permissions.wrappers import wrapped

_SUBCOMMANDS = names(
    "git npm pnpm yarn cargo go docker podman kubectl pip pip3 uv poetry gh glab brew apt apt-get systemctl"
    " terraform aws gcloud az helm make dotnet mvn gradle bundle rails conda rustup deno bun composer"
)
_EXACTLY = names("rm rmdir mv dd chmod chown curl wget eval kill pkill killall shutdown reboot mkfs truncate shred")
_RUNS_FILES = {
    "python": r".*\.(py|pyc|pth|so|zip)", "pytest": r".*\.(py|so)|pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml",
    "node": r".*\.(js|mjs|cjs|ts|node)|package\.json", "npm": r"package\.json|\.npmrc|.*\.(js|mjs|cjs|ts|sh)",
    "make": r"(GNU)?[Mm]akefile|.*\.(mk|mak|sh)", "cargo": r".*\.rs|Cargo\.toml", "go": r".*\.go|go\.mod",
    "ruby": r".*\.rb|Gemfile", "perl": r".*\.p[lm]", "php": r".*\.php", "lua": r".*\.lua",
}  # fmt: skip
"""Which files a program runs, or makes part of what it runs, without their standing among its words."""
_RUNS_FILES |= dict.fromkeys(("pnpm", "yarn", "npx", "bun", "deno"), _RUNS_FILES["npm"])
_DEEPEST = 8
_FOLLOWS = {
    "grep": r"-\w*R\w*|--deref.*",
    "egrep": r"-\w*R\w*|--deref.*",
    "rg": r"-\w*L\w*|--follow",
    "find": r"-L|-H|-follow",
    "fd": r"-\w*L\w*|--follow",
    "tree": r"-\w*l\w*",
    "du": r"-\w*[LD]\w*|--deref.*",
}
"""Options that follow links, wherever they lead."""


_HANDS_ON = ("", "timeout", "env", "time", "nice", "command", "stdbuf", "uv run", "poetry run")
"""What leaves its own input to the command that it runs."""


class BashJudge(DisguiseJudge):
    """Judges one command line. `parts` is what came of it."""

    # -- the whole -----------------------------------------------------------------------------------------------------

    def judge(self, command: str) -> list[Part]:
        """All parts of a command line. Where a rule allows exactly this text, only what is denied remains."""
        self.command = command
        if (self.mode == "allow-all" or self.everything) and not self.limits:
            by = self.everything.text if self.everything else None
            return [Part(command, "allow", "everything is allowed", by)]
        whole = next((rule for rule in [*self.bash["deny"], *self.bash["ask"]] if rule.pattern is None), None)
        if whole is not None:
            return [Part(command, whole.decision, f"the rule {whole.text} is about every command", whole.text)]
        try:
            self.script(command, (self.cwd,), {}, 0)
        except RecursionError:
            self.doubt(command, "it is nested too deeply to judge")
        self.looked_up(command)
        self.spelled_out(command)
        exact = next(
            (r for r in self.bash["allow"] if r.pattern is not None and r.pattern.strip() == command.strip()), None
        )
        if exact is not None:
            told = {rule.text for rule in self.rules.ask}
            self.parts = [
                part
                if part.decision != "ask" or part.rule in told
                else Part(part.text, "allow", "allowed as a whole", exact.text)
                for part in self.parts
            ]
        if not self.parts:
            self.parts.append(Part(command, "allow", "it runs nothing"))
        return self.parts

    def looked_up(self, command: str) -> None:
        """`cp $(which rm) x`: where a denied program lies is handed on."""
        if not re.search(r"\$\(|`", command):
            return
        for rule in self.bash["deny"]:
            first = rule.words()[0].literal or "\n"
            asks = rf"\b(?:which|command\s+-v|type\s+-\w+|hash|whereis)\b[^;&|\n]*\b{re.escape(first)}\b"
            if re.search(asks, command):
                self.doubt(command, f"it looks up where {first} lies, and there is the rule {rule.text}")

    def spelled_out(self, command: str) -> None:
        """Rules with shell syntax in them (`curl * | sh`, `* > /etc/*`) are about the command line as it is written."""
        plain = _operators_tight(command).casefold()
        for decision in ("deny", "ask"):
            for rule in self.bash[decision]:
                if rule.pattern is None or not re.search(r"[|<>;&`]|\$\(|\(\s*\)", rule.pattern):
                    continue
                if covers_text(f"*{_operators_tight(rule.pattern).casefold()}*", plain):
                    self.add(command, decision, f"it holds what {rule.text} spells out", rule.text)
                    return

    def script(self, text: str, cwds: Sequence[str | None], variables: dict[str, list[Word]], depth: int) -> None:
        if depth > _DEEPEST:
            self.add(text, "ask", "it is nested too deeply to judge")
            return
        script = parse_script(text, cwds, variables)
        for doubt in script.doubts:
            self.doubt(text, doubt)
        self.note_written(script)
        exports = (
            depth > 0 or re.search(r"\b(?:export|allexport|declare|typeset|readonly)\b|\bset\s+-\w*a", text) is not None
        )
        for name, values in script.variables.items():
            if name not in variables and (is_dangerous_name(name) if exports else is_of_the_shell(name)):
                self.assignment(text, name, values)
        for call in script.calls:
            self.call(call, script, depth)

    def note_written(self, script: Script) -> None:
        """What a script writes itself, for the programs it then runs; and whether it makes files that look like options."""
        for call in script.calls:
            texts = [word.text or "" for word in call.words]
            targets = [each.target.text or "" for each in call.redirects if ">" in each.operator]
            if texts and canonical(texts[0]) == "tee":
                targets += [text for text in texts[1:] if not text.startswith("-")]
            self.written |= {os.path.basename(target) for target in targets if target not in NOTHING}
            self.changed |= changed_by(call.words)
            if texts and canonical(texts[0]) in WRITERS:
                self.spaced |= any(re.search(r"[\s'\"\\]", text) for text in texts[1:])
            self.spaced |= any(re.search(r"[\s'\"\\]", text) for text in targets)
            after = texts[texts.index("--") + 1 :] if "--" in texts else []
            self.dashed |= any(os.path.basename(text).startswith("-") for text in [*targets, *after])
            self.dashed |= any("/" in text and os.path.basename(text).startswith("-") for text in texts)

    def runs_written(self, base: str, words: Sequence[Word], text: str) -> None:
        """A program that was written a moment ago by the same command is as good as code on the command line."""
        name = canonical(base)
        pattern = _RUNS_FILES.get(name)
        operand = next((word for word in words[1:] if not (word.text or word.head).startswith("-")), None)
        found = [each for each in self.written if pattern and re.fullmatch(pattern, each)]
        if "/" in base:
            found += [each for each in self.written if each == os.path.basename(base)]
        if name in RUNS_CODE and operand is not None:
            found += [each for each in self.written if operand.text is None or each == os.path.basename(operand.text)]
        if found and self.limits:
            self.doubt(text, f"{found[0]} is written and run in one go")

    def assignment(self, text: str, name: str, values: Iterable[Word]) -> None:
        if name == "PATH" and self.everything is not None and all(is_usual_path(value) for value in values):
            return
        if not all(is_safe_value(name, value) for value in values):
            self.doubt(text, f"setting {name} can change what is run")

    def call(self, call: Call, script: Script, depth: int) -> None:
        for redirect in call.redirects:
            self.redirect(redirect, call)
        if call.words:
            for name, value in call.assignments:
                if name == "IFS" and call.words[0].text == "read":
                    continue  # only for this `read`, whose variables are of unknown value as it is
                if is_dangerous_name(name):
                    self.assignment(call.text, name, [value])
            self.words(call.words, call, script, depth)

    # -- one command ---------------------------------------------------------------------------------------------------

    def words(self, words: Sequence[Word], call: Call, script: Script, depth: int, through: str = "") -> None:
        """Judge a command by its words. `through`: what runs it, where that is not the script itself."""
        shown_text = (" ".join(word.raw for word in words) if through else call.text) or "''"
        if depth > _DEEPEST:
            self.add(shown_text, "ask", "it is nested too deeply to judge")
            return
        name = words[0].text
        if through not in _HANDS_ON:
            call = msgspec.structs.replace(call, given=None)
        tamed = [self.tame(word, call) for word in words]
        if self.ruled(tamed, shown_text, call=call, whole=not through):
            return
        if name is None or not name or words[0].glob or not name.isascii() or name != name.strip("! \t\n"):
            if name is None or words[0].glob:
                self.doubt(shown_text, f"which command {words[0].raw!r} is, is not known before it runs")
            else:
                self.doubt(shown_text, f"{words[0].raw!r} is no name of a command")
            return
        if words[0].computed:
            self.doubt(shown_text, f"the command comes out of a variable: {words[0].raw}")
        base = plain_name(name)
        rule = self.allowed_by(words)
        if (kin := kindred(words)) is not None and (rule is None or rule.pattern is None):
            self.ruled(kin, shown_text, acts=f"{base} does what {kin[0].text} does")
        # a rule for `./check.sh` is about the workspace's own
        elsewhere = (
            "/" in base
            and not base.startswith(("/", "~"))
            and not all(cwd is not None and is_below(os.path.realpath(cwd), self.root) for cwd in call.cwds)
        )
        if elsewhere and rule is not None and rule.pattern is not None:
            rule = None
        # a rule for `git status` grants no more than that to `git -c alias.x=… status`
        covers = rule is not None and (rule.exact() or self.names_inner(rule)) and allows(rule, words)
        wrapper = wrapped(tamed, os.path.basename(name))
        effects = list(wrapper[1]) if wrapper is not None else []
        if os.path.basename(name) == "git":
            effects += (effect for form in variants(tamed) for effect in git_effects(form))
            self.foreign_repository(words, call, shown_text)
        elif wrapper is None:
            effects += (effect for form in variants(tamed) for effect in program_effects(form))
        if self.written:
            self.runs_written(base, words, shown_text)
        if "/" in base:
            self.script_file(words[0], call, script, depth, shown_text, shebang=True)
        open_questions = self.effects(effects, words, rule, covers, call, script, depth, shown_text)
        self.denied_paths(words, call, shown_text)
        if canonical(name) in WRITERS and not covers:
            self.guarded_places(words, call, shown_text)
        if base not in SILENT:
            self.globbed_options(words, call, shown_text)
        if base not in LOOKERS or base in ("cat", "xargs", "awk", "sed"):
            self.renamed_program(words, shown_text)
        if base not in TEXTUAL and wrapper is None and canonical(name) not in TEXTUAL:
            self.hidden_command(words, shown_text)
        if wrapper is not None and wrapper[0] and any(effect.kind not in ("read", "acts") for effect in effects):
            return
        if rule is not None:
            self.add(shown_text, "allow", f"allowed by {rule.text}", rule.text)
        elif base in script.functions:
            self.add(shown_text, "allow", "a function of this script, judged where it is defined")
        elif base in FURNITURE and "/" not in base:
            self.furniture(base, words, shown_text)
        elif wrapper is not None and wrapper[0]:
            self.add(shown_text, "allow", f"{base} alone runs nothing")
        elif self.looks(base, words, effects, call):
            self.add(shown_text, "allow", "only looks, inside the workspace")
        else:
            reads = base in LOOKERS and not open_questions
            why = f"no rule allows {base} to read outside the workspace" if reads else f"no rule allows {base}"
            self.default(shown_text, why, None if elsewhere else self.offer(words, open_questions))

    def allowed_by(self, words: Sequence[Word]) -> Rule | None:
        forms = [words]
        if words[0].text is not None and os.path.basename(words[0].text) == "git":
            forms.append(strip_globals(words))
        return next(
            (rule for rule in self.bash["allow"] if rule.pattern is None or any(allows(rule, f) for f in forms)), None
        )

    def names_inner(self, rule: Rule) -> bool:
        """A rule such as `sudo apt *` names what is run; `sudo *` does not."""
        if rule.pattern is None:
            return False
        pattern = rule.words()
        first = pattern[0].literal or ""
        if first not in ("sudo", "doas", "ssh", "docker", "podman", "npx", "uvx", "bunx", "kubectl"):
            return False
        return len(pattern) > 2 and pattern[1].literal is not None and not pattern[1].literal.startswith("-")

    def ruled(
        self, words: Sequence[Word], text: str, *, acts: str = "", call: Call | None = None, whole: bool = False
    ) -> bool:
        """Deny and ask rules; True where one of them decided for sure. `acts`: why a command counts as these words;
        `whole`: the words are all of `call`, whose input may be one more."""
        name = words[0].text
        forms: list[Sequence[Word]] = [words]
        if call is not None and whole:
            given = [redirect.target for redirect in call.redirects if redirect.operator == "<"]
            forms += [[*words, *given]] if given else []
        if name is not None:
            same = canonical(name)
            if same != name:
                forms.append([known(same), *words[1:]])
            base = os.path.basename(name)
            if base == "git":
                forms.append(strip_globals(words))
            elif base.startswith("git-") and len(base) > 4:
                forms.append([known("git"), known(base[4:]), *words[1:]])
            forms += other_spellings(words)
        for decision in ("deny", "ask"):
            for rule in self.bash[decision]:
                if rule.pattern is None or (rule.pattern == "env" and _runs_through_env(words)):
                    continue
                if name is not None and words[0].glob:
                    first = rule.words()[0].literal or ""
                    if fnmatch.fnmatchcase(first, os.path.basename(name)):
                        self.add(
                            text, decision, f"{words[0].raw} may be {first}, which {rule.text} is about", rule.text
                        )
                        return True
                    continue
                called = rule.words()[0].literal
                if called is not None and name is not None and canonical(called) == canonical(name):
                    spelled = [*forms, [known(called), *words[1:]]]
                else:
                    spelled = forms
                found = [forbids(rule, form) for form in spelled]
                if call is not None and "yes" not in found:
                    found += [forbids_at(rule, form, call.cwds) for form in spelled]
                if "yes" in found and not acts:
                    said = "denied by" if decision == "deny" else "the user wants to be asked:"
                    self.add(text, decision, f"{said} {rule.text}", rule.text)
                    return True
                if acts and ("yes" in found or "maybe" in found):
                    self.add(text, "ask", f"{acts}, and there is the rule {rule.text}", rule.text)
                    return True
                if "maybe" in found and name is not None:
                    self.doubt(text, f"it may be what {rule.text} is about, once its words are known")
        return False

    def effects(
        self,
        effects: Sequence[Effect],
        words: Sequence[Word],
        rule: Rule | None,
        covers: bool,
        call: Call,
        script: Script,
        depth: int,
        text: str,
    ) -> bool:
        """Judge what a command does besides its own work. True where something of it is left to be asked."""
        spelled = {word.literal for word in rule.words()} if rule is not None and rule.pattern is not None else set()
        before = len(self.parts)
        for effect in effects:
            if effect.kind == "read":
                for target in effect.words:
                    self.read(target, call, text)
            elif effect.kind == "acts":
                first = effect.words[0].text if effect.words else None
                assigned = re.match(
                    r"([A-Za-z_]\w*)=(.*)", first or effect.words[0].head if effect.words else "", re.DOTALL
                )
                if assigned is not None:
                    if is_dangerous_name(assigned[1]) and not is_safe_value(assigned[1], known(assigned[2])):
                        self.doubt(text, f"setting {assigned[1]} can change what is run")
                elif effect.words:
                    self.ruled(effect.words, text, acts=effect.why)
            elif effect.kind == "doubt":
                if call.given is not None and effect.option == "<sh":
                    self.script(call.given, call.cwds, script.variables, depth + 1)
                    continue
                if call.given is not None and effect.option == "<python":
                    files = python_files(call.given)
                    for file in files or ():
                        self.read(known(file), call, text)
                    if files is not None:
                        continue
                if not covers and effect.option not in spelled:
                    self.doubt(text, effect.why, self.offer(words, True))
            elif effect.kind == "file":
                self.script_file(effect.words[0], call, script, depth, text)
            elif effect.kind == "write":
                self.write(effect.words[0], call, text, granted=covers or effect.option in spelled)
            elif not effect.words:
                self.doubt(text, f"{effect.why} runs nothing that can be seen")
            else:
                start = len(self.parts)
                if effect.kind == "script":
                    given = effect.words[0]
                    if given.text is None:
                        self.doubt(text, f"{effect.why} runs a text that is not known before it runs", None)
                    else:
                        moves = effect.why == "trap" and re.search(r"\b(cd|pushd|popd)\b", self.command)
                        # a trap runs later, wherever the shell is by then
                        self.script(given.text, (*call.cwds, *((None,) if moves else ())), script.variables, depth + 1)
                else:
                    self.words(effect.words, call, script, depth + 1, through=effect.why)
                if covers and rule is not None:
                    told = {r.text for r in self.rules.ask}
                    self.parts[start:] = [
                        part
                        if part.decision != "ask" or part.rule in told
                        else Part(part.text, "allow", f"allowed by {rule.text}", rule.text)
                        for part in self.parts[start:]
                    ]
        return any(part.decision == "ask" for part in self.parts[before:])

    def script_file(
        self, target: Word, call: Call, script: Script, depth: int, text: str, *, shebang: bool = False
    ) -> None:
        """A shell script that is run from a file: what is denied in it is denied, as far as it can be read now."""
        path = target.text
        if path is None:
            for each in target.choices:
                self.script_file(each, call, script, depth, text, shebang=shebang)
            if not target.choices:
                self.doubt(text, f"which script {target.raw} is, is not known")
            return
        if {*path.split("/"), "*"} & self.changed or os.path.basename(path) in self.written:
            self.doubt(text, f"{path} is written and run in one go")
            return
        for cwd in call.cwds:
            place = self.place(target, cwd)
            try:
                with open(place.real if place is not None else "/dev/null", "rb") as file:
                    source = file.read(100_001) if os.path.isfile(file.name) else b""
            except OSError:
                continue
            if not source or len(source) > 100_000 or b"\0" in source:
                continue
            if shebang and not re.match(rb"#!.*sh\b", source):
                continue
            start = len(self.parts)
            self.script(source.decode("utf-8", "replace"), call.cwds, {}, depth + 1)
            told = {rule.text for rule in self.rules.ask}
            self.parts[start:] = [part for part in self.parts[start:] if part.decision == "deny" or part.rule in told]

    def offer(self, words: Sequence[Word], exactly: bool) -> str | None:
        """The rule that would allow a command from now on: broad for what is usual, word for word for what is not."""
        name = words[0].text
        if name is None:
            return None
        shape = strip_globals(words) if os.path.basename(name) == "git" and not exactly else list(words)
        if exactly or name in _EXACTLY:
            if any(word.text is None or word.glob for word in words):
                return None
            return format_rule("bash", " ".join(quote_word(word.text or "") for word in words))
        head = [name]
        if name in _SUBCOMMANDS and len(shape) > 1:
            verb = shape[1].text
            if verb is None or shape[1].glob or not re.fullmatch(r"[A-Za-z][\w:.-]*", verb):
                return self.offer(words, True)
            head.append(verb)
            if verb in ("run", "exec") and len(shape) > 2 and re.fullmatch(r"[\w:.-]+", shape[2].text or "-!"):
                head.append(shape[2].text or "")
        return format_rule("bash", " ".join(quote_word(each) for each in head) + " *")

    def furniture(self, base: str, words: Sequence[Word], text: str) -> None:
        given = [word.text for word in words[1:]]
        if base == "shopt" and any(each is None or "alias" in each or each == "extdebug" for each in given):
            self.doubt(text, "aliases can make a word mean another command")
        elif base in ("export", "declare", "typeset") and any(
            each is not None and re.fullmatch(r"-\w*[fn]\w*", each) for each in given
        ):
            self.doubt(text, "an exported function can take the place of a command")
        elif base == "unset" and any(each is None or is_dangerous_name(each) for each in given):
            self.doubt(text, "what it unsets can change what is run")
        elif base == "let" and any(each is None or re.search(r"[\[$`]", each) for each in given):
            self.doubt(text, "let evaluates what it is given")
        else:
            self.add(text, "allow", "changes only the shell that runs it")

    def looks(self, base: str, words: Sequence[Word], effects: Sequence[Effect], call: Call) -> bool:
        """Whether a command may run without a rule: on the list, and nothing it names lies outside the workspace."""
        if base == "git":
            if not git_only_looks(strip_globals(words)):
                return False
        elif base not in LOOKERS:
            return False
        if any(effect.kind in ("doubt", "write", "acts") for effect in effects):
            return False
        if any(cwd is None or not self.inside(cwd, cwd) for cwd in call.cwds):
            return False
        if any(re.fullmatch(_FOLLOWS.get(base, "(?!)"), word.text or "") for word in words[1:]):
            return False
        reads = [redirect.target for redirect in call.redirects if redirect.operator.startswith("<")]
        if base in SILENT:
            return all(self.stays(word, call) for word in reads)
        return all(self.stays(word, call) for word in [*words[1:], *reads])


def _runs_through_env(words: Sequence[Word]) -> bool:
    """Whether `env` runs a command; a rule about `env` alone is about what it shows."""
    return (
        words[0].text is not None
        and os.path.basename(words[0].text) == "env"
        and bool((wrapped(words, "env") or (0,))[0])
    )


def _operators_tight(text: str) -> str:
    """A command line without the blanks around its operators, and single ones elsewhere."""
    return re.sub(r"\s*([|<>;&]+)\s*", r"\1", re.sub(r"\s+", " ", text)).strip()
