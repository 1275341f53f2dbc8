"""What the generator draws has Philly's mix of ends and reasons, and what gangs wait for is told by size."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.backends.simulated.fates import failing_by_class, size_class
from eunomia.reproduction.philly import delays, failures
from eunomia.reproduction.philly.averages import told
from eunomia.reproduction.philly.filled import running_jobs
from eunomia.traces.distributions import philly


def test_final_status_reasons_and_sizes_are_as_near_as_they_have_to_be() -> None:
    found = [failures.drawn(seed) for seed in range(10)]
    rows = [*failures.statuses(found), *failures.reasons(found, 10)]
    checked = [row for row in rows if row.within is not None]
    assert not [row for row in checked if not row.within]
    assert sum(row.quantity == "rtf_p50" for row in checked) == 22
    assert sum(row.quantity == "jobs" for row in checked) == 3
    assert sum(row.quantity == "trials" for row in checked) >= 3 * 8


def test_wide_gangs_fail_more_often_and_all_together_as_often_as_was_said() -> None:
    sizes = np.repeat([1, 4, 8], [9000, 600, 400])
    part = failing_by_class(sizes, 0.172)
    assert part[0] < part[1] < part[2] <= 1
    assert float(part[size_class(sizes)].mean()) == pytest.approx(0.172, rel=1e-9)


def test_a_wait_counts_for_what_it_mostly_was() -> None:
    seconds = np.array([[5.0, 1.0, 0.0], [0.0, 3.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 9.0]])
    one = delays.Waited(seconds, np.array([2, 4, 8, 16]), 0.5)
    rows = {(row.series, row.x): row for row in delays.delays([one])}
    share = "Table 2: waits for fragmentation"
    assert rows[share, "2-4"].measured == 0.5
    assert rows[share, "5-8"].measured == 1.0
    assert rows[share, ">8"].measured is None  # its only job waited for neither
    assert rows["Table 2: 5-8 wait more for fragmentation than 2-4", ""].within is True


def test_the_workload_is_played_and_no_second_of_waiting_is_without_a_cause() -> None:
    played = delays.waited(0, jobs=150)
    assert len(played.size) == 150
    assert played.seconds[:, 2].sum() == 0


def test_the_jobs_that_run_at_first_fill_the_cluster_and_are_those_that_run_long() -> None:
    found = running_jobs(3, 560.0, ("x", "y"))
    assert 560 - 32 < sum(job.scale_factor for job in found) <= 560
    assert [job.tenant for job in found[:4]] == ["x", "y", "x", "y"]
    rng = np.random.default_rng(0)
    _, duration_s = philly(*rng.spawn(2), 100_000)
    left_s = np.concatenate([[job.total_steps for job in running_jobs(seed, 560.0, ("x",))] for seed in range(30)])
    # of a length-biased draw, a uniform part is left: E[left] = E[d²] / 2 E[d]
    assert left_s.mean() == pytest.approx((duration_s**2).mean() / duration_s.mean() / 2, rel=0.15)


def test_an_interval_is_told_with_its_seeds() -> None:
    assert told([1.0, 3.0]).endswith("over 2 seeds")
    assert (told([1.0]), told([])) == ("one seed", "none was drawn")
