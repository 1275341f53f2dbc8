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
from eunomia.report.chart import styles_of
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
        assert not {"src", "action", "srcset"} & {name for name, _ in tags(text).attributes}
        assert all(value.startswith("#") for name, value in tags(text).attributes if name == "href")


def test_a_run_links_to_its_folder_beside_the_report(a_report, a_run):
    text = page(a_report(a_run("fifo", [60.0], folder="fifo__load=1__seed=0"), a_run("las", [30.0])))
    assert [v for n, v in tags(text).attributes if n == "href" and v[0] != "#"] == ["./fifo__load%3D1__seed%3D0/"]


def test_the_contents_link_to_every_section(a_report, a_run):
    found = tags(page(a_report(a_run("fifo", [60.0]), a_run("las", [30.0]), notes=("drawn",)))).attributes
    links = [value for name, value in found if name == "href"]
    assert links == ["#verdict", "#runs", "#charts", "#notes", "#details"]
    assert {link[1:] for link in links} <= {value for name, value in found if name == "id"}


def test_of_many_runs_the_best_five_are_shown_first_and_no_other_is_lost(a_report, a_run):
    text = page(a_report(*(a_run(f"p{k}", [60.0 * (42 - k)]) for k in range(42))))
    rows = re.findall(r'<tr( class="rest")?><th scope="row">(p\d+)</th><td data-v', text)
    assert [label for rest, label in rows if not rest] == ["p41", "p40", "p39", "p38", "p37"]
    assert len(rows) == 42


def test_a_column_of_times_has_one_unit(a_report, a_run):
    text = page(a_report(a_run("fifo", [86400.0 * 9]), a_run("las", [3600.0 * 21])))
    assert ">JCT average, d</th>" in text
    assert re.findall(r'</b> ([\d.]+)</td>|<td data-v="777600">([\d.]+)</td>', text)[0] == ("", "9.00")


def test_a_tie_gets_no_star(a_report, a_run):
    text = page(a_report(a_run("fifo", [1000.0]), a_run("las", [1001.0]), a_run("srtf", [2000.0])))
    cells = dict(re.findall(r'<th scope="row">(\w+)</th><td data-v="[^"]*">(.*?)</td>', text))
    assert ("★" in cells["fifo"], "≈" in cells["fifo"], "≈" in cells["las"], "≈" in cells["srtf"]) == (
        False, True, True, False,
    )  # fmt: skip


def test_a_policy_keeps_its_colour_from_report_to_report():
    assert styles_of(["las", "fifo"])["fifo"] == styles_of(["fifo", "max_min_fairness", "srtf"])["fifo"]
    assert styles_of(["fifo?types=agnostic", "fifo"]) == styles_of(["fifo", "fifo?types=agnostic"])
    every = styles_of([f"p{k}" for k in range(40)])
    assert len(set(every.values())) == 40


def test_the_best_of_many_policies_have_colours_of_their_own():
    best = ("p1", "p2", "p5", "p6", "p9")
    every = styles_of([f"p{k}" for k in range(40)], first=best)
    assert len({every[label] % 8 for label in best}) == 5
    assert len(set(every.values())) == 40


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
    row = re.search(r'<th scope="row">srtf</th>(<td data-v.*?</td>)', text)
    assert "★" in row.group(1)
    assert "best</span>" in row.group(1)
    assert "★" not in re.search(r'<th scope="row">fifo</th>(<td data-v.*?</td>)', text).group(1)


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
