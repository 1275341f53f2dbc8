"""The chart of accelerator-hours lost by cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eunomia.metrics.lost_time import LOST, name_of
from eunomia.report.all_charts import charts
from eunomia.report.chart import Chart
from eunomia.report.summary_charts import LABEL_BY_CAUSE, NOT_LOST
from eunomia.verdict.run_figures import ReportContent

HOUR = 3600.0
Draw = Callable[..., Chart | None]


@pytest.fixture
def draw(a_run: Callable[..., Any], a_report: Callable[..., ReportContent]) -> Draw:
    """Return the chart of runs given as accelerator-hours by cause, `useful` among them."""

    def drawn(*runs: dict[str, float | None]) -> Chart | None:
        made = []
        for place, hours in enumerate(runs):
            names = dict.fromkeys(LOST, 0.0) | hours
            summary = {name_of(cause): None if names[cause] is None else names[cause] * HOUR for cause in LOST}
            summary["useful_accelerator_s"] = None if names.get("useful") is None else names["useful"] * HOUR
            made.append(a_run(f"policy {place}", [100.0], summary=summary))
        found = [chart for chart in charts(a_report(*made)) if chart.name == "lost_accelerator_time"]
        return found[0] if found else None

    return drawn


def test_every_cause_has_a_label() -> None:
    assert set(LABEL_BY_CAUSE) | {NOT_LOST} == set(LOST)


def test_losses_are_drawn_in_hours_and_described_as_a_share_of_the_whole(draw: Draw) -> None:
    chart = draw({"useful": 50.0, "placement": 10.0, "restore": 4.0, "no_demand": 36.0}, {"useful": 100.0})
    assert chart is not None
    assert chart.categories == ("restores", "placement")
    first, second = chart.panels[0].series
    assert (first.y.tolist(), second.y.tolist()) == ([4.0, 10.0], [0.0, 0.0])
    assert first.details == ("4.0 % of the whole time", "10.0 % of the whole time")


def test_only_the_largest_causes_are_shown(draw: Draw) -> None:
    chart = draw({"useful": 50.0, **{cause: 1.0 + place for place, cause in enumerate(LABEL_BY_CAUSE)}})
    assert chart is not None
    assert chart.categories == tuple(LABEL_BY_CAUSE.values())[-8:]


def test_partners_that_gain_have_no_bar(draw: Draw) -> None:
    assert draw({"useful": 10.0, "sharing": -3.0}) is None


def test_a_run_without_loss_figures_has_no_bars(draw: Draw) -> None:
    assert draw({"useful": None, "fragmentation": 5.0}) is None
