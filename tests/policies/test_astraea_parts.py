"""The formulas of ASTRAEA, each worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from eunomia.model.arrays import Array
from eunomia.policies.grants.astraea.phases import budgets, serve
from eunomia.policies.grants.astraea.selection import KEYS, SelectionInputs, chances, classes, line_up, ranked
from eunomia.policies.grants.astraea.tenant_order import HOUR_S, last_hours, ratio

L = 900.0
THREE = SelectionInputs(
    submitted=np.array([0.0, 10.0, 20.0]),
    size=np.array([8, 1, 2]),
    fairness=np.array([1.0, 1.02, 0.0]),
    is_new=np.array([False, False, True]),
    ran=np.array([100.0, 300.0, 0.0]),
    life=np.array([400.0, 390.0, 380.0]),
    remaining=np.array([50.0, 500.0, 30.0]),
    chance=np.array([0.5, 0.1, 1.0]),
    draw=np.array([1, 2, 0]),
)


@pytest.mark.parametrize(
    ("selection", "first"),
    [
        ("fairness", [2, 0, 1]),
        ("disc_fairness", [2, 0, 1]),  # 1.00 and 1.02 are of one class: the earlier one is first
        ("job_reward", [2, 1, 0]),  # in that class 1 × 0.1 beats 0.5 / 8
        ("themis", [2, 0, 1]),  # 400 / (100 + 300 + 50), 390 / (306 + 90 + 500), and 1 for who is new
        ("2das", [2, 0, 1]),
        ("smallestfirst", [1, 2, 0]),
        ("shortestremainfirst", [2, 0, 1]),
        ("fifo", [0, 1, 2]),
        ("random", [2, 0, 1]),
    ],
)
def test_jobs_are_ranked_by_the_selection(selection: str, first: list[int]) -> None:
    assert ranked(KEYS[selection](THREE)).tolist() == first  # type: ignore[index]


def test_themis_is_about_who_would_have_been_done_alone() -> None:
    starved = replace(THREE, fairness=np.array([0.25, 1.02, 0.0]))
    assert ranked(KEYS["themis"](starved)).tolist() == [0, 2, 1]  # 400 / (25 + 300 + 50) is more than 1


def test_classes_part_the_starved_from_the_over_served() -> None:
    # f = -ln ρ / √(1 + ln² ρ) cut into fifths of (-1, 1): ρ = 1/e has f = 0.707, the fifth of the fifths.
    assert classes(np.array([0.0, 1e-9, 1 / math.e, 0.8, 1.0, 1.25, math.e, 1e9])).tolist() == [0, 1, 1, 2, 3, 4, 5, 5]


def test_the_chance_to_end_is_reported_by_those_that_ended() -> None:
    past = np.array([100.0, 200.0, 300.0, 400.0])
    # After 100, three went on: one ended by 200, two by 300. No job used more than 400.
    assert chances(past, np.array([100.0, 100.0, 400.0]), np.array([100.0, 200.0, 1.0])).tolist() == [1 / 3, 2 / 3, 1]


def test_who_starves_is_first_and_by_submission_whatever_the_keys_say() -> None:
    keys, submitted = (np.array([3.0, 2.0, 1.0, 0.0]),), np.array([0.0, 1.0, 2.0, 3.0])
    line = line_up(keys, submitted, np.array([True, True, False, False]), np.array([0, 0, 0, 1]))
    assert line.tolist() == [0, 1, 2, 3]
    assert line_up(keys, submitted, np.zeros(4, dtype=bool), np.array([1, 0, 0, 0])).tolist() == [3, 2, 1, 0]


def given(sizes: list[list[int]], free: int, **other: Array) -> list[int]:
    """Return budgets of tenants with quotas 6 and 2 whose jobs ask for that."""
    first = np.cumsum([0, *map(len, sizes)])
    none, quota = np.zeros(2), np.array([6, 2])
    said = {"held": none.astype(np.int64), "used": none, "entitled": none} | other
    size = np.array([z for jobs in sizes for z in jobs], dtype=np.int64)
    return budgets(size, first, free, said["held"], quota, said["used"], said["entitled"], L).tolist()


def test_everybody_gets_a_fifth_first_and_then_the_least_used_over_entitled() -> None:
    # First (0/6 < 1/5), second (0/2), first (1/6); then U/W is 2/6 against 1/2, and so on to 6 and 2.
    assert given([[1] * 8, [1] * 8], 8) == [6, 2]


def test_who_used_less_in_the_window_catches_up() -> None:
    entitled = np.array([6.0, 2.0]) * 3600
    behind = given([[1] * 8, [1] * 8], 8, used=np.array([6.0, 1.0]) * 3600, entitled=entitled)
    # Each has a fifth at 2 and 1: 23,400 / 27,000 = 0.87 against 4,500 / 9,000 = 0.5, which rises by tenths.
    assert behind == [3, 5]


def test_a_tenant_gets_more_than_its_quota_when_no_job_else_asks() -> None:
    assert given([[], [1] * 8], 8) == [0, 8]


def test_gangs_that_do_not_fit_are_passed_over_on_paper() -> None:
    assert given([[8, 4, 4], []], 6) == [4, 0]
    assert given([[8], []], 6) == [0, 0]


def served(size: list[int], budget: int, free: int, **other: Array | bool) -> tuple[list[int], list[int]]:
    """Serve one tenant that holds nothing."""
    n, fresh = len(size), np.asarray(other.get("fresh", np.zeros(0, dtype=np.int64)))
    held = np.array([fresh.sum()], dtype=np.int64)
    seated, ended = serve(
        np.array(size),
        np.array([0, n]),
        np.zeros((n, 1), dtype=np.int64),
        np.asarray(other.get("never_ran", np.zeros(n, dtype=bool))),
        np.array([int(other.get("starving", 0))]),
        np.array([free]),
        held,
        np.array([budget]),
        fresh,
        np.zeros(len(fresh), dtype=np.int64),
        np.array([0, len(fresh)]),
        bool(other.get("block", False)),
    )
    return np.flatnonzero(seated >= 0).tolist(), ended.tolist()


def test_who_does_not_fit_holds_up_those_behind_it_where_lines_are_blocked() -> None:
    assert served([1, 8, 1], 3, 4) == ([0, 2], [0])
    assert served([1, 8, 1], 3, 4, block=True) == ([0], [0])


def test_who_starves_holds_up_the_line_until_it_sits() -> None:
    assert served([8, 1], 8, 4, starving=1) == ([], [0])
    assert served([4, 8, 1], 8, 8, starving=1) == ([0, 2], [0])  # it sits, and the line is open again


def test_a_new_job_ends_as_many_fresh_leases_as_it_needs() -> None:
    fresh = np.array([1, 2, 4])
    assert served([3], 7, 0, fresh=fresh, never_ran=np.array([True])) == ([0], [2])
    assert served([3], 7, 0, fresh=fresh, never_ran=np.array([False])) == ([], [0])


def test_the_window_slides_by_parts_of_its_first_hour() -> None:
    hourly = np.arange(1.0, 5.0)[:, None, None] * np.ones((1, 1, 3))  # four hours, the last one is the present
    assert last_hours(hourly, 3 * HOUR_S + 900, 2).tolist() == [[4 + 3 + 0.75 * 2] * 3]
    assert last_hours(hourly, 3 * HOUR_S + 900, 24).tolist() == [[10.0] * 3]


def test_nothing_due_is_not_unfair() -> None:
    assert ratio(np.array([0.0, 3.0]), np.array([0.0, 2.0]), unknown=1.0).tolist() == [1.0, 1.5]
