"""The runs behind Gavel's curves are runs that can be set up and played."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from eunomia import traces
from eunomia.setup.run_config import set_up
from eunomia_reproduction.gavel.figure_runs import FigureRun, show
from eunomia_reproduction.gavel.published import FINISH_TIME, MAKESPAN, MEAN_FTF, MULTI, SINGLE

FOLDER = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "gavel"
DATA = FOLDER / "simulation_throughputs.json.gz"
with_data = pytest.mark.skipif(not DATA.is_file(), reason=f"there are no throughputs of Gavel in {FOLDER}")
POLICIES = sorted({curve.policy for curve in (*SINGLE, *MULTI, *FINISH_TIME, *MAKESPAN)} | set(MEAN_FTF))


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
