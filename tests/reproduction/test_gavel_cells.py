"""The runs behind Gavel's curves are runs that can be set up and played."""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from eunomia import traces
from eunomia.setup.run_config import set_up
from eunomia_reproduction.gavel.figure_runs import FigureRun, show
from eunomia_reproduction.gavel.published import (
    FINISH_TIME,
    FINISH_TIME_SINGLE,
    MAKESPAN,
    MEAN_FTF,
    MULTI,
    OVER_ISOLATED,
    PRIORITIES,
    SINGLE,
)

FOLDER = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "gavel"
DATA = FOLDER / "simulation_throughputs.json.gz"
with_data = pytest.mark.skipif(not DATA.is_file(), reason=f"there are no throughputs of Gavel in {FOLDER}")
CURVES = (*SINGLE, *MULTI, *FINISH_TIME, *FINISH_TIME_SINGLE, *OVER_ISOLATED, *MAKESPAN, *PRIORITIES)
POLICIES = sorted({curve.policy for curve in CURVES} | set(MEAN_FTF))


@with_data
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_of_the_curves_brings_a_few_jobs_to_their_end(policy: str) -> None:
    multi = policy != "gavel:allox"
    shown = show(FigureRun(policy=policy, rate=math.inf, multi=multi, jobs=12, window=None), DATA)
    assert len(shown.jct_s) == 12
    assert 0 < shown.jct_h <= shown.makespan_h


@with_data
def test_a_window_is_measured_and_ends_the_run() -> None:
    shown = show(FigureRun(policy="gavel:isolated", rate=4.0, jobs=60, window=(10, 19)), DATA)
    assert sorted(map(int, shown.jct_s)) == list(range(10, 20))


@pytest.mark.slow
@with_data
def test_jobs_with_deadlines_are_late_when_they_take_longer() -> None:
    cell = FigureRun(policy="gavel:isolated", rate=math.inf, jobs=300, window=None, deadlines=True)
    jobs = set_up(cell.scenario(DATA)).jobs
    shown = show(cell, DATA)
    late = sum((shown.jct_s[job.job_id] or 0) > job.deadline - job.submitted for job in jobs)
    assert shown.late == late > 0


def test_deadlines_are_a_third_tight_a_third_loose_and_a_third_wide() -> None:
    drawn = traces.generate("gavel", 0, jobs=3000, deadlines=True)
    factor = (drawn.deadline_s - drawn.submitted_s) / drawn.duration_s
    assert {float(value): round(float((np.round(factor, 6) == value).mean()), 1) for value in (1.2, 2.0, 10.0)} == {
        1.2: 0.3,
        2.0: 0.3,
        10.0: 0.3,
    }
    assert np.isin(np.round(factor, 6), (1.2, 2.0, 10.0)).all()


POINTS = FOLDER / "notebook_figures.csv"


@pytest.mark.skipif(not POINTS.is_file(), reason=f"there are no stored points of Gavel's figures in {FOLDER}")
def test_every_stored_point_of_the_figures_is_compared_and_no_other() -> None:
    def kind(figure: str, policy: str) -> str:
        """Return the figure and what the policy is called here; a curve of priorities also has a weight."""
        name, _, weight = policy.partition(" ")
        preset = f"gavel:{name}" if not name.startswith("water") else f"gavel:max_min_fairness_{name}"
        return f"{figure} {preset} {weight}".strip()

    stored = Counter(
        (kind(row["figure"], row["policy"]), row["workload"] == "gangs", float(row["x"]), float(row["value"]))
        for row in csv.DictReader(POINTS.read_text(encoding="utf-8").splitlines())
    )
    figures = {
        "avg_jct": (*SINGLE, *MULTI, *FINISH_TIME, *FINISH_TIME_SINGLE),
        "avg_jct_over_isolated": OVER_ISOLATED,
        "makespan": MAKESPAN,
        "priorities_avg_jct": PRIORITIES,
    }
    compared = Counter(
        (
            f"{figure} {curve.policy} {curve.name.partition(', ')[2] if curve in PRIORITIES else ''}".strip(),
            curve.multi,
            x,
            y,
        )
        for figure, curves in figures.items()
        for curve in curves
        for x, y in curve.known.items()
    )
    assert stored == compared
    assert compared.total() == 375


@with_data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "multi", "rate", "published_h"),
    [
        ("gavel:fifo", False, 2.0, 18.32),
        ("gavel:fifo", False, 5.2, 151.67),
        ("gavel:fifo", True, 2.4, 129.27),
        ("gavel:fifo_perf", True, 2.4, 43.94),
        ("gavel:fifo_packed", True, 1.8, 23.44),
    ],
)
def test_a_queue_is_the_published_point_to_two_decimals(
    policy: str, multi: bool, rate: float, published_h: float
) -> None:
    assert round(show(FigureRun(policy=policy, multi=multi, rate=rate), DATA).jct_h, 2) == published_h
