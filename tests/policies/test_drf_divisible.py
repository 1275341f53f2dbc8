"""Dominant resource fairness in shares of time: worked by hand, and beside the paper's example."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from eunomia.model.arrays import Floats
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.view import View
from eunomia.policies.shares.drf_divisible import DrfDivisible

ENDLESS = (math.inf, math.inf)


def view_of(
    owners: Sequence[str],
    throughput: Sequence[Sequence[float]],
    capacity: Sequence[float],
    *,
    size: Sequence[int] | None = None,
    demand: Sequence[Sequence[float]] | None = None,
    room: Sequence[float] = ENDLESS,
    weight: Sequence[float] | None = None,
    said: dict[str, float] | None = None,
    whole: Floats | None = None,
) -> View:
    n = len(owners)
    tenants = Tenants.of(owners, {name: Tenant(weight=part) for name, part in (said or {}).items()})
    columns = {
        "throughput": np.array(throughput, dtype=float),
        "scale_factor": np.ones(n, dtype=np.int64) if size is None else np.array(size),
        "weight": np.ones(n) if weight is None else np.array(weight),
        "capacity": np.array(capacity, dtype=float),
        "tenant": np.array([tenants.names.index(name) for name in owners], dtype=np.int64),
        "tenants": tenants,
        "demand": np.zeros((n, 2)) if demand is None else np.array(demand, dtype=float),
        "host_capacity": np.array(room, dtype=float),
    }
    return View(at=0.0, types=tuple("abc"[: len(capacity)]), jobs=n, columns=columns, whole=whole)


def shares(view: View) -> list[list[float]]:
    return DrfDivisible().decide(view).x.tolist()


def test_the_example_of_the_paper_as_jobs() -> None:
    """Section 4.1, 9 CPUs and 18 GiB: A has 3 tasks of (1, 4) running, B 2 of (3, 1); each of four jobs its part."""
    view = view_of("AAAABBBB", [[1.0]] * 8, [80], demand=[[1, 4]] * 4 + [[3, 1]] * 4, room=(9, 18))
    answer = DrfDivisible().decide(view)
    assert answer.x[:, 0] == pytest.approx([3 / 4] * 4 + [1 / 2] * 4)
    assert not answer.fill


def test_a_crowd_of_jobs_gets_its_tenant_no_more() -> None:
    """Of 4 accelerators each tenant has 2: the lab's six jobs 1/3 of their time, the shop's two all of it."""
    view = view_of(["lab"] * 6 + ["shop"] * 2, [[1.0]] * 8, [4])
    answer = DrfDivisible().decide(view)
    assert answer.x[:, 0] == pytest.approx([1 / 3] * 6 + [1, 1])
    assert answer.fill


def test_what_a_job_leaves_its_tenants_others_have_first() -> None:
    """Of 4 accelerators the lab's two jobs have 2: the single has all of its time, the gang of 4 the other, 1/4."""
    view = view_of(["lab", "lab", "shop"], [[1.0]] * 3, [4], size=[1, 4, 4])
    assert DrfDivisible().decide(view).x[:, 0] == pytest.approx([1, 1 / 4, 1 / 2])


def test_tenants_and_jobs_count_by_their_weights() -> None:
    """Of 3 accelerators ann, of weight 2, has 2: her gangs of 2 share them 3 to 1. Bo's gang has the third."""
    view = view_of(
        ["ann", "ann", "bo"], [[1.0]] * 3, [3], size=[2, 2, 2], weight=[3, 1, 1], said={"ann": 2.0, "bo": 1.0}
    )
    assert DrfDivisible().decide(view).x[:, 0] == pytest.approx([3 / 4, 1 / 4, 1 / 2])


def test_a_part_below_a_tenant_is_a_part_of_its_part() -> None:
    """The lab and the shop have 2 of 4 each; of the lab's 2, lab/x has 1 and lab/y the other."""
    view = view_of(["lab/x", "lab/y", "shop"], [[1.0]] * 3, [4], size=[4, 4, 4])
    assert DrfDivisible().decide(view).x[:, 0] == pytest.approx([1 / 4, 1 / 4, 1 / 2])


def test_who_is_fastest_elsewhere_does_not_compete() -> None:
    """Two jobs want type a, one b; the two share a, and of b what is left, which is nothing."""
    view = view_of("ABC", [[2, 1], [2, 1], [1, 2]], [1, 1])
    assert shares(view) == pytest.approx(np.array([[1 / 2, 0], [1 / 2, 0], [0, 1]]))


def test_cpus_that_run_out_leave_accelerators_to_who_needs_none() -> None:
    """Of 4 CPUs A and B take 4 each: half of their time. C needs none and has all of it, on the third accelerator."""
    view = view_of("ABC", [[1.0]] * 3, [3], demand=[[4, 0], [4, 0], [0, 0]], room=(4, math.inf))
    assert DrfDivisible().decide(view).x[:, 0] == pytest.approx([1 / 2, 1 / 2, 1])


def test_a_job_that_needs_more_than_the_totals_gets_nothing_and_a_reason() -> None:
    view = view_of("AB", [[1.0]] * 2, [2], demand=[[5, 0], [1, 0]], room=(4, 8))
    answer = DrfDivisible().decide(view)
    assert answer.x[:, 0].tolist() == [0, 1]
    assert {m: str(reason) for m, reason in answer.why.items()} == {0: "it asks for more CPUs or memory than there are"}
    assert not answer.fill


def test_a_part_of_the_cluster_has_its_part_of_the_cpus() -> None:
    """Half of the accelerators come with 2 of 4 CPUs: a job that takes 4 has half of its time."""
    view = view_of("A", [[1.0]], [1], demand=[[4, 0]], room=(4, math.inf), whole=np.array([2.0]))
    assert shares(view) == [[pytest.approx(1 / 2)]]
