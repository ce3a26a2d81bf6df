"""The HTML report: opens by itself in a browser, shows the numbers of the JSON, asks nothing of the network."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from brim.replay.figures import Figures
from brim.replay.html import render_html
from brim.replay.play import Plays, play
from brim.replay.regimes import DEFAULT
from brim.replay.run import replay
from brim.replay.sources import read_transcripts
from brim.replay.svg import Dot, scatter
from brim.replay.transcript import Transcript
from shared_replay import runs_file, small_run

PLAYS = Plays(("mask-3", "last-2", "full", "auto"), DEFAULT, pause_every=5, series=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("report")
    figures = replay(read_transcripts([runs_file(folder)]), PLAYS)
    path = folder / "report.html"
    path.write_text(render_html(figures), encoding="utf-8")
    return path, json.loads(json.dumps(figures.report()))


class Cells(HTMLParser):
    """The figures' table as {(policy, regime, key): (value, text)}, and the embedded JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: dict[tuple[str, str, str], tuple[float, str]] = {}
        self.embedded: dict[str, str] = {}
        self._row = ("", "")
        self._cell: tuple[str, float] | None = None
        self._script: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag == "tr" and "data-policy" in given:
            self._row = (given["data-policy"], given["data-regime"])
        self._cell = (given["data-key"], float(given["data-value"])) if "data-key" in given else None
        self._script = given.get("id") if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self.cells[(*self._row, self._cell[0])] = (self._cell[1], data)
            self._cell = None
        if self._script is not None:
            self.embedded[self._script] = data
            self._script = None


def test_numbers_are_those_of_the_json(page: tuple[Path, dict[str, Any]]) -> None:
    """The JSON is embedded whole, and each number shown stands in it."""
    path, report = page
    cells = Cells()
    cells.feed(path.read_text(encoding="utf-8"))
    assert json.loads(cells.embedded["figures"]) == report
    (group,) = report["files"]
    seen = 0
    for policy in group["policies"]:
        for price in policy["prices"]:
            for key in ("cost", "supported", "tokens", "peak", "cached", "refetches", "overflows", "invalid"):
                value, text = cells.cells[(policy["policy"], price["regime"], key)]
                assert value == price[key]
                assert float(text.replace(",", "")) == pytest.approx(price[key], abs=0.0005)
                seen += 1
    assert seen == 5 * 4 * 8


def test_nothing_is_loaded(page: tuple[Path, dict[str, Any]]) -> None:
    """No address of another host, no script that runs, colours for dark and light."""
    text = page[0].read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:)|https?://|url\(|@import""", text)
    assert set(re.findall(r"<script[^>]*>", text)) == {
        '<script type="application/json" id="figures">', '<script type="application/json" id="times">',
    }  # fmt: skip
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # playwright's pipes
def test_opens_in_a_browser(page: tuple[Path, dict[str, Any]], scheme: Any, tmp_path: Path) -> None:
    """In Chromium the plots are drawn with a mark for each policy, nothing is logged, nothing is fetched."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    path, _ = page
    told: list[str] = []
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(color_scheme=scheme)
        asked: list[str] = []
        view.on("console", lambda message: told.append(message.text))
        view.on("pageerror", lambda error: told.append(str(error)))
        view.on("request", lambda request: asked.append(request.url))
        view.goto(path.as_uri())
        assert view.locator(".plots svg").count() == 4
        assert view.locator(".plots svg circle").count() == 4 * 5
        assert view.locator("svg polyline").count() == 3  # everything, full, auto over the longest session
        assert view.locator("svg rect").count() > 10
        boxes = [view.locator(".plots svg").nth(n).bounding_box() for n in range(4)]
        assert all(box["width"] > 200 and box["height"] > 150 for box in boxes)
        paper = view.evaluate("getComputedStyle(document.body).backgroundColor")
        shades = [int(shade) for shade in re.findall(r"\d+", paper)[:3]]
        assert (sum(shades) < 150) == (scheme == "dark")
        picture = view.screenshot(full_page=True, path=tmp_path / "report.png")
        browser.close()
    assert asked == [path.as_uri()] and told == []
    assert len(picture) > 20_000


def drawn(policies: tuple[str, ...], run: Transcript) -> str:
    figures = Figures(Plays(policies, DEFAULT[:2], series=True))
    figures.add("<b>runs</b>.jsonl", play(run, figures.plays))
    return render_html(figures)


def test_names_are_text_wherever_they_stand() -> None:
    """A conversation, a tool, a file or a model that is named like markup is shown as its name; the data stays whole."""
    evil = "</script><!--<script><b onx='1'>\"&"
    messages = [{**m, "name": evil} if m["role"] == "tool" else m for m in small_run(14)]
    text = drawn(("mask-3", "auto"), Transcript(evil, messages, evil))
    cells = Cells()
    cells.feed(text)
    assert text.count("<script") == text.count("</script") == 2
    assert "<b>" not in text and "<b " not in text and "<!--" not in text
    embedded = json.loads(cells.embedded["figures"])
    assert embedded["files"][0]["file"] == "<b>runs</b>.jsonl"
    assert embedded["files"][0]["policies"][0]["prices"][0]["worst"]["id"] == evil


def test_fixed_policies_alone_are_drawn() -> None:
    """Without a mode among them the other policies have lines and colours of their own, and one is no `conversations`."""
    text = drawn(("mask-3",), Transcript("one", small_run(14)))
    assert text.count("<polyline") == 2 and 'polyline class="c0"' in text
    assert "1 conversation, 15 requests" in text and "1 conversations" not in text


def test_shares_end_at_one() -> None:
    """No axis of a share goes on above 1, where all policies support everything, either."""
    plot = scatter([Dot("a", 1.0, 0.5, "c0", "a"), Dot("b", 1.0, 1.0, "c1", "b")], x="x", y="y", most_x=1.0)
    marks = [float(each) for each in re.findall(r'"tick middle"[^>]*>([\d.]+)<', plot)]
    assert len(marks) > 1 and max(marks) == 1.0
