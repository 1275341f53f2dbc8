"""Accelerator-hours of source and import: sums by type and tenant, and differences with their causes."""

from __future__ import annotations

import numpy as np

from eunomia.traces.accelerator_hours import AcceleratorHours, HoursBalance, HoursChange, RowHours

SOURCE = AcceleratorHours({("t4", "bio"): 80.0, ("h100", "bio"): 40.0, ("t4", "phy"): 1.0})


def balance(written: AcceleratorHours, *changes: AcceleratorHours) -> HoursBalance:
    return HoursBalance(
        source=SOURCE, written=written, changes=tuple(HoursChange(what="a cause", hours=each) for each in changes)
    )


def test_hours_add_up_by_type_and_by_tenant_most_first() -> None:
    assert SOURCE.total == 121
    assert list(SOURCE.by_type().items()) == [("t4", 81), ("h100", 40)]
    assert list(SOURCE.by_tenant().items()) == [("bio", 120), ("phy", 1)]
    assert (SOURCE - SOURCE + SOURCE).by_owner == SOURCE.by_owner
    assert not SOURCE - SOURCE


def test_types_that_get_one_name_are_added() -> None:
    assert SOURCE.renamed({"h100": "t4"}).by_owner == {("t4", "bio"): 120, ("t4", "phy"): 1}


def test_rows_that_hold_several_types_count_with_each_entry() -> None:
    rows = RowHours(
        row=np.array([0, 1, 1, 3]),
        type=("t4", "h100"),
        type_code=np.array([0, 0, 1, 1]),
        tenant=("bio", "phy"),
        tenant_code=np.array([0, 1, 1, 0]),
        hours=np.array([1.0, 2.0, 4.0, 8.0]),
    )
    assert rows.total().by_owner == {("t4", "bio"): 1, ("t4", "phy"): 2, ("h100", "phy"): 4, ("h100", "bio"): 8}
    assert rows.of(np.array([1])).by_owner == {("t4", "phy"): 2, ("h100", "phy"): 4}
    assert rows.of(np.array([True, False, True, True])).by_owner == {("t4", "bio"): 1, ("h100", "bio"): 8}
    assert not rows.of(np.array([2, 7]))


def test_a_difference_with_a_cause_is_explained_and_another_is_not() -> None:
    left_out = AcceleratorHours({("t4", "phy"): -1.0})
    written = AcceleratorHours({("t4", "bio"): 80.0, ("h100", "bio"): 40.0})
    assert balance(written).unexplained().by_owner == {("t4", "phy"): -1}
    assert not balance(written, left_out).unexplained()


def test_sums_may_differ_by_a_thousandth_and_no_more() -> None:
    near, far = (AcceleratorHours(SOURCE.by_owner | {("t4", "bio"): hours}) for hours in (80.07, 80.09))
    assert not balance(near).unexplained()
    assert list(balance(far).unexplained().by_owner) == [("t4", "bio")]


def test_hours_that_are_counted_for_another_type_are_a_difference_though_the_total_is_right() -> None:
    moved = AcceleratorHours({("t4", "bio"): 90.0, ("h100", "bio"): 30.0, ("t4", "phy"): 1.0})
    found = balance(moved).as_dict()
    assert found["source"] == found["written"] == 121
    assert [(each["type"], each["accelerator_hours"]) for each in found["unexplained"]] == [("t4", 10), ("h100", -10)]
    assert found["by_type"]["t4"] == {"source": 81, "written": 91}
