"""Water filling worked by hand, and beside the answers of Gavel's own procedure."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.model.arrays import Floats
from eunomia.solvers.water_filling.tree import Tree
from eunomia.solvers.water_filling.waterfill import fill

DATA = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
INSTANCES = DATA / "gavel" / "policy_instances.json"
HIERARCHICAL = Path(__file__).with_name("gavel_hierarchical.txt")


def two_floors(inner: str, row_weight: Floats | None = None) -> Tree:
    """Return two groups of weights 1 and 2: rows 0 and 1 in the first, row 2 in the second."""
    return Tree(
        parent=np.array([-1, -1]),
        weight=np.array([1.0, 2.0]),
        inner=(inner, "share"),  # type: ignore[arg-type]
        group_of=np.array([0, 0, 1]),
        row_weight=np.ones(3) if row_weight is None else row_weight,
    )


def test_what_a_full_row_leaves_goes_to_the_others() -> None:
    """Two units for three rows, the first capped at ¼: the others share what it leaves, 7/8 each."""
    one = np.ones(3)
    filled = fill(np.ones((3, 1)), one, np.array([2.0]), one, cap=np.array([0.25, 1.0, 1.0]))
    np.testing.assert_allclose(filled.level, [0.25, 0.875, 0.875], rtol=1e-12)
    assert filled.own.tolist() == [True, False, False]
    np.testing.assert_allclose(filled.price[0], [0.5])


def test_a_row_with_a_column_of_its_own_rises_after_the_others_have_stopped() -> None:
    """Rows 0 and 1 share the first column by halves; row 2, which can use both, then has all of the second."""
    rate = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    filled = fill(rate, np.ones(3), np.ones(2), np.ones(3))
    np.testing.assert_allclose(filled.level, [0.5, 0.5, 1.0], rtol=1e-12)
    assert filled.frozen_in.tolist() == [1, 1, 2]


def test_a_row_that_no_column_serves_gets_nothing_and_lowers_no_other() -> None:
    filled = fill(np.array([[0.0], [1.0]]), np.ones(2), np.ones(1), np.ones(2))
    assert filled.level.tolist() == [0.0, 1.0]
    assert filled.frozen_in.tolist() == [0, 1]


def test_without_capacity_all_get_nothing() -> None:
    filled = fill(np.ones((2, 1)), np.ones(2), np.zeros(1), np.ones(2))
    assert filled.level.tolist() == [0.0, 0.0]
    assert filled.phases == 0
    assert filled.x.shape == (2, 1)


def test_groups_get_by_weight_and_split_by_weight() -> None:
    """1½ units, groups 1 : 2, rows 3 : 1 in the first: ½ and 1, and ⅜ and ⅛ of the ½."""
    tree = two_floors("share", np.array([3.0, 1.0, 1.0]))
    filled = fill(np.ones((3, 1)), np.ones(3), np.array([1.5]), np.ones(3), tree=tree)
    np.testing.assert_allclose(filled.level, [0.375, 0.125, 1.0], rtol=1e-12)


def test_a_group_whose_rows_are_full_leaves_the_rest_to_the_other() -> None:
    """2½ units: the second group is full at 1, by when the first has ½; what is left over, 1, is the first's."""
    filled = fill(np.ones((3, 1)), np.ones(3), np.array([2.5]), np.ones(3), tree=two_floors("share"))
    np.testing.assert_allclose(filled.level, [0.75, 0.75, 1.0], rtol=1e-12)


def test_the_first_row_of_a_group_is_served_before_the_second() -> None:
    """2¼ units: the first group's 1¼ fill its first row, and ¼ is left for its second."""
    filled = fill(np.ones((3, 1)), np.ones(3), np.array([2.25]), np.ones(3), tree=two_floors("first"))
    np.testing.assert_allclose(filled.level, [1.0, 0.25, 1.0], rtol=1e-12)


def test_a_tree_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="group 0 of the tree: its parent"):
        Tree(
            parent=np.array([0]),
            weight=np.ones(1),
            inner=("share",),
            group_of=np.zeros(1, dtype=np.int64),
            row_weight=np.ones(1),
        )


def rates(instance: dict[str, Any]) -> Floats:
    """Return the rates of an instance's jobs, (job, type), from Gavel's table."""
    with gzip.open(DATA / "gavel" / "simulation_throughputs.json.gz", "rt") as file:
        table = json.load(file)
    jobs = [f"('{job['job_type']}', {job['scale_factor']})" for job in instance["jobs"]]
    return np.array([[float(table[kind][job]["null"]) for kind in instance["cluster"]] for job in jobs])


def tree_of(instance: dict[str, Any], inner: str) -> Tree:
    """Return its entities with their weights, jobs by id."""
    names = sorted(instance["entity_weights"])
    return Tree(
        parent=np.full(len(names), -1),
        weight=np.array([float(instance["entity_weights"][name]) for name in names]),
        inner=(inner,) * len(names),  # type: ignore[arg-type]
        group_of=np.array([names.index(job["entity"]) for job in instance["jobs"]]),
        row_weight=np.array([job["priority_weight"] for job in instance["jobs"]], dtype=float),
    )


@pytest.mark.parametrize(
    ("policy", "inner"),
    [
        ("max_min_fairness_water_filling_perf", None),
        ("hierarchical_fairness", "share"),
        ("hierarchical_fifo", "first"),
    ],
)
def test_no_job_order_of_gavel_is_lexicographically_better(policy: str, inner: str | None) -> None:
    """Gavel's procedure may stop early, after which rows that could rise do not; ours never has a lower vector."""
    if not INSTANCES.is_file():
        pytest.skip(f"no {INSTANCES}; set EUNOMIA_DATA to the folder of reference data")
    for instance in json.loads(INSTANCES.read_text())["instances"]:
        if "effective_throughputs" not in instance["results"].get(policy, {}):
            continue
        T, size = rates(instance), np.array([float(job["scale_factor"]) for job in instance["jobs"]])
        capacity = np.array([float(count) for count in instance["cluster"].values()])
        need = np.array(instance["proportional_throughputs"]) / size
        theirs = np.array(instance["results"][policy]["effective_throughputs"], dtype=float) / need
        weight = np.array([job["priority_weight"] for job in instance["jobs"]], dtype=float)
        if inner is None:
            levels = fill(T, size, capacity, need * weight).level
            theirs = theirs / weight
        else:
            levels = fill(T, size, capacity, need, tree=tree_of(instance, inner)).level
        assert_not_below(levels, theirs, None if inner is None else tree_of(instance, inner))


@pytest.mark.parametrize("aware", [True, False])
def test_the_levels_of_gavels_hierarchical_figure(aware: bool) -> None:
    """Jobs 1 to 18 of entities of weights 1, 2 and 3, jobs of weights 1 and 2, on three accelerators of each type.

    The lowest level is the printed one everywhere. Above it their procedure may stop early; where it does not (one job,
    17 if aware, 18), all jobs have theirs.
    """
    rng = random.Random(0)
    rate = np.array([sorted(rng.random() for _ in range(3)) for _ in range(18)])
    if not aware:
        rate = np.ones_like(rate)
    lines = [line.split() for line in HIERARCHICAL.read_text().splitlines()]
    printed = [np.array(line[1:], dtype=float) for line in lines if line[0] == ("aware" if aware else "agnostic")]
    assert [len(theirs) for theirs in printed] == list(range(1, 19))
    for jobs, theirs in enumerate(printed, start=1):
        job = np.arange(jobs)
        groups = job[-1] // 6 + 1
        tree = Tree(
            parent=np.full(groups, -1),
            weight=np.arange(1.0, groups + 1.0),
            inner=("share",) * groups,
            group_of=job // 6,
            row_weight=job % 2 + 1.0,
        )
        need = rate[:jobs].mean(axis=1)
        levels = fill(rate[:jobs], np.ones(jobs), np.full(3, 3.0), need, tree=tree).level
        weight = weights(tree)
        assert min(levels / weight) == pytest.approx(min(theirs / weight), rel=2e-3)
        assert_not_below(levels.round(3), theirs, tree)
        if jobs in ((1, 17, 18) if aware else (1, 18)):
            np.testing.assert_allclose(levels, theirs, atol=6e-4)


def weights(tree: Tree) -> Floats:
    """Return each row's share of its group's weight, for a tree of one floor."""
    whole = np.bincount(tree.group_of, tree.row_weight, len(tree.weight))
    return np.asarray(tree.weight[tree.group_of] * tree.row_weight / whole[tree.group_of])


def assert_not_below(levels: Floats, theirs: Floats, tree: Tree | None) -> None:
    """Sorted, what we give is nowhere lower at the first place where the two differ by more than 1e-3.

    It is levels without a tree, levels per weight of row and group where rows share, and each group's sum per weight
    where they are served in order.
    """
    if tree is not None and tree.inner[0] == "first":
        levels, theirs = (np.bincount(tree.group_of, part, len(tree.weight)) / tree.weight for part in (levels, theirs))
    elif tree is not None:
        levels, theirs = levels / weights(tree), theirs / weights(tree)
    ours, other = np.sort(levels), np.sort(theirs)
    apart = np.flatnonzero(np.abs(ours - other) > 1e-3 * np.maximum(ours, other))
    assert len(apart) == 0 or ours[apart[0]] > other[apart[0]], (ours, other)
