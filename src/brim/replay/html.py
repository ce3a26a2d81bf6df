"""The report as one HTML file: tables and plots, the figures embedded as JSON, nothing loaded from anywhere.

There is no script in it. Colours follow the reader's dark or light preference. Every number of a table stands in the
JSON (`#figures`), and its cell carries the value as `data-value`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import msgspec

from brim.budget.bill import fit
from brim.replay import svg
from brim.replay.figures import Figures, plays_of
from brim.replay.play import Outcome
from brim.replay.table import NAME, count, every

MODES = ("full", "compact", "auto")
COLOURS = 8
"""Kinds of content that get a colour of their own; the rest is `other`."""


def render_html(figures: Figures) -> str:
    """The page. `figures` should have been summed with `Plays.series`, or the plots over a session are left out."""
    report = figures.report()
    timed = figures.report(times=True)
    groups = report["files"]
    whole = groups[-1]
    body = [
        "<h1>Replay of context policies</h1>",
        f"<p>{_told(whole)}{_pause(report)}. Costs are relative to sending everything; a request is supported where all "
        "that the recorded answer used of the history stood in view as it had stood before.</p>",
    ]
    for group, with_times in zip(reversed(groups), reversed(timed["files"]), strict=True):
        opened = " open" if group is whole else ""
        body.append(f"<details{opened}><summary><h2>{escape(group['file'])}</h2> <span>{_told(group)}</span></summary>")
        body += _group(group, with_times, report, figures.groups.get(group["file"]))
        body.append("</details>")
    data = _script("figures", report) + _script("times", _only_times(timed))
    return _PAGE.format(style=_STYLE, body="\n".join(body), data=data)


def _group(group: Mapping[str, Any], timed: Mapping[str, Any], report: Mapping[str, Any], sums: Any) -> Iterator[str]:
    regimes = [regime["name"] for regime in report["regimes"]]
    marks = _marks(group)
    yield "<h3>Cost against support</h3><div class='plots'>"
    for number, name in enumerate(regimes):
        dots = [
            svg.Dot(
                _short(policy["policy"]),
                price["supported"],
                price["cost"],
                marks[policy["policy"]],
                f"{policy['policy']}: cost {price['cost']:.3f}, supported {price['supported']:.3f}",
            )
            for policy in group["policies"]
            for price in [policy["prices"][number]]
        ]
        plot = svg.scatter(dots, x="share of requests supported", y="cost", even=1.0, most_x=1.0)
        yield f"<figure><figcaption>write/read {escape(name)}</figcaption>{plot}</figure>"
    yield "</div>"
    yield "<h3>Figures</h3>"
    yield from _table(group, timed, regimes)
    longest = getattr(sums, "longest", None)
    if longest is not None and longest.requests:
        yield from _session(longest, figures_regimes=report["regimes"], marks=marks)
    yield "<h3>What fills the window</h3>"
    yield from _fill(group, marks)
    yield "<h3>Where the cache broke, and why</h3>"
    yield from _breaks(group, regimes)


def _table(group: Mapping[str, Any], timed: Mapping[str, Any], regimes: Sequence[str]) -> Iterator[str]:
    yield "<div class='wide'><table class='figures'><thead><tr><th>policy</th><th>write/read</th>"
    columns = (
        ("cost", "cost", 3), ("supported", "supported", 3), ("tokens", "tokens", 3), ("peak", "peak tokens", 0),
        ("cached", "cached", 3), ("refetches", "refetches", 0), ("overflows", "overflows", 0), ("invalid", "invalid", 0),
    )  # fmt: skip
    yield (
        "".join(f"<th class='n'>{label}</th>" for _, label, _ in columns)
        + "<th class='n'>ms/request</th><th>worst conversation</th></tr></thead><tbody>"
    )
    for policy, clocked in zip(group["policies"], timed["policies"], strict=True):
        for number, name in enumerate(regimes):
            price = policy["prices"][number]
            cells = "".join(
                f"<td class='n' data-key='{key}' data-value='{price[key]}'>{price[key]:,.{digits}f}</td>"
                for key, _, digits in columns
            )
            worst = price["worst"]
            named = (
                f"<td data-key='worst' data-value='{worst['cost']}'>{worst['cost']:.2f} "
                f"<span title='{escape(worst['id'])}'>{escape(fit(worst['id'], NAME))}</span></td>"
                if worst
                else "<td>-</td>"
            )
            head = f"<th rowspan='{len(regimes)}'>{escape(policy['policy'])}</th>" if number == 0 else ""
            time = f"<td class='n'>{clocked['prices'][number]['planner_ms']:,.1f}</td>"
            row = f"<tr data-policy='{escape(policy['policy'])}' data-regime='{escape(name)}'>"
            yield f"{row}{head}<td>{escape(name)}</td>{cells}{time}{named}</tr>"
    yield "</tbody></table></div>"


def _session(outcome: Outcome, figures_regimes: Sequence[Mapping[str, Any]], marks: Mapping[str, str]) -> Iterator[str]:
    plays = plays_of(outcome, (), 0)
    shown = [name for name in plays if name == "everything" or marks.get(name) != "muted"] or list(plays)[:6]
    series = [
        svg.Series(
            _short(name), plays[name].series, marks.get(name, "muted"), [(n, why) for n, why in plays[name].broke]
        )
        for name in shown
        if plays[name].series
    ]
    where = f"{escape(outcome.id)}, {outcome.requests:,} requests, at {escape(figures_regimes[0]['name'])}"
    yield f"<h3>Context size over the longest session</h3><p>{where}</p>"
    yield "<div class='wide'>" + svg.lines(series, x="request", y="tokens") + "</div>"


def _fill(group: Mapping[str, Any], marks: Mapping[str, str]) -> Iterator[str]:
    base = group["policies"][0]["prices"][0]["filled"]
    kinds = sorted(base, key=lambda kind: (-base[kind], kind))[: COLOURS - 1]
    colours = {kind: f"c{n}" for n, kind in enumerate(kinds)}
    rows = []
    for policy in group["policies"]:
        filled = policy["prices"][0]["filled"]
        pieces = [(kind, filled.get(kind, 0), colours[kind]) for kind in kinds]
        rest = sum(tokens for kind, tokens in filled.items() if kind not in colours)
        rows.append(svg.Bar(_short(policy["policy"]), [*pieces, ("other", rest, "muted")]))
    yield _legend(kinds, colours, rows)
    yield "<div class='wide'>" + svg.bars(rows, unit="tokens sent over all requests") + "</div>"


def _breaks(group: Mapping[str, Any], regimes: Sequence[str]) -> Iterator[str]:
    """Bars of tokens lost by cause, under the first regime; all counts in a table that opens."""
    first = [(policy["policy"], policy["prices"][0]["breaks"]) for policy in group["policies"]]
    sums: dict[str, int] = {}
    for _, breaks in first:
        for what, entry in breaks.items():
            sums[what] = sums.get(what, 0) + entry["lost"]
    kinds = sorted(sums, key=lambda what: (-sums[what], what))[: COLOURS - 1]
    colours = {what: f"c{n}" for n, what in enumerate(kinds)}
    if any(price["breaks"] for policy in group["policies"] for price in policy["prices"]):
        yield "<p>What differed first from the view before, and the tokens behind it that could have been read from the cache"
        yield f"({escape(regimes[0])}).</p>"
        bars = []
        for name, breaks in first:
            pieces = [(what, breaks.get(what, {"lost": 0})["lost"], colours[what]) for what in kinds]
            rest = sum(entry["lost"] for what, entry in breaks.items() if what not in colours)
            bars.append(svg.Bar(_short(name), [*pieces, ("other", rest, "muted")]))
        yield _legend(kinds, colours, bars)
        yield "<div class='wide'>" + svg.bars(bars, unit="tokens written that could have been read") + "</div>"
        yield from _break_table(group, regimes)
    else:
        yield "<p>Nowhere: every view extended the one before it.</p>"


def _legend(kinds: Sequence[str], colours: Mapping[str, str], rows: Sequence[svg.Bar]) -> str:
    other = any(value for row in rows for _, value, mark in row.pieces if mark == "muted")
    entries = [(fit(kind, 2 * NAME), colours[kind]) for kind in kinds]
    return svg.legend([*entries, *([("other", "muted")] if other else [])])


def _break_table(group: Mapping[str, Any], regimes: Sequence[str]) -> Iterator[str]:
    yield "<details><summary>All of them</summary><div class='wide'><table><thead><tr><th>policy</th><th>write/read</th>"
    yield "<th>what</th><th class='n'>times</th><th class='n'>tokens not read</th></tr></thead><tbody>"
    for policy in group["policies"]:
        same: dict[str, list[str]] = {}  # regimes with the same breaks share their rows
        for regime, price in zip(regimes, policy["prices"], strict=True):
            same.setdefault(str(price["breaks"]), []).append(regime)
        for names in same.values():
            breaks = policy["prices"][regimes.index(names[0])]["breaks"]
            regime = "all" if len(names) == len(regimes) else ", ".join(names)
            for what, entry in sorted(breaks.items(), key=lambda pair: -pair[1]["lost"]):
                counts = f"<td class='n'>{entry['times']:,}</td><td class='n'>{entry['lost']:,}</td>"
                yield f"<tr><th>{escape(policy['policy'])}</th><td>{escape(regime)}</td><td>{escape(what)}</td>{counts}</tr>"
    yield "</tbody></table></div></details>"


def _marks(group: Mapping[str, Any]) -> dict[str, str]:
    """Colours: brim's modes have their own, everything is ink, the rest is muted; without a mode the rest has them."""
    modes = any(policy["policy"].partition(",")[0] in MODES for policy in group["policies"])
    colours: dict[str, str] = {}
    free = iter(range(COLOURS))
    for policy in group["policies"]:
        name = policy["policy"]
        ours = not modes or name.partition(",")[0] in MODES
        colours[name] = (
            "ink"
            if name == "everything"
            else f"c{number}"
            if ours and (number := next(free, None)) is not None
            else "muted"
        )
    return colours


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"


def _told(group: Mapping[str, Any]) -> str:
    return f"{count(group['conversations'], 'conversation')}, {count(group['requests'], 'request')}"


def _pause(report: Mapping[str, Any]) -> str:
    return f", the cache expired at {every(report['pause_every'])} request" if report["pause_every"] else ""


def _only_times(report: Mapping[str, Any]) -> list[Any]:
    return [
        {
            "file": group["file"],
            "policy": policy["policy"],
            "regime": price["regime"],
            "planner_ms": price["planner_ms"],
        }
        for group in report["files"]
        for policy in group["policies"]
        for price in policy["prices"]
    ]


def _script(name: str, value: Any) -> str:
    # "</script" would end the element wherever it stands, and "<!--<script" would keep its own end from being seen.
    text = msgspec.json.encode(value).decode().replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


_STYLE = """
:root { color-scheme: light dark; --paper:#fcfcfa; --ink:#1d2129; --soft:#5a6270; --line:#d9dce1; --muted:#9aa1ab;
  --c0:#1f6fb4; --c1:#c4570c; --c2:#2b8a4b; --c3:#8a4fb0; --c4:#b0882a; --c5:#c13d5b; --c6:#2a8f94; --c7:#6a6f3a; }
@media (prefers-color-scheme: dark) { :root { --paper:#15181d; --ink:#e7e9ec; --soft:#a4acb8; --line:#343a44; --muted:#737b87;
  --c0:#63a9e6; --c1:#f0925a; --c2:#62c486; --c3:#bd8fe0; --c4:#d9b65c; --c5:#ef7f97; --c6:#5cc3c8; --c7:#b3b873; } }
body { margin:2rem auto; max-width:1000px; padding:0 1rem; background:var(--paper); color:var(--ink);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif; }
h1 { font-size:1.6rem; } h2 { display:inline; font-size:1.15rem; } h3 { font-size:1rem; margin:1.6rem 0 .4rem; }
summary { cursor:pointer; padding:.5rem 0; border-top:1px solid var(--line); } summary span { color:var(--soft); }
.plots { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr)); gap:.5rem 1rem; }
figure { margin:0; } figcaption { color:var(--soft); } .wide { overflow-x:auto; }
svg { max-width:100%; height:auto; font:12px system-ui,-apple-system,"Segoe UI",sans-serif; }
table { border-collapse:collapse; font-variant-numeric:tabular-nums; font-size:13px; }
th,td { text-align:left; padding:.15rem .6rem .15rem 0; border-bottom:1px solid var(--line); vertical-align:top;
  white-space:nowrap; }
.n { text-align:right; } thead th { color:var(--soft); font-weight:600; } tbody th { font-weight:600; }
.grid { stroke:var(--line); } .even { stroke:var(--soft); stroke-dasharray:4 3; }
.tick,.axis { fill:var(--soft); } .label { fill:var(--soft); } .strong { fill:var(--ink); font-weight:600; }
.middle { text-anchor:middle; } .end { text-anchor:end; }
polyline { fill:none; stroke-width:1.8; stroke-linejoin:round; } line { stroke-width:1.2; }
.legend { display:flex; flex-wrap:wrap; gap:.2rem 1rem; color:var(--soft); margin:.2rem 0; }
.legend i { display:inline-block; width:.8rem; height:.8rem; margin-right:.35rem; border-radius:2px; vertical-align:-1px; }
""" + "".join(
    f"circle.{n},rect.{n},text.{n} {{ fill:var(--{n}); }} polyline.{n},line.{n} {{ stroke:var(--{n}); }}\n"
    f"i.{n} {{ background:var(--{n}); }}\n"
    for n in (*(f"c{n}" for n in range(COLOURS)), "muted", "ink")
)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,"><title>Replay of context policies</title>
<style>{style}</style></head><body>
{body}
{data}</body></html>
"""
