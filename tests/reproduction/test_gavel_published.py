"""What the published code does under some names: its oddities, and its runs job by job."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from eunomia.model.answers import Shares
from eunomia.model.arrays import Array, Floats
from eunomia.model.view import View
from eunomia.policies.shares.fifo_packed import FifoPacked
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia_reproduction.gavel.artifact import EveryPair, Untied
from eunomia_reproduction.gavel.packing import PublishedGandiva
from eunomia_reproduction.gavel.parity import of_run
from eunomia_reproduction.gavel.published_fifo import PublishedFifo, PublishedFifoPacked
from eunomia_reproduction.gavel.reference import RESULTS, read_reference

DATA = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "gavel"
TYPES = ("k80", "p100", "v100")


def queue_view(jobs: int, capacity: Floats, memory: dict[str, Array] | None = None) -> View:
    """Jobs on one accelerator each, which run on every type."""
    columns = {"throughput": np.ones((jobs, 3)), "scale_factor": np.ones(jobs, dtype=int), "capacity": capacity}
    return View(at=0.0, types=TYPES, jobs=jobs, columns=columns, memory=memory or {"number": np.full(jobs, -1.0)})


def numbered(answer: Shares, rows: list[int], new: int) -> dict[str, Array]:
    """Return the memory with these rows left, and new jobs after them."""
    return {**answer.memory, "number": np.append(answer.memory["number"][rows], np.full(new, -1.0))}


def test_a_stream_of_jobs_fills_the_last_type_by_name_first() -> None:
    policy, capacity = PublishedFifo(), np.array([2.0, 2.0, 2.0])
    first = policy.decide(queue_view(1, capacity))
    assert first.x[:, 2].tolist() == [1.0]
    second = policy.decide(queue_view(2, capacity, numbered(first, [0], 1)))
    third = policy.decide(queue_view(3, capacity, numbered(second, [0, 1], 1)))
    assert third.x.argmax(axis=1).tolist() == [2, 2, 1]


def test_a_cluster_that_fills_at_once_crowds_on_one_type() -> None:
    crowded = [PublishedFifo(seed).decide(queue_view(9, np.array([2.0, 2.0, 2.0]))).x.sum(axis=0) for seed in range(20)]
    assert max(held[2] for held in crowded) > 2
    assert all(held[:2].max() <= 2 for held in crowded)
    again = PublishedFifo(3).decide(queue_view(9, np.array([2.0, 2.0, 2.0]))).x.sum(axis=0)
    assert (again == crowded[3]).all()


def test_what_a_job_leaves_goes_to_the_head_of_the_queue_and_the_others_stay() -> None:
    policy, capacity = PublishedFifo(), np.array([0.0, 1.0, 1.0])
    full = policy.decide(queue_view(1, capacity))
    full = policy.decide(queue_view(2, capacity, numbered(full, [0], 1)))
    assert full.x.argmax(axis=1).tolist() == [2, 1]
    waits = policy.decide(queue_view(4, capacity, numbered(full, [0, 1], 2)))
    assert waits.x.sum(axis=1).tolist() == [1.0, 1.0, 0.0, 0.0]
    after = policy.decide(queue_view(3, capacity, numbered(waits, [1, 2, 3], 0)))
    assert after.x.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


def gangs_view(size: list[int], capacity: list[float], k80: list[float] | None = None) -> View:
    """Gangs whose speed is 1 on every type, or as `k80` says there; two on the same accelerators keep 0.8 each."""
    T = np.ones((len(size), 3))
    if k80 is not None:
        T[:, 0] = k80
    columns = {
        "throughput": T,
        "scale_factor": np.array(size),
        "capacity": np.array(capacity),
        "weight": np.ones(len(size)),
        "job_class": np.arange(len(size)),
        "packed_throughput": np.full((len(size), len(size), 3), 0.8),
    }
    return View(at=0.0, types=TYPES, jobs=len(size), columns=columns, memory={})


def pairs_of(answer: Shares) -> set[tuple[int, int]]:
    """Return the jobs that share."""
    assert answer.rows is not None
    assert answer.rows.partner is not None
    return {(a, b) for a, b in zip(answer.rows.job.tolist(), answer.rows.partner.tolist(), strict=True) if b >= 0}


def test_the_job_that_fits_nowhere_is_off_the_queue_and_those_behind_it_share() -> None:
    room = gangs_view([1, 8, 1], [0.0, 0.0, 2.0])
    assert pairs_of(PublishedFifoPacked().decide(room)) == {(0, 2)}
    assert pairs_of(FifoPacked().decide(room)) == set()


def test_where_no_accelerator_is_left_the_queue_keeps_its_head() -> None:
    assert pairs_of(PublishedFifoPacked().decide(gangs_view([1, 8, 1], [0.0, 0.0, 1.0]))) == set()
    assert pairs_of(PublishedFifoPacked().decide(gangs_view([1, 1, 1], [0.0, 0.0, 1.0]))) == {(0, 1)}


def test_a_job_that_fits_only_where_it_cannot_run_delays_no_other() -> None:
    view = gangs_view([1, 2, 1], [2.0, 0.0, 2.0], k80=[0.0, 0.0, 1.0])
    answers = PublishedFifoPacked().decide(view), FifoPacked().decide(view)
    runs = [answer.rows.job.tolist() for answer in answers if answer.rows is not None]
    assert runs == [[0, 2], [0]]


def test_equal_jobs_get_shares_that_differ_after_eight_digits_and_never_too_much() -> None:
    inner = MaxMinFairness(point="interior")
    view = gangs_view([1, 1, 1, 1], [1.0, 1.0, 1.0])
    tied, untied = inner.decide(view).x, Untied(inner, 0).decide(view)
    assert isinstance(untied, Shares)
    assert len(set(tied[:, 2].tolist())) == 1
    assert len(set(untied.x[:, 2].tolist())) == 4
    assert untied.x == pytest.approx(tied, rel=2e-9)
    assert (untied.x <= tied).all()


def test_pairs_that_cannot_run_take_time_and_are_not_answered() -> None:
    view = gangs_view([1, 1, 4, 4, 4], [8.0, 8.0, 8.0])  # the wide ones need a quarter of their time
    together = np.zeros((5, 5, 3))
    together[0, 1] = together[1, 0] = 0.8
    view = View(at=0.0, types=TYPES, jobs=5, columns={**view.columns, "packed_throughput": together}, memory={})
    inner = MaxMinFairness(space_sharing=True, point="interior")
    plain, every = inner.decide(view), EveryPair(inner).decide(view)
    assert pairs_of(every) == {(0, 1)}
    assert every.x.sum() < 0.9 * plain.x.sum()


def pairs_view(together: Floats, memory: Floats) -> View:
    """Jobs of one kind on one accelerator each, whose speeds alone are 1; together (type,) is what each keeps."""
    jobs = len(memory)
    columns = {
        "throughput": np.ones((jobs, 3)),
        "scale_factor": np.ones(jobs, dtype=int),
        "capacity": np.ones(3),
        "job_class": np.zeros(jobs, dtype=int),
        "packed_throughput": together[None, None],
    }
    return View(at=0.0, types=TYPES, jobs=jobs, columns=columns, memory={"pair": memory})


@pytest.mark.parametrize(
    ("together", "kept"),
    [((0.17, 0.17, 0.17), True), ((0.16, 0.16, 0.16), False), ((0.0, 0.9, 0.9), False)],
)
def test_a_pair_is_kept_though_it_loses_unless_a_type_has_no_room_for_it(
    together: tuple[float, ...], kept: bool
) -> None:
    pair = np.array([7.0, -1.0, -1.0, 7.0])
    answers = [PublishedGandiva(seed).decide(pairs_view(np.array(together), pair)).memory["pair"] for seed in range(9)]
    assert all(answer[0] == answer[3] for answer in answers) is kept


def test_jobs_that_fit_are_not_packed() -> None:
    answer = PublishedGandiva().decide(pairs_view(np.full(3, 0.9), np.array([0.0, 0.0, -1.0])))
    assert answer.rows is not None
    assert answer.rows.partner is None or (answer.rows.partner < 0).all()
    assert answer.x == pytest.approx(np.full(9, 1 / 3))


@pytest.mark.skipif(not (DATA / RESULTS).is_file(), reason=f"there are no results of Gavel in {DATA}")
@pytest.mark.parametrize("policy", ["fifo", "gandiva"])
def test_every_job_of_the_published_runs_ends_as_there(policy: str) -> None:
    found = read_reference(DATA)
    for one in (run for run in found.runs if run.policy == policy and len(run.jct) <= 100):
        same = next(row for row in of_run(one, found) if row.quantity == "jobs with the same JCT")
        assert same.measured == same.published == len(one.jct)
