"""The published estimator: jobs are taken for references, and pairs that ran are known."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.answers import Rows
from eunomia.model.arrays import Array
from eunomia.model.job import Job
from eunomia.model.view import View
from eunomia.throughputs.estimators.pair_table import PairTable
from eunomia_reproduction.gavel.matched_jobs import MatchedJobs, PairsOfJobs

KINDS = ("x", "y", "z")
# Each job type keeps as much of its speed beside any other on both types, but z and y do not fit on the second.
KEPT = np.repeat(np.array([0.9, 0.6, 0.3])[:, None, None], 2, axis=1) * np.ones((3, 2, 3))
KEPT[2, 1, 1] = KEPT[1, 1, 2] = 0.0
TABLE = PairTable("by hand", ("k80", "v100"), KINDS, np.ones((3, 2)), KEPT)


def pairs_of(names: str, seed: int = 0) -> PairsOfJobs:
    """Jobs of these types that arrive a second apart, with two of the three types as references."""
    jobs = [
        Job(job_id=f"j{m}", job_type=name, total_steps=100, submitted=float(m), sequence=m)
        for m, name in enumerate(names)
    ]
    return PairsOfJobs(jobs, TABLE, ("v100", "k80"), references=2, profiled=1.0, seed=seed)


def test_a_job_keeps_what_its_reference_keeps_until_the_pair_has_run() -> None:
    pairs = pairs_of("xyz")
    before = pairs.kept(np.array([0, 1, 2]))
    known = {0.9, 0.6, 0.3, 0.0}
    assert set(before.ravel().tolist()) < known  # of two references
    pairs.ran("j0", "j2", 0)
    after = pairs.kept(np.array([0, 1, 2]))
    assert (after[0, 0, 2], after[2, 0, 0]) == (0.9, 0.3)  # the true ones, on that type
    untouched = np.ones(before.shape, dtype=np.bool_)
    untouched[[0, 2], 0, [2, 0]] = False
    assert (after == before)[untouched].all()


def test_another_job_of_the_same_types_has_learnt_nothing() -> None:
    pairs = pairs_of("xzxz")
    before = pairs.kept(np.array([2, 3]))
    pairs.ran("j0", "j1", 0)
    assert (pairs.kept(np.array([2, 3])) == before).all()


def test_a_pair_that_does_not_fit_is_left_out_of_the_answer_and_known_from_then_on() -> None:
    pairs = pairs_of("yz")
    rows = Rows(np.array([0, 0]), np.array([0, 1]), partner=np.array([1, 1]))
    assert pairs.fits(np.array([0, 1]), rows).tolist() == [False, True]  # v100 is the first type of the cluster
    assert pairs.kept(np.array([0, 1]))[0, 0, 1] == 0.0


def test_all_pairs_known_the_policy_answers_as_with_true_speeds() -> None:
    pairs = pairs_of("xxz")
    for one, other in (("j0", "j1"), ("j0", "j2"), ("j1", "j2")):
        for type in (0, 1):
            pairs.ran(one, other, type)
    columns: dict[str, Array] = {
        "throughput": np.ones((3, 2)),
        "scale_factor": np.ones(3, dtype=np.int64),
        "weight": np.ones(3),
        "capacity": np.array([1.0, 0.0]),
        "submitted": np.arange(3.0),
    }
    policy = MatchedJobs(pairs)
    answer = policy.decide(View(at=5.0, types=("v100", "k80"), jobs=3, columns=columns, memory={}))
    true = {"job_class": np.array([0, 0, 1]), "packed_throughput": KEPT[[0, 2]][:, ::-1][:, :, [0, 2]].swapaxes(1, 2)}
    known = policy.inner.decide(View(at=5.0, types=("v100", "k80"), jobs=3, columns={**columns, **true}, memory={}))
    assert answer.certificate is not None
    assert known.certificate is not None
    assert answer.certificate.objective == pytest.approx(known.certificate.objective)
