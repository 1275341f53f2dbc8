"""Every chart can be had as a picture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eunomia.model.problems import InvalidInput
from eunomia.report import export_charts
from eunomia.report.gallery import charts
from eunomia.report.pictures import pictures


@pytest.fixture
def content(a_report, a_run):
    """Return a report with names that a drawing library could take for formulas or secrets."""
    runs = [a_run(name, [60.0, 7200.0], tenant=("a", "$b")) for name in ("$x", "_y")]
    return a_report(*runs)


def test_each_chart_is_written_in_each_format(content, tmp_path: Path):
    written = export_charts(content, tmp_path / "charts", ("png", "svg"))
    names = {f"{chart.name}.{form}" for chart in charts(content) for form in ("png", "svg")}
    assert {path.name for path in written} == names == {path.name for path in (tmp_path / "charts").iterdir()}
    for path in written:
        assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


def test_one_content_gives_the_same_pictures(content):
    first, second = (pictures(charts(content)[0], ("svg", "png")) for _ in range(2))
    assert first == second


def test_with_several_loads_each_has_its_own_pictures(a_report, a_run):
    names = [chart.name for chart in charts(a_report(a_run("fifo", [60.0]), a_run("fifo", [90.0], load=1.5)))]
    assert {"jct_against_load", "jct_cdf_load_1", "jct_cdf_load_1.5", "cost"} <= set(names)
    assert len(set(names)) == len(names)


def test_a_format_that_is_not_known_is_refused_before_anything_is_written(content, tmp_path: Path):
    with pytest.raises(InvalidInput, match=re.escape("png, svg, pdf")):
        export_charts(content, tmp_path / "charts", ("png", "bmp"))
    assert not (tmp_path / "charts").exists()


def test_a_chart_of_which_nothing_is_known_does_not_hang(a_report, a_run):
    hung = {chart.name for chart in charts(a_report(a_run("stuck", [], summary={"cost_usd": None})))}
    assert hung == {"utilization", "jobs_over_time", "preemptions"}
