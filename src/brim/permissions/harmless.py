"""What runs in the workspace without a rule: commands that only look, and the shell's own furniture.

A short list on purpose. Programs on it still have their options examined; a path that leads out of the workspace, and a
folder that is not known, make it a question.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from brim.permissions.words import Word, names

FURNITURE = names(
    ": true false test [ cd pushd popd dirs exit return break continue wait shift set shopt local export declare"
    " readonly typeset read unset jobs sleep let getopts times type umask mapfile readarray caller ulimit disown"
)
"""Builtins that change nothing but the shell that runs them. Names of variables they set are judged elsewhere."""

SILENT = names("echo printf test [ seq expr basename dirname true false : type which sleep exit return")
"""Commands that read no file: what their arguments are does not matter."""

PATHLESS = SILENT | names("kill pkill killall wait jobs fg bg renice")
"""Commands that read no file, and write none."""
NAMING = names("ls du stat file realpath readlink find tree test [ touch mkdir")
"""Commands that tell or use the names of files, not what is in them."""

LOOKERS = (
    names(
        "ls pwd cat head tail wc grep egrep fgrep rg find fd tree stat file du sort uniq cut tr nl tac rev column"
        " paste join comm fold fmt expand unexpand diff cmp md5sum sha1sum sha224sum sha256sum sha384sum sha512sum"
        " b2sum cksum sum realpath readlink date whoami id uname nproc arch jq od hexdump xxd strings sed awk xargs"
        " zcat bzcat xzcat df uptime locale getconf tsort look cal"
    )
    | SILENT
)

_GIT_LOOKS = names(
    "status diff log show rev-parse ls-files blame annotate describe shortlog ls-tree cat-file merge-base"
    " rev-list name-rev grep count-objects for-each-ref show-ref diff-tree diff-index diff-files whatchanged"
    " range-diff check-ignore check-attr cherry show-branch version var verify-commit"
)
_GIT_LISTS = {
    "branch": re.compile(
        r"-a|-r|-v+|--all|--remotes|--list|-l|--show-current|--contains|--merged|--no-merged|--sort=.*|--format=.*"
    ),
    "tag": re.compile(r"-l|--list|-n\d*|--sort=.*|--contains|--points-at|--merged"),
    "remote": re.compile(r"-v|--verbose|get-url|show"),
    "stash": re.compile(r"list|show|-p|--stat"),
    "config": re.compile(r"--get|--get-all|--list|-l|--show-origin|get|list"),
    "worktree": re.compile(r"list|--porcelain"),
    "reflog": re.compile(r"show|-n|\d+"),
    "submodule": re.compile(r"status|summary"),
    "notes": re.compile(r"list|show"),
    "bisect": re.compile(r"log"),
}
_MUST_LIST = {"stash", "worktree", "submodule", "bisect", "notes", "config"}

TEXTUAL = LOOKERS | names(
    "git touch mkdir cp mv ln tee export apt apt-get dnf yum brew dpkg apk pacman pip pip3 man help info whereis"
    " python python3 read set printenv pytest chmod chown kill ps tar zip unzip curl wget logger notify-send say"
)
"""Commands that do not run the words they are given, so that a word like `rm` among them is only a word."""

_DANGEROUS_NAMES = re.compile(
    r".*(PATH|PRELOAD|PAGER|EDITOR|VISUAL|SHELL|OPTIONS|OPTS|FLAGS|COMMAND|BROWSER|ASKPASS|PROXY|_RC|RCFILE|HOOK|WRAPPER"
    r"|LAUNCHER|STARTUP|INIT|CONFIG|EXEC|LOADER|_RSH|_SSH|_CMD|HOMEDIR|MODULES|PLUGINS?)"
    r"|(GIT|LD|DYLD|BASH|ZSH|SSH|PYTHON|PERL5?|RUBY|NODE|NPM|YARN|JAVA|JDK|MAVEN|GRADLE|CARGO|RUST|GO|PIP|UV|DOCKER|MAN|LESS"
    r"|TAR|GREP|RSYNC|RIPGREP|XDG|GCONV|GLIBC|MALLOC|SUDO|KUBE|AWS|AZURE|GOOGLE|BRIM|PS)_?[A-Z0-9_]*"
    r"|IFS|ENV|HOME|PS[0-4]|CC|CXX|LD|AR|AS|FC|TMPDIR|TERMINFO.*|TERMCAP|LOCPATH|NLSPATH|LESS|GZIP|XZ_.*|ZIP.*|UNZIP|MAKE.*"
    r"|MFLAGS|CDPATH|GLOBIGNORE|FIGNORE|HISTFILE|OLDPWD|PWD|BASH.*|FPATH|ZDOTDIR|GETOPT.*|POSIXLY_CORRECT|npm_config_.*"
    r"|https?_proxy|all_proxy|ftp_proxy",
)
_SAFE_NAMES = re.compile(
    r"PYTHON(UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8|HASHSEED|FAULTHANDLER|OPTIMIZE)|NODE_ENV|RUST_(BACKTRACE|LOG)"
    r"|CARGO_(TERM_COLOR|INCREMENTAL)|GO(OS|ARCH|MAXPROCS)|GIT_(TERMINAL_PROMPT|OPTIONAL_LOCKS|(AUTHOR|COMMITTER)_\w+|MERGE_AUTOEDIT)"
    r"|GREP_COLORS?|DOCKER_BUILDKIT|AWS_(PROFILE|REGION|DEFAULT_REGION)|PIP_(NO_CACHE_DIR|DISABLE_PIP_VERSION_CHECK|QUIET)"
)


def is_dangerous_name(name: str) -> bool:
    """Whether setting a variable changes which programs run, or what they run."""
    return _SAFE_NAMES.fullmatch(name) is None and _DANGEROUS_NAMES.fullmatch(name) is not None


_SHELL_NAMES = re.compile(
    r"PATH|IFS|ENV|HOME|PWD|OLDPWD|PS[0-4]|PROMPT_COMMAND|CDPATH|GLOBIGNORE|FIGNORE|FPATH|ZDOTDIR|SHELL|SHELLOPTS|EDITOR|VISUAL"
    r"|PAGER|BASH.*|LD_.*|DYLD_.*|GIT_.*|TMPDIR|HIST.*|POSIXLY_CORRECT|LANG|LC_.*"
)


def is_of_the_shell(name: str) -> bool:
    """Whether a variable that is set but not exported can change what is run: one the shell itself reads, or one that is
    in the environment and so stays exported."""
    return (_SHELL_NAMES.fullmatch(name) is not None and is_dangerous_name(name)) or (
        name in os.environ and is_dangerous_name(name)
    )


_SAFE_VALUES = {
    "PYTHONPATH": re.compile(r"(?:(?![/~-])[\w./-]*(?::(?=.)|$))*"),
    "MAKEFLAGS": re.compile(r"-j\d*|-[skB]"),
    "NODE_OPTIONS": re.compile(r"--max-old-space-size=\d+|--no-warnings|--enable-source-maps"),
    "RUSTFLAGS": re.compile(r"-D warnings|-Dwarnings"),
    "GOFLAGS": re.compile(r"-mod=(mod|vendor|readonly)|-count=1"),
}
_COMPILERS = re.compile(r"(cc|gcc|g\+\+|c\+\+|clang|clang\+\+)(-\d+)?")
_FLAGS = re.compile(r"-[A-Za-z][\w=.-]*( -[A-Za-z][\w=.-]*)*")


def is_safe_value(name: str, word: Word) -> bool:
    """`PAGER=cat`, `GIT_EDITOR=true`, `CC=clang` and an empty value run nothing that was not meant."""
    text = word.text
    if text is None:
        return False
    if name in _SAFE_VALUES:
        return _SAFE_VALUES[name].fullmatch(text) is not None and ".." not in text
    if name in ("CC", "CXX"):
        return _COMPILERS.fullmatch(text) is not None
    if name in ("CFLAGS", "CXXFLAGS", "LDFLAGS", "CPPFLAGS"):
        return _FLAGS.fullmatch(text) is not None and not re.search(r"-(B|wrapper|fplugin|specs|fuse)", text)
    return (text in ("cat", "true", ":", "") and name.endswith(("PAGER", "EDITOR"))) or (
        text == "" and name not in ("PATH", "IFS")
    )


_USUAL_FOLDER = re.compile(
    r"\$PATH|\$\{PATH\}|/usr/local/(go/)?s?bin|/usr/s?bin|/s?bin|/opt/homebrew/s?bin"
    r"|(\$HOME|\$\{HOME\}|~|\$PWD|\$\{PWD\}|\$\(pwd\)|\.)/(\.cargo|\.local|go|\.bun|\.deno|\.npm-global|\.yarn|\.poetry|node_modules/\."
    r"|\.?venv/)/?bin"
)


def is_usual_path(word: Word) -> bool:
    """Whether a PATH only gains folders where programs are usually installed."""
    folders = re.sub(r"^([\"']?)(.*)\1$", r"\2", word.raw).split(":")
    return any("PATH" in folder for folder in folders) and all(_USUAL_FOLDER.fullmatch(folder) for folder in folders)


def git_only_looks(words: Sequence[Word]) -> bool:
    """Whether a git command (global options stripped) only lists something."""
    if len(words) < 2 or words[1].text is None:
        return len(words) == 1
    verb = words[1].text
    if verb in ("--version", "--help"):
        return True
    if verb in _GIT_LOOKS:
        return not any(word.text == "--no-index" for word in words)
    pattern = _GIT_LISTS.get(verb)
    if pattern is None:
        return False
    rest = words[2:]
    if verb in _MUST_LIST and not (rest and rest[0].text is not None and pattern.fullmatch(rest[0].text)):
        return False
    return all(
        word.text is not None and (pattern.fullmatch(word.text) or _is_value(verb, rest, i))
        for i, word in enumerate(rest)
    )


def _is_value(verb: str, rest: Sequence[Word], position: int) -> bool:
    """A name after something that lists: `--contains HEAD`, `stash show stash@{0}`, `config --get user.name`."""
    text = rest[position].text or ""
    if text.startswith("-"):
        return False
    before = {word.text for word in rest[:position]}
    return bool(before & {"--contains", "--merged", "--no-merged", "-l", "--list", "--points-at", "show", "get-url", "--get",
                          "--get-all", "get", "list"}) and verb != "notes"  # fmt: skip
