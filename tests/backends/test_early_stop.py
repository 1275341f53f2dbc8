"""Jobs that end when more training would hardly help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eunomia import simulate
from eunomia.backends.simulated.early_stop import draw_parts_until_convergence


@pytest.mark.parametrize(("part", "jobs"), [(0.1, 0.52), (0.2, 0.62), (1 / 3, 0.74), (0.8, 0.78), (0.9, 0.83)])
def test_as_many_jobs_are_near_their_lowest_loss_as_on_philly(part: float, jobs: float) -> None:
    drawn = draw_parts_until_convergence(100_000, np.random.default_rng(3))
    assert (drawn <= part).mean() == pytest.approx(jobs, abs=0.005)
    assert drawn.min() == 0.01 and drawn.max() <= 1.0


def played(**physics: Any) -> Any:
    return simulate(
        {
            "cluster": {"accelerators": {"gpu": 64}},
            "workload": {"generator": "philly-like", "jobs": 120, "rate_per_hour": 2.0},
            "throughputs": {"source": "uniform"},
            "policy": {"name": "fifo"},
            "physics": physics,
        }
    )


def test_jobs_that_pass_end_early_and_the_run_says_so() -> None:
    full, early = played(), played(early_stop=True)
    assert (early.jobs["status"] == "finished").all()
    ratio = np.asarray(early.jobs["received_gpu_s"]) / np.asarray(full.jobs["received_gpu_s"])
    assert ratio.max() <= 1 + 1e-9
    assert 0.4 < (ratio <= 0.1 + 1e-9).mean() < 0.64  # 52 % of them
    assert "within 0.1 % of their lowest loss" in " ".join(early.notes)
    assert "lowest loss" not in " ".join(full.notes)


def test_which_jobs_fail_or_are_killed_and_when_is_the_same_with_an_early_stop() -> None:
    full, early = (played(fates="philly", early_stop=early) for early in (False, True))
    assert (early.jobs["status"] == full.jobs["status"]).all()
    ends = np.asarray(full.jobs["status"]) != "finished"
    assert 0 < ends.sum() < len(ends)
    used = [np.asarray(run.jobs["received_gpu_s"])[ends] for run in (full, early)]
    assert np.allclose(*used)
