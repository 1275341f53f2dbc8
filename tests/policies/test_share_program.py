"""The linear program for policies of one's own: by hand, and against the policies that are shipped."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia import ShareProgram, View, policies
from eunomia.solvers.program import Infeasible
from eunomia.testing.sample_views import a_view


def view_of(throughput: list[list[float]], size: list[int], capacity: list[float]) -> View:
    columns = {
        "throughput": np.array(throughput, dtype=float),
        "scale_factor": np.array(size, dtype=np.int64),
        "capacity": np.array(capacity, dtype=float),
    }
    return View(at=0.0, types=("v100", "k80")[: len(capacity)], jobs=len(size), columns=columns)


def test_two_jobs_of_opposite_tastes_each_get_their_type() -> None:
    view = view_of([[3, 1], [1, 3]], [1, 1], [1, 1])
    for found in (ShareProgram(view).maximise(view.throughput), ShareProgram(view).maximise_least(view.throughput)):
        assert np.allclose(found.x, np.eye(2))
    assert found.certificate is not None and found.certificate.objective == pytest.approx(3.0)
    assert found.certificate.gap < 1e-9


def test_a_floor_costs_what_the_others_lose() -> None:
    view = view_of([[4.0], [1.0]], [1, 1], [1])
    assert np.allclose(ShareProgram(view).maximise(view.throughput).x, [[1], [0]])
    floor = ShareProgram(view).at_least(view.throughput, np.array([-np.inf, 0.25]))
    assert np.allclose(floor.maximise(view.throughput).x, [[0.75], [0.25]])
    both = ShareProgram(view).at_least(np.ones((2, 1)), 0.25).at_most(np.ones((2, 1)), 0.5)
    assert np.allclose(both.maximise(view.throughput).x, [[0.5], [0.5]])


def test_no_share_goes_to_a_type_that_cannot_run_the_job_or_is_too_narrow() -> None:
    view = view_of([[0, 1], [9, 1]], [1, 2], [1, 4])
    x = ShareProgram(view).maximise(np.array([[100.0, 1.0], [100.0, 1.0]])).x
    assert x[0, 0] == x[1, 0] == 0
    assert np.allclose(x[:, 1], 1)


def test_without_jobs_the_answer_is_empty() -> None:
    view = view_of([], [], [1, 1])
    view = View(at=0.0, types=view.types, jobs=0, columns={**view.columns, "throughput": np.empty((0, 2))})
    assert ShareProgram(view).maximise(np.empty((0, 2))).x.shape == (0, 2)
    assert ShareProgram(view).maximise_least(np.empty((0, 2))).x.shape == (0, 2)


def test_floors_that_cannot_be_kept_are_an_error() -> None:
    view = view_of([[1.0], [1.0]], [1, 1], [1])
    with pytest.raises(Infeasible, match="no point satisfies"):
        ShareProgram(view).at_least(np.ones((2, 1)), 0.6).maximise(view.throughput)


@pytest.mark.parametrize(("table", "rule"), [(np.ones(2), "has shape"), (np.full((2, 1), np.nan), "not finite")])
def test_a_table_of_another_shape_or_with_nan_is_an_error(table: np.ndarray, rule: str) -> None:
    view = view_of([[1.0], [1.0]], [1, 1], [1])
    with pytest.raises(ValueError, match=rule):
        ShareProgram(view).maximise(table)


@pytest.mark.parametrize("seed", range(12))
def test_it_finds_the_optima_of_the_policies_that_are_shipped(seed: int) -> None:
    total = policies.load("max_throughput")(normalised=False)
    view = a_view(total, seed)
    best = total.decide(view).certificate
    found = ShareProgram(view).maximise(view.throughput).certificate
    assert best is not None and found is not None
    assert found.objective == pytest.approx(best.objective, rel=1e-7, abs=1e-9)
