"""Beside Gavel's own simulator: its logs round by round, its runs job by job. Needs its published results.

What depends on which optimum a solver picks is compared in averages, with the tolerances of the parity report.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from eunomia import traces
from eunomia.throughputs import load
from eunomia_reproduction.gavel.parity import AGNOSTIC, AWARE, EXACT, of_log, of_run
from eunomia_reproduction.gavel.reference import Reference, Run, read_reference
from eunomia_reproduction.table import FigureRow

DATA = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "gavel"
LONG = 1980  # rounds; a run with more is for the slow tests


@lru_cache(maxsize=1)
def reference() -> Reference | None:
    """Return the published results, None where they are not there."""
    return read_reference(DATA) if (DATA / "reference_results.json").is_file() else None


def _marks(rounds: int, *, solves: bool) -> list[pytest.MarkDecorator]:
    """Return how a run of so many rounds is marked, which solves a program in each or not."""
    if solves and rounds > 5 * LONG:
        return [pytest.mark.slow, pytest.mark.nightly]
    return [pytest.mark.slow] if solves or rounds > LONG else []


def runs(policies: tuple[str, ...], *, least_jobs: int = 0) -> list[object]:
    """Return a test case for every run of these policies."""
    found = reference()
    if found is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"there are no results of Gavel in {DATA}"))]
    return [
        pytest.param(one, id=one.id, marks=_marks(one.rounds, solves=least_jobs > 0))
        for one in found.runs
        if one.policy in policies and len(one.jct) >= least_jobs
    ]


def logs() -> list[object]:
    """Return a test case for every log."""
    found = reference()
    if found is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"there are no results of Gavel in {DATA}"))]
    return [pytest.param(one, id=one.id) for one in found.runs if one.id in found.logs]


def messages(rows: list[FigureRow]) -> list[str]:
    """Return what is outside its tolerance, readably."""
    return [f"{row.quantity}: {row.published} there, {row.measured} here. {row.note}" for row in rows if not row.within]


@pytest.mark.parametrize("one", logs())
def test_a_log_is_repeated_round_by_round_and_job_by_job(one: Run) -> None:
    found = reference()
    assert found is not None
    rows = of_log(one, found)
    assert all(row.tolerance is not None for row in rows)
    assert messages(rows) == []


@pytest.mark.parametrize("one", runs(EXACT))
def test_every_job_of_a_policy_without_a_solver_ends_when_it_does_there(one: Run) -> None:
    found = reference()
    assert found is not None
    asked = [row for row in of_run(one, found) if row.tolerance is not None]
    assert len(asked) >= 5
    assert messages(asked) == []


@pytest.mark.parametrize("one", runs(AWARE + AGNOSTIC, least_jobs=96))
def test_a_policy_with_many_optima_comes_near_on_the_traces_of_many_jobs(one: Run) -> None:
    found = reference()
    assert found is not None
    asked = [row for row in of_run(one, found) if row.tolerance is not None]
    assert len(asked) == 4
    assert messages(asked) == []


DRAWN = {  # the streams' parameters stand in the names of the traces
    "cont_multi_prio_r2.0_s1_n200": (1, {"rate_per_hour": 2.0, "multi_accelerator": True, "priorities": True}),
    "cont_multi_r2.6_s0_n300": (0, {"rate_per_hour": 2.6, "multi_accelerator": True}),
    "cont_single_r5.6_s0_n400": (0, {"rate_per_hour": 5.6}),
    "static_multi_s0_n100": (0, {"rate_per_hour": float("inf"), "multi_accelerator": True}),
    "static_single_s2_n100": (2, {"rate_per_hour": float("inf")}),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_seed_draws_the_jobs_that_gavel_draws(name: str) -> None:
    path = DATA / "traces" / f"{name}.trace"
    if not path.is_file():
        pytest.skip(f"there is no trace {path}")
    seed, parameters = DRAWN[name]
    theirs = traces.read(path, "gavel")
    ours = traces.generate("gavel", seed, jobs=len(theirs), **parameters)
    speed = load(str(DATA / "simulation_throughputs.json.gz"), ["v100"], base=Path())
    kinds = zip(ours.job_type or (), ours.scale_factor.tolist(), strict=True)
    steps = ours.duration_s * np.array([speed.solo_throughput(kind, size)[0] for kind, size in kinds])
    assert ours.job_type == theirs.job_type
    assert (ours.scale_factor == theirs.scale_factor).all()
    assert (ours.weight == theirs.weight).all()
    assert np.abs(ours.submitted_s - theirs.submitted_s).max() <= 5.0001e-7  # the files round to a millionth
    assert (np.floor(steps) == theirs.total_steps).all()
