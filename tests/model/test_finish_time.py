"""The time of an app on a private part of the cluster, worked by hand in its three readings."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.finish_time import IDEAL_TIMES, IdealTime, ideal_time


def of_one(longest: float, work: float, demand: float, rivals: float, devices: float) -> dict[IdealTime, float]:
    """Return T_id of one app by each reading."""
    columns = tuple(np.array([value]) for value in (longest, work, demand, rivals))
    return {ideal: ideal_time(*columns, devices, ideal).item() for ideal in IDEAL_TIMES}


def test_a_search_with_one_long_trial_waits_for_it_once_on_its_own_part_and_not_n_times() -> None:
    """Trials of 100 s on 2 accelerators, one of 1000: 2900 accelerator-seconds of ten accelerators at once.

    Its part of 16 among four apps is 4 accelerators: 725 s of work, 1000 s for the longest. On all 16 it uses 10:
    290 s of work, four times that is 1160, and four times the longest is 4000.
    """
    assert of_one(1000, 2900, 10, 4, 16) == {"share": 1000.0, "work": 1160.0, "longest": 4000.0}


def test_an_app_that_needs_more_than_its_part_takes_as_long_as_its_work_does_there() -> None:
    """8000 accelerator-seconds on 16 / 4 = 4 accelerators are 2000 s; on all 16, which it can use, 500 s."""
    assert of_one(100, 8000, 40, 4, 16) == {"share": 2000.0, "work": 2000.0, "longest": 2000.0}


def test_an_app_that_needs_less_than_its_part_is_no_better_off_on_it_than_on_the_whole_cluster() -> None:
    """One gang of 2 for 500 s: an eighth of 64 holds it four times."""
    assert of_one(500, 1000, 2, 8, 64) == {"share": 500.0, "work": 4000.0, "longest": 4000.0}


def test_a_gang_wider_than_the_part_gets_its_accelerator_seconds() -> None:
    """A gang of 8 for 100 s, and a part of 2 accelerators: 800 accelerator-seconds take 400 s."""
    assert of_one(100, 800, 8, 4, 8)["share"] == 400.0


def test_alone_all_readings_are_the_time_alone_but_for_the_longest_trial() -> None:
    assert of_one(300, 400, 4, 1, 8) == {"share": 300.0, "work": 100.0, "longest": 300.0}
    assert of_one(300, 400, 4, 0.5, 8) == of_one(300, 400, 4, 1, 8)  # no app has more than the cluster


@pytest.mark.parametrize("ideal", IDEAL_TIMES)
def test_an_app_without_work_has_a_time_above_0(ideal: IdealTime) -> None:
    nothing = np.zeros(1)
    assert ideal_time(nothing, nothing, nothing, np.ones(1), 4.0, ideal).item() > 0
