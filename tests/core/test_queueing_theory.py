"""Where theory has an answer, the simulated queue has the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eunomia.model.arrays import Floats
from eunomia.model.job import Job
from eunomia.model.topology import Node
from eunomia.policies.order.fifo import Fifo
from eunomia.testing.small_worlds import SmallWorld, one_type, play


def erlang_c(servers: int, load: float) -> float:
    """Return P(wait) of M/M/c with c·ρ = a: (a^c / c!) / (1 − ρ) ÷ (Σ_{k<c} a^k / k! + the same)."""
    a = servers * load
    wait = a**servers / math.factorial(servers) / (1 - load)
    return wait / (sum(a**k / math.factorial(k) for k in range(servers)) + wait)


def waits(seed: int, jobs: int, servers: int, load: float) -> Floats:
    """Return the waits of Poisson arrivals with exponential service of mean 1, the first tenth left out."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / (servers * load), jobs))
    needs = rng.exponential(1.0, jobs)
    crowd = tuple(
        Job(job_id=str(i), sequence=i, submitted=at, total_steps=need)
        for i, (at, need) in enumerate(zip(arrivals.tolist(), needs.tolist(), strict=True))
    )
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=servers),), jobs=crowd, speeds=one_type())
    figures = play(Fifo(), world, checked=False, most_moments=10 * jobs).figures.jobs
    return np.asarray((figures["first_started_s"] - figures["submitted_s"])[jobs // 10 :])


def check_mean_wait(runs: int, jobs: int, servers: int, load: float) -> None:
    """Compare with Wq = C(c, a) / (c μ − λ); batches of 1/10 of a run are far enough apart to be independent."""
    expected = erlang_c(servers, load) / (servers - servers * load)
    batches = np.concatenate(
        [[part.mean() for part in np.array_split(waits(seed, jobs, servers, load), 10)] for seed in range(runs)]
    )
    half_width = 3.29 * batches.std(ddof=1) / math.sqrt(len(batches))  # 99.9 %
    assert abs(batches.mean() - expected) <= half_width
    assert half_width < 0.25 * expected  # or the interval would prove nothing


def test_erlang_c_by_hand() -> None:
    """c = 2, ρ = ½, a = 1: (1/2) / (1/2) = 1 over 1 + 1 + 1."""
    assert erlang_c(2, 0.5) == pytest.approx(1 / 3)


@pytest.mark.slow
def test_the_mean_wait_of_four_servers_is_erlangs() -> None:
    check_mean_wait(runs=4, jobs=6_000, servers=4, load=0.8)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_mean_wait_of_eight_servers_is_erlangs_over_200_000_jobs() -> None:
    check_mean_wait(runs=10, jobs=20_000, servers=8, load=0.85)
