"""What the rows of `eunomia reproduce tiresias` say of runs that are written down."""

from __future__ import annotations

import math

import pytest

from eunomia_reproduction.tiresias import POLICY, RIVALS, Shown, _ahead, _drawn, _factors


def shown(fifo: list[float], others: list[float]) -> Shown:
    """Every policy but FIFO has the same JCTs, one for each seed."""
    return {
        ("work", policy): {
            seed: {"jct_mean": jct, "jct_p95": 2 * jct}
            for seed, jct in enumerate(fifo if policy == "YARN-CS" else others)
        }
        for policy in POLICY
    }


def test_a_factor_is_the_geometric_mean_over_the_seeds_beside_the_published_one() -> None:
    row = next(row for row in _factors("work", shown([80, 20], [10, 10])) if "Tiresias-L" in row.series)
    assert row.published == 5.5
    assert row.measured == pytest.approx(math.sqrt(8 * 2))
    assert row.note.startswith("95 % interval")
    assert row.within is None


def test_an_ordering_that_fails_under_one_seed_is_outside() -> None:
    by_rival = {row.series.split(" of ")[-1]: row for row in _ahead("work", shown([80, 5], [10, 10]))}
    assert tuple(by_rival) == RIVALS
    assert (by_rival["YARN-CS"].measured, by_rival["YARN-CS"].within) == (1, False)
    assert by_rival["best effort"].within is False  # equal is not ahead


@pytest.mark.parametrize("load", [0.5, 2.0])
def test_drawn_jobs_are_so_much_work(load: float) -> None:
    trace = _drawn(3, load)
    work = (trace.scale_factor * trace.duration_s).sum()
    assert work / (60 * trace.submitted_s[-1]) == pytest.approx(load)
    assert len(set(trace.job_type or ())) == 10
