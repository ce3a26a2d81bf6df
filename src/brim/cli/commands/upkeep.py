"""`brim gc` and `brim doctor`: keeping the store small, and finding out what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from brim.cli.commands.kept import Place

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SIZES = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def gc(
    max_age: Annotated[
        str | None,
        typer.Option("--max-age", help="Delete sessions unused for so long, for example 90d or 12w.", metavar="TIME"),
    ] = None,
    max_bytes: Annotated[
        str | None,
        typer.Option(
            "--max-size", help="Delete the oldest until the rest is no larger, for example 2G.", metavar="SIZE"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Delete what is not kept: originals that no session uses any more; with options, or max_age and max_size
    of the config, old sessions, too."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import say, say_json, size

    place = place_of()
    age = _seconds(max_age or place.config.get("max_age"))
    most = _bytes(max_bytes or place.config.get("max_size"))
    with open_kept(place) as store:
        done = store.gc(max_age=age, max_bytes=most)
    if as_json:
        say_json(done)
        return
    in_use = f"; {done.kept_in_use} sessions were due but are in use" if done.kept_in_use else ""
    say(
        f"deleted {done.sessions} sessions and {done.originals} originals; freed {size(max(0, done.freed))}, "
        f"{size(done.left)} left{in_use}"
    )


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `status`: ok, note (fine, but worth knowing) or bad; `hint`: the next step."""

    check: str
    status: str
    found: str
    hint: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Look at everything brim needs and say what is missing. Shows which keys are set, never the keys. Exit code 1 where
    something is wrong."""
    from brim.cli.commands.shown import say, say_json

    findings = list(examine())
    if as_json:
        say_json(findings)
    else:
        say("\n".join(told_finding(each) for each in findings))
    if any(each.status == "bad" for each in findings):
        raise typer.Exit(1)


def told_finding(finding: Finding) -> str:
    """A finding as lines that fit the terminal."""
    import shutil
    import textwrap

    width = max(40, shutil.get_terminal_size((100, 24)).columns - 1)
    mark = {"ok": "ok", "note": "-", "bad": "BAD"}[finding.status]
    head, rest = f"{mark:<4}{finding.check:<10}", " " * 14
    lines = textwrap.wrap(finding.found, width, initial_indent=head, subsequent_indent=rest, break_on_hyphens=False)
    if finding.hint:
        lines += textwrap.wrap(
            finding.hint, width, initial_indent=f"{rest}→ ", subsequent_indent=f"{rest}  ", break_on_hyphens=False
        )
    return "\n".join(lines)


def examine() -> Iterator[Finding]:
    """All findings, in order. What fails is a finding, too."""
    import platform
    import sys

    from brim import __version__
    from brim.cli.commands.kept import place_of
    from brim.errors import BrimError

    yield Finding(
        "brim", "ok", f"{__version__}, Python {platform.python_version()} ({sys.executable}), {platform.platform()}"
    )
    try:
        place = place_of()
    except BrimError as error:
        yield Finding("settings", "bad", error.message, error.hint or "")
        return
    files = ", ".join(str(each) for each in place.config.files) or "no file; defaults"
    yield Finding("settings", "note" if place.config.warnings else "ok", files, "; ".join(place.config.warnings))
    for look in (_keys, _model, _engine, _tokens, _store, _ripgrep, _sandbox, _mcp):
        try:
            yield from look(place)
        except BrimError as error:
            yield Finding(look.__name__.strip("_"), "bad", error.message, error.hint or "")


def _keys(place: Place) -> Iterator[Finding]:
    from brim.providers import PRESETS
    from brim.providers.presets import own_providers

    names = [
        f"{variable} ({name})"
        for name, preset in PRESETS.items()
        for variable in preset.key_env
        if place.env.get(variable, "").strip()
    ]
    for name, own in own_providers(place.config.providers()).items():
        given = [own.key_env] if isinstance(own.key_env, str) else own.key_env or []
        if own.key:
            names.append(f"a key in [providers.{name}]")
        names += [f"{variable} ([providers.{name}])" for variable in given if place.env.get(variable, "").strip()]
    how = "export OPENAI_API_KEY=… or another vendor's, or put it into .env; a local model needs none"
    yield Finding("keys", "ok" if names else "note", ", ".join(names) or "none set", "" if names else how)


def _model(place: Place) -> Iterator[Finding]:
    import asyncio

    from brim.agent.opening import choose_model
    from brim.agent.session import prices_for
    from brim.budget import window_of
    from brim.providers.local import DEFAULT_WINDOW
    from brim.providers.presets import LOCAL

    model = asyncio.run(choose_model(place.config, place.env))
    window, assumed = window_of(model.model, DEFAULT_WINDOW if model.provider == LOCAL else model.window)
    said = f"{model.full_name}, window {window:,}{' (assumed)' if assumed else ''}"
    if model.base_url:
        said += f", at {model.base_url}"
    if prices_for(model, place.config.prices()) is None and model.provider != LOCAL:
        said += ", price unknown"
    yield Finding("model", "note" if model.note else "ok", said, model.note or "")


def _engine(place: Place) -> Iterator[Finding]:
    import importlib.util

    from brim.providers.models import list_models

    here = [row.name for row in list_models() if row.path]
    if importlib.util.find_spec("xllamacpp") is None:
        yield Finding("embedded", "note", "llama.cpp is not installed", "pipx install 'brim[local]' brings it")
    elif not here:
        yield Finding("embedded", "note", "llama.cpp is here, no model is", "brim models pull smollm2")
    else:
        yield Finding("embedded", "ok", f"llama.cpp and {', '.join(here)}")


def _tokens(place: Place) -> Iterator[Finding]:
    from brim.tokens import counter_for

    named = place.config.get("model")
    counter = counter_for(named)
    tokens = counter.count_text("Fill a window to the brim 搜索")
    exact = "the model's own" if counter.exact else "not the model's own: margins and calibration cover the difference"
    whose = f" for {named}" if named else " where a model is not known (the embedded one brings its own)"
    yield Finding("tokens", "ok" if tokens > 0 else "bad", f"{counter.name}{whose}: {exact}")


_ELSEWHERE = "make room or the folder writable, or set BRIM_DATA_DIR to another one; --no-session runs without saving"
_LITTLE = 10_000_000
"""Bytes of free disk below which a session may soon not be kept."""


def _unwritable(folder: Path) -> str | None:
    """Why nothing more can be kept in a folder, one that may still have to be made; None where it can."""
    import os
    import shutil

    from brim.cli.commands.shown import size

    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} is read-only"
    free = shutil.disk_usage(folder).free
    return f"only {size(free)} are free on its disk" if free < _LITTLE else None


def _store(place: Place) -> Iterator[Finding]:
    from pathlib import Path

    from brim.cli.commands.shown import size
    from brim.errors import StoreError
    from brim.store import data_dir, open_store

    named = place.config.get("store")
    path = Path(named or data_dir() / "brim.db").expanduser() if "://" not in (named or "") else None
    if path is not None and not path.exists():
        if why := _unwritable(path.parent):
            yield Finding("sessions", "bad", f"they cannot be kept in {path}: {why}", _ELSEWHERE)
        else:
            yield Finding("sessions", "ok", f"none yet; they will be kept in {path}")
        return
    with open_store(named) as store:
        count = len(store.list_sessions(None, 1_000_000, archived=True))
        space = f", {size(path.stat().st_size)}" if path is not None else ""
        found = f"{store.where}: {count:,} session{'' if count == 1 else 's'}{space}"
        damage, hint = store.damage, "brim sessions export saves what is there; then move the file away"
        try:
            with store.writing():
                pass
        except StoreError as error:
            damage, hint = damage or error.message, error.hint or hint
    if damage:
        yield Finding("sessions", "bad", damage, hint)
    elif path is not None and (why := _unwritable(path.parent)):
        yield Finding("sessions", "bad", f"{found}; {why}", _ELSEWHERE)
    else:
        yield Finding("sessions", "ok", found)


def _ripgrep(place: Place) -> Iterator[Finding]:
    import subprocess

    from brim.tools.ripgrep import find_ripgrep

    program = find_ripgrep()
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        yield Finding("ripgrep", "bad", f"{program} does not run: {error}", "pip install --force-reinstall ripgrep")
        return
    yield Finding("ripgrep", "ok", f"{told.splitlines()[0]} ({program})")


def _sandbox(place: Place) -> Iterator[Finding]:
    from brim.permissions.sandbox import probe

    tried = probe()
    if tried.bwrap is None:
        yield Finding("sandbox", "note", f"commands run without one: {tried.why}")
    else:
        yield Finding("sandbox", "ok", f"bubblewrap ({tried.bwrap})")


def _mcp(place: Place) -> Iterator[Finding]:
    import importlib.util

    configured = [name for name, each in place.config.mcp().servers.items() if each.enabled]
    if importlib.util.find_spec("mcp") is None:
        status = "bad" if configured else "note"
        yield Finding("mcp", status, "the MCP client is not installed", "pip install 'brim[mcp]' brings it")
        return
    named = ", ".join(configured)
    yield Finding(
        "mcp", "ok", f"configured: {named}; brim mcp list starts them" if named else "no server is configured"
    )


def _seconds(text: str | None) -> float | None:
    from brim.errors import UsageError

    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", text)
    if found is None:
        raise UsageError(f"--max-age is {text!r}", hint="a number and s, m, h, d or w, for example 90d")
    return float(found[1]) * _UNITS[found[2]]


def _bytes(text: str | None) -> int | None:
    from brim.errors import UsageError

    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)b?\s*", text.lower())
    if found is None:
        raise UsageError(f"--max-size is {text!r}", hint="bytes, or a number with k, M or G, for example 2G")
    return int(float(found[1]) * _SIZES[found[2]])
