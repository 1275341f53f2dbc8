"""The world of Themis' authors: auctions beside all subsets, runs beside one iteration after the other, ρ by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from eunomia_reproduction.table import Request
from eunomia_reproduction.themis_simulator import experiment
from eunomia_reproduction.themis_simulator.auction import by_program, by_states, limits
from eunomia_reproduction.themis_simulator.bids import DRAWN, LOWEST_FIRST, WORST_FIRST, bids_of, worst_off
from eunomia_reproduction.themis_simulator.fairness import jain, rho_as_reported, rho_by_arrivals, rho_by_present
from eunomia_reproduction.themis_simulator.play import Auctions, award, play
from eunomia_reproduction.themis_simulator.rivals import (
    GANDIVA,
    OPTIMUS,
    SRSF,
    SRTF,
    TIRESIAS,
    WHOLE,
    give_singly,
)
from eunomia_reproduction.themis_simulator.workloads import MIXED, online, searches, stopped_early
from eunomia_reproduction.themis_simulator.world import PRESENT, Cluster, Jobs, Run, cluster_of, lease_to, new_run

SMALL = cluster_of([[[2, 1]], [[1], [1]]])  # 5 accelerators: a machine of two slots, and a rack of two machines
FACTORS = ((1.0, 0.9, 0.7, 0.5), (1.0, 1.0, 0.8, 0.8))


def jobs_of(
    iterations: Sequence[int], width: Sequence[int], minutes: Sequence[float], arrival: Sequence[float] | None = None
) -> Jobs:
    """Return jobs, every second one with the second factors."""
    count = len(iterations)
    kind = np.arange(count) % 2
    _, number = np.unique(np.column_stack((width, kind)), axis=0, return_inverse=True)
    return Jobs(
        np.zeros(count) if arrival is None else np.array(arrival, dtype=float),
        np.array(iterations),
        np.array(minutes, dtype=float),
        np.array(width),
        np.array(FACTORS)[kind],
        number.reshape(-1),
        np.tile((0.5, 0.5, 1.0, 0.0), (count, 1)),
    )


def speed(cluster: Cluster, factor: np.ndarray, held: Sequence[int]) -> float:
    """Return n * S by the definition: the lowest level with one unit for all."""
    level = next(level for level in range(4) if len({int(cluster.unit[one, level]) for one in held}) <= 1)
    return len(held) * float(factor[level])


def best_sum(cluster: Cluster, jobs: Jobs, run: Run) -> float:
    """Return the largest sum of worths over all choices of sets of accelerators, one of each job at most."""
    free = [one for one in range(len(run.holder)) if run.holder[one] < 0]
    bids: list[list[tuple[frozenset[int], float]]] = []
    for job in range(len(jobs.arrival)):
        held = [one for one in range(len(run.holder)) if run.holder[one] == job]
        mine = [(frozenset[int](), 0.0)]
        for size in range(1, min(int(jobs.width[job]) - len(held), len(free)) + 1):
            sets = [frozenset(some) for some in itertools.combinations(free, size)]
            most = max(speed(cluster, jobs.factor[job], [*held, *some]) for some in sets)
            left = float(jobs.iterations[job] * jobs.minutes[job])
            if most < 1 or (held and left / most >= run.clock[0] + left / speed(cluster, jobs.factor[job], held)):
                continue
            worth = math.log(most) if most > 1 else 1e-5
            mine += [(some, worth) for some in sets if speed(cluster, jobs.factor[job], [*held, *some]) == most]
        bids.append(mine)
    best = 0.0
    for choice in itertools.product(*bids):
        if len(frozenset().union(*(some for some, _ in choice))) == sum(len(some) for some, _ in choice):
            best = max(best, sum(worth for _, worth in choice))
    return best


@pytest.mark.parametrize("solve", [by_states, by_program])
@pytest.mark.parametrize("seed", range(8))
def test_the_winning_bids_are_worth_as_much_as_the_best_of_all_sets(solve: Callable[..., Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = jobs_of(rng.integers(1, 9, 4).tolist(), rng.integers(1, 4, 4).tolist(), [3.0] * 4)
    run = new_run(SMALL, jobs)
    run.stage[:], run.clock[0] = PRESENT, 1.0
    for one in rng.permutation(5)[: rng.integers(0, 3)].tolist():
        job = int(rng.integers(4))
        if run.won_count[job] < jobs.width[job]:
            lease_to(run, job, one, 20.0)
    bidding = bids_of(SMALL, jobs, run, worst_off(jobs, run, 1.0, LOWEST_FIRST), 0.0)
    rows = solve(bidding, *limits(SMALL, bidding))
    assert len(set(bidding.job[rows].tolist())) == len(rows)
    assert bidding.worth[rows].sum() == pytest.approx(best_sum(SMALL, jobs, run), abs=1e-9)
    before = (run.holder >= 0).sum()
    award(SMALL, run, bidding, rows, 20.0)
    assert (run.holder >= 0).sum() == before + bidding.size[rows].sum()  # each got all that it bid for
    for row in rows:
        won = [one for one in range(5) if run.holder[one] == bidding.job[row]]
        assert math.log(max(speed(SMALL, jobs.factor[bidding.job[row]], won), 1.00001)) == pytest.approx(
            bidding.worth[row], abs=1e-9
        )


def test_a_job_that_slots_do_not_slow_bids_for_all_sets_within_the_machine() -> None:
    cluster = cluster_of([[[2, 1, 1]]])
    jobs = jobs_of([9, 9], [2, 2], [3.0, 3.0])  # the first needs the slot of two, the second is as fast beside it
    run = new_run(cluster, jobs)
    run.stage[:] = PRESENT
    bidding = bids_of(cluster, jobs, run, worst_off(jobs, run, 1.0, LOWEST_FIRST), 0.0)
    rows = by_states(bidding, *limits(cluster, bidding))
    assert bidding.worth[rows].sum() == pytest.approx(2 * math.log(2))
    award(cluster, run, bidding, rows, 20.0)
    assert run.holder.tolist() == [0, 0, 1, 1]


def test_the_worst_off_bid_and_at_least_one() -> None:
    jobs = jobs_of([10] * 5, [1] * 5, [1.0] * 5)
    run = new_run(SMALL, jobs)
    run.stage[:], run.ratio[:], run.lost_at[:] = PRESENT, [1.0, 4.0, 2.0, 3.0, 2.0], 0.0
    assert worst_off(jobs, run, 0.0, WORST_FIRST).tolist() == [1]
    assert worst_off(jobs, run, 0.5, WORST_FIRST).tolist() == [1, 3]
    assert worst_off(jobs, run, 1.0, LOWEST_FIRST).tolist() == [0, 1, 2, 3, 4]
    assert set(worst_off(jobs, run, 0.6, DRAWN).tolist()) in ({1, 3, 2}, {1, 3, 4})  # 2 and 4 are level
    run.lost_at[:] = [-9.0, 0.0, 0.0, 0.0, 0.0]  # the best-off has waited longest
    assert worst_off(jobs, run, 0.0, WORST_FIRST).tolist() == [0]


class OneByOne:
    """The rivals' world, one iteration after the other: the oracle of the compiled loop."""

    def __init__(self, cluster: Cluster, jobs: Jobs, rival: int, lease: float):
        self.cluster, self.jobs, self.rival, self.lease = cluster, jobs, rival, lease
        count = len(jobs.arrival)
        self.left, self.used, self.ended = jobs.iterations.tolist(), [0.0] * count, [math.nan] * count
        self.now, self.end = [[] for _ in range(count)], [math.inf] * count
        self.won: list[list[int]] = [[] for _ in range(count)]
        self.owner, self.until = {}, {}
        self.lost = (jobs.arrival - 1).tolist()

    def time(self, job: int) -> float:
        """Return the minutes of the present iteration."""
        return float(self.jobs.minutes[job]) / speed(self.cluster, self.jobs.factor[job], self.now[job])

    def play(self) -> None:
        """Visit every end of an iteration."""
        moments = sorted(set(self.jobs.arrival.tolist()))
        while moments or min(self.end) < math.inf:
            at = min([*moments[:1], min(self.end)])
            moments = [moment for moment in moments if moment > at + 1e-9]
            events = sum(abs(arrival - at) < 1e-9 for arrival in self.jobs.arrival)
            over = [job for job in range(len(self.end)) if self.end[job] <= at + 1e-9]
            events += sum(self.finish(job, at) for job in over)
            for job in over:
                if math.isnan(self.ended[job]) and self.now[job]:
                    self.start(job, at)
            for _ in range(events):
                self.give(at)
                for job in range(len(self.end)):
                    if self.won[job] and not self.now[job]:
                        self.now[job], self.won[job], self.lost[job] = self.won[job], [], at
                        self.start(job, at)

    def start(self, job: int, at: float) -> None:
        self.end[job] = at + self.time(job)
        self.used[job] += self.time(job) * len(self.now[job])

    def finish(self, job: int, at: float) -> bool:
        self.left[job] -= 1
        held = self.won[job] + self.now[job]
        if self.left[job] == 0:
            keep: list[int] = []
            self.ended[job] = at
        else:
            keep = [one for one in held if self.until[one] > at + 1e-9]
            while keep:
                minutes = float(self.jobs.minutes[job])
                end = at + minutes * speed(self.cluster, self.jobs.factor[job], keep) / len(keep) ** 2
                fits = [one for one in keep if end <= self.until[one] + 1e-9]
                if len(fits) == len(keep):
                    break
                keep = fits
            if not keep:
                self.lost[job] = at
        for one in set(held) - set(keep):
            del self.owner[one]
        self.now[job], self.won[job], self.end[job] = keep, [], math.inf
        return len(keep) < len(held)

    def give(self, at: float) -> None:
        for one in range(len(self.cluster.unit)):
            bids = [self.bid(job, one, at) for job in range(len(self.end)) if self.jobs.arrival[job] <= at + 1e-9]
            bids = [bid for bid in bids if bid is not None]
            if one in self.owner or not bids:
                continue
            job = max(bids)[-1] * -1
            self.owner[one], self.until[one] = job, at + self.lease
            self.won[job].append(one)

    def bid(self, job: int, one: int, at: float) -> tuple[float, int, float, int] | None:
        """Return bid, −held, −last change and −number, the largest of which wins; None = it wants none."""
        next_ = self.won[job] + [k for k in self.now[job] if self.until[k] > self.end[job] + 1e-12]
        if not math.isnan(self.ended[job]) or len(next_) >= self.jobs.width[job]:
            return None
        work = self.left[job] * float(self.jobs.minutes[job])
        then, count = speed(self.cluster, self.jobs.factor[job], [*next_, one]), len(next_) + 1
        age = at - float(self.jobs.arrival[job])
        value = {
            GANDIVA: then,
            TIRESIAS: -self.used[job],
            SRTF: -work * then / count / count,
            SRSF: -(float(self.jobs.iterations[job] * self.jobs.minutes[job]) - work),
            OPTIMUS: (age + work / speed(self.cluster, self.jobs.factor[job], next_)) / (age + work / then)
            if next_
            else math.inf,
        }[self.rival]
        return (value if math.isinf(value) else float(f"{value:.9g}")), -len(next_), -self.lost[job], -job


@pytest.mark.parametrize("rival", [GANDIVA, TIRESIAS, SRTF, SRSF, OPTIMUS])
@pytest.mark.parametrize("seed", range(3))
def test_a_run_is_that_of_one_iteration_after_the_other(rival: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrival = np.concatenate((np.zeros(3), np.sort(rng.uniform(0, 60, 4))))
    jobs = jobs_of(
        rng.integers(3, 25, 7).tolist(), rng.integers(1, 5, 7).tolist(), rng.uniform(1.0, 30.0, 7).tolist(), arrival
    )
    slow = OneByOne(SMALL, jobs, rival, 20.0)
    slow.play()
    played = play(SMALL, jobs, rival, 20.0)
    assert played.ended == pytest.approx(slow.ended, rel=1e-9)
    assert played.used == pytest.approx(slow.used, rel=1e-9)


@pytest.mark.parametrize("f", [0.0, 0.8, 1.0])
def test_all_jobs_end_under_auctions_and_none_faster_than_alone(f: float) -> None:
    rng = np.random.default_rng(1)
    jobs = jobs_of(rng.integers(3, 25, 8).tolist(), [1, 2, 3, 4] * 2, rng.uniform(1.0, 30.0, 8).tolist())
    played = play(SMALL, jobs, Auctions(1.0 - f), 20.0)
    alone = jobs.iterations * jobs.minutes / jobs.width
    assert (played.ended >= alone - 1e-9).all()
    assert (played.used >= jobs.iterations * jobs.minutes - 1e-9).all()  # S is at most 1
    assert (rho_by_present(jobs, played.ended, 5) > 0).all()


@pytest.mark.parametrize(
    ("rule", "holders"), [(TIRESIAS, [1, 0, 1, 0, 0]), (TIRESIAS + WHOLE, [0, 1, 1, 0, 0])], ids=["singly", "whole"]
)
def test_a_rival_gives_single_accelerators_in_turn_or_a_whole_job_together(rule: int, holders: list[int]) -> None:
    machines = cluster_of([[[1], [2], [2]]])
    jobs = jobs_of([10, 10], [3, 2], [5.0, 5.0])
    run = new_run(machines, jobs)
    run.stage[:] = PRESENT
    run.lost_at[1] -= 1.0  # has waited longer, and wins the first accelerator
    assert give_singly(machines, jobs, run, rule, 20.0)
    assert run.holder.tolist() == holders
    assert not give_singly(machines, jobs, run, rule, 20.0)


@pytest.mark.parametrize("rival", [OPTIMUS, GANDIVA, SRTF])
def test_every_job_ends_under_rivals_that_serve_whole_jobs(rival: int) -> None:
    jobs = online(1)
    ended = play(MIXED, jobs, rival + WHOLE, 20.0).ended
    assert (ended - jobs.arrival >= jobs.iterations * jobs.minutes / jobs.width * (1 - 1e-9)).all()


def test_a_job_alone_keeps_its_accelerators_until_it_ends() -> None:
    jobs = jobs_of([60], [2], [2.0])
    played = play(SMALL, jobs, Auctions(1.0), 20.0)
    assert played.ended.tolist() == [60.0]
    assert played.used.tolist() == [120.0]
    assert rho_by_present(jobs, played.ended, 5).tolist() == [1.0]


def test_contention_by_hand() -> None:
    """2 accelerators; jobs of width 2 arrive at 0, 0 and 10, and end at 10, 30 and 40."""
    jobs = jobs_of([10, 10, 10], [2, 2, 2], [2.0, 2.0, 2.0], [0.0, 0.0, 10.0])  # each takes 10 alone
    ended = np.array([10.0, 30.0, 40.0])
    # Present: 2 until 30, then 1. Arrived: 2 until 10, then 3. Reported: 2 until 10, then the sum of widths, 6.
    assert rho_by_present(jobs, ended, 2) == pytest.approx([10 / 20, 30 / 20, 30 / (10 * (2 * 20 + 10) / 30)])
    assert rho_by_arrivals(jobs, ended, 2) == pytest.approx([0.5, 30 / (10 * (20 + 60) / 30), 30 / 30])
    assert rho_as_reported(jobs, ended, 2) == pytest.approx([0.5, 30 / (10 * (20 + 120) / 30), 30 / 60])
    assert jain(np.array([1.0, 1.0, 4.0])) == pytest.approx(36 / 54)


def test_the_lower_half_of_a_search_stops_first() -> None:
    assert stopped_early(np.array([300, 700, 500, 800])).tolist() == [300, 700, 400, 800]  # steps of 800 / 2
    assert stopped_early(np.array([90, 90, 90, 90, 90, 90, 90, 90])).tolist() == [30, 30, 30, 30, 60, 60, 90, 90]
    assert stopped_early(np.array([7])).tolist() == [7]


def test_workloads_have_the_sizes_and_the_work_of_the_published_lists() -> None:
    jobs = searches(0)
    assert len(jobs.arrival) == 488
    work = [float((one.minutes * one.iterations).sum()) / 60 for one in map(searches, range(5))]
    assert np.mean(work) == pytest.approx(2084, rel=0.05)  # accelerator-hours after trials that stop early
    arrivals = np.unique(online(0, contention=2.0).arrival)
    assert arrivals.tolist() == [10, 20, 30, 40, 50]
    slowed = [len(np.unique(online(0, network=part).arrival[online(0, network=part).factor[:, 3] < 0.9])) for part in
              (0.0, 0.4, 1.0)]  # fmt: skip
    assert slowed == [0, 2, 5]


def test_rows_are_means_over_draws_and_counts_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(orders: dict[int, Any], *_: object) -> tuple[dict[int, Any], dict[int, str]]:
        def figures(setting: experiment.Setting, seed: int) -> dict[str, float]:
            worst = 1.0 + seed + (setting.f == 0.0) - (setting.f == 1.0) * (seed - 0.5)
            return dict.fromkeys((*experiment.QUANTITIES, experiment.LEASES_GIVEN), 1.0) | {"worst ρ": worst}

        return {
            seed: {experiment._key(one): figures(one, seed) for one in experiment.settings(seed)} for seed in orders
        }, {}

    monkeypatch.setattr(experiment, "make_all", made)
    table = experiment.reproduce(Request(seeds=2))
    row = {(row.series, row.x, row.quantity): row for row in table.rows}
    at_0 = row["searches, Themis, leases of 20 min", 0.0, "worst ρ"]
    assert (at_0.measured, at_0.published) == (2.5, 9.8)
    held = row["worst ρ is larger at f = 0 than at 0.8, leases of 20 min", "", "draws"]
    assert (held.measured, held.published, held.within) == (2, 2, True)
    held = row["worst ρ is larger at f = 1 than at 0.8, leases of 20 min", "", "draws"]
    assert (held.measured, held.within) == (1, False)
    assert row["searches, SRTF, leases of 20 min", "", "worst ρ"].published == 2.0
    assert row["testbed: SLAQ, whole jobs ÷ one accelerator at a time", "", "worst ρ"].measured == 1.0
    assert [figure.name for figure in table.figures] == ["themis-simulator"]
