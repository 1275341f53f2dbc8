"""The page is self-contained, holds the true numbers, and escapes every name."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from eunomia.report import write_report
from eunomia.report.page import page

HOUR = 3600.0
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!--\u202egnp\x00 https://evil.example/"


def block(text: str) -> dict:
    """Return the numbers of a page as a strict reader of JSON sees them."""
    found = re.search(r'<script type="application/json" id="eunomia-data">(.*?)</script>', text, re.DOTALL)
    assert found

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(found.group(1), parse_constant=refuse)


@pytest.fixture
def hostile_report(a_report, a_run):
    """Return a report in which every name contains markup."""
    run = a_run(HOSTILE, [HOUR, 2 * HOUR], policy=HOSTILE, tenant=(HOSTILE, "b"), types=(HOSTILE,))
    words = {"title": HOSTILE, "subtitle": HOSTILE, "notes": (HOSTILE,), "scenario_toml": HOSTILE}
    return a_report(run, a_run("fifo", [1.0]), **words)


class Tags(HTMLParser):
    """Notes every element and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def tags(text: str) -> Tags:
    reader = Tags()
    reader.feed(text)
    return reader


def test_the_block_holds_the_summaries_exactly(a_report, a_run):
    runs = (a_run("fifo", [100.0 / 3, 7.1]), a_run("srtf", [5.0], load=1.5, seed=3))
    data = block(page(a_report(*runs)))["runs"]
    assert [one["summary"] for one in data] == [dict(run.summary) for run in runs]
    assert [(one["label"], one["load"], one["seed"]) for one in data] == [("fifo", 1.0, 0), ("srtf", 1.5, 3)]


def test_unknown_numbers_are_null_and_never_nan(a_report, a_run):
    gaps = np.array([[np.nan, 0.5, np.nan]])
    run = a_run("fifo", [60.0], utilization=gaps, rho_themis=np.array([np.nan]), summary={"rho_themis_max": np.nan})
    data = block(page(a_report(run)))
    assert data["runs"][0]["summary"]["rho_themis_max"] is None
    chart = next(chart for chart in data["charts"] if chart["name"] == "utilization")
    assert chart["panels"][0]["series"][0]["y"] == [None, 0.5, None, None]
    assert "rho_themis_cdf" not in [chart["name"] for chart in data["charts"]]


def test_no_address_is_in_the_page_even_when_a_name_is_one(a_report, a_run, hostile_report):
    for text in (page(a_report(a_run("fifo", [60.0]))), page(hostile_report)):
        assert not re.search(r"[a-z]+://", text)
        assert not {"src", "href", "action", "srcset"} & {name for name, _ in tags(text).attributes}


def test_a_hostile_name_adds_no_element_and_no_attribute(a_report, a_run, hostile_report):
    tame = a_run("a", [HOUR, 2 * HOUR], tenant=("c", "b"))
    plain = tags(page(a_report(tame, a_run("fifo", [1.0]), notes=("a note",))))
    hostile = tags(page(hostile_report))
    assert hostile.tags == plain.tags
    assert not [name for name, _ in hostile.attributes if name.startswith("on") or name == "style"]


def test_a_hostile_name_is_shown_as_it_reads_without_what_cannot_be_seen(hostile_report):
    text = page(hostile_report)
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert block(text)["runs"][0]["label"] == HOSTILE


def test_only_the_pages_own_style_and_script_may_run(hostile_report):
    text = page(hostile_report)
    rules = next(value for name, value in tags(text).attributes if name == "content" and "default-src" in value)
    assert rules.startswith("default-src 'none';")
    assert "unsafe" not in rules
    for element in ("style", "script"):
        own = re.search(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own.group(1).encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in rules


def test_every_chart_has_a_frame_and_one_sentence_on_how_to_read_it(a_report, a_run):
    text = page(a_report(a_run("fifo", [60.0]), a_run("srtf", [30.0]), a_run("fifo", [90.0], load=2.0)))
    names = [chart["name"] for chart in block(text)["charts"]]
    assert names == re.findall(r'data-chart="([^"]+)"', text)
    assert len(set(names)) == len(names)
    assert text.count("<figcaption>") == len(names)


def test_long_curves_are_thinned(a_report, a_run):
    many, bins = np.random.default_rng(0).exponential(HOUR, 5000), 1000
    series = {"utilization": np.ones((1, bins)), "running_jobs": np.ones(bins), "waiting_jobs": np.ones(bins)}
    data = block(page(a_report(a_run("fifo", many, utilization_at_s=np.arange(bins) * 60.0, **series))))
    lengths = [len(one["x"]) for chart in data["charts"] for panel in chart["panels"] for one in panel["series"]]
    assert max(lengths) <= 400


def test_the_best_of_a_column_is_marked_by_a_sign_and_not_only_by_colour(a_report, a_run):
    text = page(a_report(a_run("fifo", [2 * HOUR]), a_run("srtf", [HOUR])))
    row = re.search(r"<th[^>]*>srtf</th>(<td>.*?</td>)", text)
    assert "★" in row.group(1)
    assert "best</span>" in row.group(1)
    assert "★" not in re.search(r"<th[^>]*>fifo</th>(<td>.*?</td>)", text).group(1)


def test_words_and_table_are_there_without_javascript(a_report, a_run):
    text = page(a_report(a_run("fifo", [2 * HOUR]), a_run("srtf", [HOUR]), notes=("drawn with seed 7",)))
    static = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "<noscript>" in static
    assert "Use srtf: jobs complete after 60.0&nbsp;min on average" in static
    assert "drawn with seed 7" in static


def test_a_run_without_any_finished_job_is_still_reported(a_report, a_run):
    empty = a_run("stuck", [], summary={"jobs_submitted": 4, "jobs_finished": 0})
    assert "stuck finished 0 of 4 jobs" in page(a_report(empty))


def test_one_content_gives_the_same_bytes_whole_and_alone_in_its_folder(a_report, a_run, tmp_path: Path):
    content = a_report(a_run("fifo", [60.0]))
    write_report(content, tmp_path / "new" / "report.html")
    write_report(content, tmp_path / "new" / "again.html")
    first, second = sorted((tmp_path / "new").iterdir())
    assert first.read_bytes() == second.read_bytes() == page(content).encode()


def test_a_report_needs_no_matplotlib():
    asks = "import sys, eunomia.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asks], check=False).returncode == 0
