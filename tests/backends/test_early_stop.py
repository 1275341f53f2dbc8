"""Jobs that end when more training would hardly help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eunomia import simulate
from eunomia.model.job import Job
from eunomia.setup.early_stop import parts_until_convergence, with_early_stop


@pytest.mark.parametrize(("part", "jobs"), [(0.1, 0.52), (0.2, 0.62), (1 / 3, 0.74), (0.8, 0.78), (0.9, 0.83)])
def test_as_many_jobs_are_near_their_lowest_loss_as_on_philly(part: float, jobs: float) -> None:
    drawn = parts_until_convergence(100_000, 3)
    assert (drawn <= part).mean() == pytest.approx(jobs, abs=0.005)
    assert drawn.min() == 0.01 and drawn.max() <= 1.0


def test_a_seed_draws_the_same_parts_and_another_one_others() -> None:
    jobs = tuple(Job(job_id=str(m), sequence=m, total_steps=1000.0) for m in range(50))
    steps = [[job.total_steps for job in with_early_stop(jobs, seed)] for seed in (1, 1, 2)]
    assert steps[0] == steps[1] != steps[2]
    assert max(steps[0]) <= 1000.0


def test_a_run_ends_its_jobs_early_and_says_so() -> None:
    def played(**physics: Any) -> Any:
        return simulate(
            {
                "cluster": {"accelerators": {"gpu": 16}},
                "workload": {"generator": "poisson", "jobs": 40, "rate_per_hour": 4.0},
                "throughputs": {"source": "uniform"},
                "policy": {"name": "fifo"},
                "physics": physics,
            }
        )

    full, early = played(), played(early_stop=True)
    assert (early.jobs["status"] == full.jobs["status"]).all()
    ratio = np.sum(early.jobs["received_gpu_s"]) / np.sum(full.jobs["received_gpu_s"])
    assert 0.1 < ratio < 0.7
    assert "within 0.1 % of their lowest loss" in " ".join(early.notes)
    assert "lowest loss" not in " ".join(full.notes)
