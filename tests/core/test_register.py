"""Rows of jobs as others name them."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.job_ids import JobIdList
from eunomia.model.row_index import RowIndex


def test_a_table_that_grows_as_ours_does_is_taken_at_its_rows() -> None:
    ours, theirs = RowIndex("ab"), ["a", "b"]
    rows = np.array([1, -1, 0])
    assert ours.rows(JobIdList(rows, theirs)) is rows
    theirs += ["c", "d"]
    ours.add("c")
    assert ours.rows(JobIdList(np.array([2]), theirs)).tolist() == [2]


def test_a_table_in_another_order_is_read_by_id_from_then_on() -> None:
    ours, theirs = RowIndex("a"), ["a"]
    assert ours.rows(JobIdList(np.array([0]), theirs)).tolist() == [0]
    for name in "bc":
        ours.add(name)
    theirs += ["c", "b"]
    assert ours.rows(JobIdList(np.array([1, 2, -1, 0]), theirs)).tolist() == [2, 1, -1, 0]


def test_ids_without_a_table_are_read() -> None:
    ours = RowIndex("abc")
    assert ours.rows(("c", "", "a")).tolist() == [2, -1, 0]
    assert ours.rows(JobIdList.of("b")).tolist() == [1]
    assert list(ours.names(np.array([2, 0]))) == ["c", "a"]


def test_a_job_that_is_not_registered_is_an_error() -> None:
    with pytest.raises(KeyError):
        RowIndex("a").rows(("b",))


def test_an_index_finds_jobs_that_came_after_the_first_look_up() -> None:
    ours = RowIndex("ab")
    assert ours.row("b") == 1
    ours.add_all(["c", "d"])
    assert (ours.add("d"), ours.add("e"), ours.row("c"), ours.by_id["e"]) == (3, 4, 2, 4)
