"""Every chart can be exported as a picture."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from eunomia.inputs.problems import InvalidInput
from eunomia.report import export_charts
from eunomia.report.all_charts import charts
from eunomia.report.figure import draw_figure
from eunomia.report.figure_style import FigureStyle, settings_of
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


LONG = "finish_time_fairness?point=interior&deadlines=true&space_sharing=true"


@pytest.mark.parametrize("width_in", [1.5, 3.3, 7.2])
def test_a_legend_covers_no_data_and_leaves_the_panel_as_high_as_without(a_report, a_run, width_in: float):
    """A picture of six policies, one with a long name, beside a picture of one: both as figures of a paper."""
    style, heights = FigureStyle(width_in=width_in), []
    for names in (["fifo"], ["fifo", "srtf", "las", "max_min_fairness", "water_filling", LONG]):
        report = a_report(*(a_run(name, [60.0, 7200.0]) for name in names))
        (chart,) = (one for one in charts(report) if one.name == "jct_cdf")
        rows = [{"policy": name, "load": load, "jct_mean_s": 60.0} for name in names for load in (1.0, 2.0)]
        with mpl.rc_context(settings_of(style)):
            for figure in (draw_chart(chart, style), draw_figure(rows, "jct_mean_s", "load", style)):
                FigureCanvasAgg(figure).draw()
                legend, panel = figure.legends[0].get_window_extent(), figure.axes[0].get_window_extent()
                assert not legend.overlaps(panel)
                assert legend.y0 >= figure.bbox.y0 - 1
                assert legend.y1 <= figure.bbox.y1 + 1
                assert legend.width <= figure.bbox.width
                heights.append(panel.height)
    assert all(0.95 <= six / one <= 1.2 for one, six in zip(heights[:2], heights[2:], strict=True))


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
