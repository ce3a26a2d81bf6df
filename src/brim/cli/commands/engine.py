"""`brim prepare`, `brim count`, `brim explain`: the context engine over stdin and stdout, and its reasons afterwards."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from brim.context import Prepared
    from brim.store import Record, Store

_API = typer.Option(
    "--api", help="The format of the request.", metavar="openai.chat|openai.responses|anthropic.messages"
)
_JSON = typer.Option("--json", help="As JSON.")


def prepare(
    api: Annotated[str, _API] = "openai.chat",
    mode: Annotated[str, typer.Option("--mode", help="What may go, and when.", metavar="full|compact|auto")] = "auto",
    window: Annotated[
        int | None, typer.Option("--window", help="The model's window; default: its own.", metavar="TOKENS")
    ] = None,
    max_output: Annotated[
        int | None,
        typer.Option(
            "--max-output", min=1, help="Reserved for the reply; default: what the request says.", metavar="TOKENS"
        ),
    ] = None,
    previous: Annotated[
        Path | None, typer.Option("--previous", help="The plan of the request before.", metavar="FILE")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Write the plan here, for --previous next time.", metavar="FILE")
    ] = None,
    now: Annotated[
        float | None,
        typer.Option("--now", help="The time, in Unix seconds; without it nothing ages.", metavar="SECONDS"),
    ] = None,
    recall_tool: Annotated[
        bool, typer.Option("--recall-tool", help="Offer the model a tool that fetches originals.")
    ] = False,
    settings: Annotated[
        str | None, typer.Option("--settings", help="Settings as a JSON object.", metavar="JSON")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("-s", help="One setting; may be repeated.", metavar="KEY=VALUE", show_default=False),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Body, plan, bill and report as one JSON object on stdout.")
    ] = False,
) -> None:
    """Read a whole request body on stdin; write the body to send on stdout, and what was done on stderr.

    Nothing but the options counts: no configuration is read. Exit code 3 where what cannot go exceeds the window.
    """
    from brim.cli.commands.shown import note, say_json
    from brim.context import prepare as prepare_request

    given = _settings(settings, setting or [])
    before = _read_plan(previous)
    body = read_request("prepare")
    prepared = prepare_request(
        body, api, mode, window, max_output, before, now, recall_tool=recall_tool, settings=given
    )
    if plan is not None:
        _write_plan(plan, prepared)
    if as_json:
        say_json(
            {
                "request": prepared.request,
                "changed": prepared.changed,
                "used": prepared.used,
                "bill": prepared.bill,
                "report": prepared.report,
                "plan": prepared.plan,
            }
        )
        return
    say_json(prepared.request)
    note(describe(prepared))


def count(
    api: Annotated[str, _API] = "openai.chat",
    text: Annotated[bool, typer.Option("--text", help="Stdin is plain text, not a request.")] = False,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Whose tokens; default: the request's.", metavar="NAME")
    ] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Count the tokens of a request body on stdin: messages, tool definitions and reply priming."""
    from brim.cli.commands.shown import say, say_json
    from brim.context import count as count_request
    from brim.tokens import counter_for

    if text:
        counter = counter_for(model)
        tokens = counter.count_text(sys.stdin.buffer.read().decode("utf-8", "replace"))
    else:
        body = read_request("count")
        named = model or body.get("model")
        counter = counter_for(named if isinstance(named, str) else None)
        tokens = count_request(body, api, counter=counter)
    if as_json:
        say_json({"tokens": tokens, "counter": counter.name, "exact": counter.exact})
    else:
        say(str(tokens))


def explain(
    session: Annotated[
        str | None,
        typer.Argument(
            help="A session, by the beginning of its id; default: the latest of this folder.", metavar="[SESSION]"
        ),
    ] = None,
    request: Annotated[
        int | None, typer.Option("--request", "-n", help="The N-th request of it; default: the last.", metavar="N")
    ] = None,
    every: Annotated[bool, typer.Option("--list", help="List its requests.")] = False,
    bill: Annotated[bool, typer.Option("--bill", help="With the bill.")] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Why each message of a request is where it is: kept, trimmed, stubbed, folded or dropped, by which rule."""
    from brim.cli.commands.kept import open_kept, place_of
    from brim.cli.commands.shown import note, say, say_json
    from brim.errors import UsageError

    place = place_of()
    with open_kept(place) as store:
        found = store.find_session(session, None if session is not None else str(place.folder))
        records = store.requests(found.id)
        if every:
            _list_requests(records, as_json)
            return
        if not records:
            raise UsageError(f"session {found.short} has no request yet", hint='ask something: ai -c "…"')
        number = len(records) if request is None else request
        if not 1 <= number <= len(records):
            raise UsageError(f"no request {number}", hint=f"session {found.short} has requests 1 to {len(records)}")
        record = records[number - 1]
        values = plan_of(store, found.id, records[:number])
        if as_json:
            say_json({"session": found.id, "request": number, **_record(record), "bill": record.bill, "plan": values})
            return
        note(f"session {found.short} “{found.title or ''}”, request {number} of {len(records)}")
        say(in_words(store, found.id, record, values))
        if bill and record.bill is not None:
            from brim.budget import render_bill

            say("\n" + render_bill(record.bill))


# ---- prepare and count ---------------------------------------------------------------------------------------------


def read_request(command: str) -> dict[str, Any]:
    """The JSON object on stdin. Raises UsageError: none there, no JSON (with line and column), no object."""
    from brim.errors import UsageError

    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("no request on stdin", hint=f"brim {command} < request.json")
    try:
        body = json.loads(sys.stdin.buffer.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is not UTF-8: {error.reason} at byte {error.start}", hint="send UTF-8 text") from error
    except json.JSONDecodeError as error:
        raise UsageError(
            f"stdin is no JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            hint="give a whole request body, as the provider takes it",
        ) from error
    except RecursionError as error:
        raise UsageError("stdin is nested too deeply", hint="give a request body") from error
    if not isinstance(body, dict):
        raise UsageError(
            f"stdin is a JSON {_kind(body)}, not an object",
            hint='give a whole request body: {"model": …, "messages": […]}',
        )
    return body


def describe(prepared: Prepared) -> str:
    """What was done, in words and with the bill."""
    from brim.budget import render_bill
    from brim.cli.output import describe_pass

    plan = prepared.as_plan()
    head = f"mode {plan.mode}, epoch {plan.epoch} ({plan.cause}): " + ("changed" if prepared.changed else "unchanged")
    return "\n".join([head, *(f"  {describe_pass(line)}" for line in prepared.report), render_bill(prepared.bill)])


def _settings(text: str | None, pairs: list[str]) -> dict[str, Any]:
    from brim.errors import UsageError

    given: dict[str, Any] = {}
    if text is not None:
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"--settings is no JSON: {error.msg} at column {error.colno}") from error
        if not isinstance(value, dict):
            raise UsageError(
                f"--settings is a JSON {_kind(value)}, not an object", hint="--settings '{\"margin\": 0.05}'"
            )
        given.update(value)
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"-s {pair!r} is no KEY=VALUE", hint="for example -s compact_trigger_ratio=0.5")
        try:
            given[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            given[key.strip()] = None if value.strip().lower() in ("none", "off") else value
    return given


def _read_plan(path: Path | None) -> Any:
    from brim.errors import UsageError

    if path is None:
        return None
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="give the file that --plan wrote") from error
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}", hint="give the file that --plan wrote") from error
    # what `--json` printed is taken as well
    return value["plan"] if isinstance(value, Mapping) and "plan" in value and "line" not in value else value


def _write_plan(path: Path, prepared: Prepared) -> None:
    from brim.cli.commands.shown import as_json
    from brim.errors import UsageError

    try:
        path.write_text(as_json(prepared.plan) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="choose another --plan") from error


def _kind(value: object) -> str:
    names = {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


# ---- explain -------------------------------------------------------------------------------------------------------


def plan_of(store: Store, session: str, records: list[Record]) -> Any:
    """The plan after the last of these requests, put together from the changes that were stored with each."""
    from brim.store import apply_change

    plan: Any = store.last_plan(session, -1)  # what a copied session began with
    for record in records:
        if record.plan_change is not None:
            plan = apply_change(plan, record.plan_change)
    return plan


def in_words(store: Store, session: str, record: Record, values: Any) -> str:
    """The plan of a request, message by message. The system prompt is no part of a stored session; it is named so."""
    from brim.context import explain as explain_plan
    from brim.context.plan import plan_from
    from brim.conversation import system

    plan = plan_from(values)
    if plan is None:
        return "this request was recorded without a plan"
    stored = [each.message for each in store.load(session)]
    systems = next((line["count"] for line in (record.bill or {}).get("lines", ()) if line["kind"] == "system"), 0)
    kept = sum(message.role == "system" for message in stored[: plan.sent.count])
    lead = int(record.meta.get("lead", max(0, systems - kept)))  # older requests do not say it
    shown = [*(system("(the system prompt)") for _ in range(lead)), *stored]
    return explain_plan(plan, shown, lead=lead, pins={seq + lead for seq in record.meta.get("pins", ())})


def _list_requests(records: list[Record], as_json: bool) -> None:
    from brim.cli.commands.shown import say, say_json, table, when

    if as_json:
        say_json([{"request": number, **_record(each)} for number, each in enumerate(records, 1)])
        return
    rows = [
        (
            str(number),
            when(each.created),
            each.mode or "",
            each.model or "",
            f"{each.bill['used']:,}" if each.bill else "",
            f"{each.input:,}" if each.input is not None else "",
            f"{each.output:,}" if each.output is not None else "",
            each.error or each.finish or "",
        )
        for number, each in enumerate(records, 1)
    ]
    head = ("request", "made", "mode", "model", "billed", "in", "out", "ended")
    say(table(head, rows, right=("request", "billed", "in", "out")))


def _record(record: Record) -> dict[str, Any]:
    names = (
        "created", "mode", "model", "input", "cached_read", "cached_write", "output", "cost", "duration", "ttft", "finish",
        "error",
    )  # fmt: skip
    return {name: getattr(record, name) for name in names}
