"""Every chart can be exported as a picture."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.report import export_charts
from eunomia.report.all_charts import charts
from eunomia.report.image_export import draw_chart, pictures


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


@pytest.mark.parametrize(("waited_s", "begins_at"), [([0.0, 0.5, 60.0], 2 / 3), ([30.0, 60.0, 60.0], 0.0)])
def test_the_curve_begins_at_the_jobs_that_hardly_waited_without_a_step(a_report, a_run, waited_s, begins_at):
    content = a_report(a_run("fifo", [900.0] * 3, queueing_s=np.array(waited_s)))
    (chart,) = (chart for chart in charts(content) if chart.name == "queueing_cdf")
    (line,) = draw_chart(chart).axes[0].lines
    assert line.get_ydata()[0] == pytest.approx(begins_at)


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


def test_a_chart_without_data_is_left_out(a_report, a_run):
    hung = {chart.name for chart in charts(a_report(a_run("stuck", [], summary={"cost_usd": None})))}
    assert hung == {"utilization", "jobs_over_time", "preemptions"}
