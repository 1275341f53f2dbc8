"""The service's time over restarts of the machine, whose clock may be wrong when it starts."""

from __future__ import annotations

import logging
import time

import pytest

from eunomia.service.clock import MOST_AWAY_S, MonotonicClock
from eunomia.service.store.schema import StoredClock

DAY_S = 86_400.0


def counted(away_s: float) -> float:
    """Return how much time passed for a service that is started so long after its last turn, by the wall clock."""
    last = StoredClock(1000.0, "another boot", time.monotonic(), time.time() - away_s)
    return MonotonicClock(last).now() - 1000.0


def test_what_the_wall_clock_says_of_a_restart_of_the_machine_is_counted_where_it_can_be_right() -> None:
    assert counted(3600.0) == pytest.approx(3600.0, abs=60.0)
    assert counted(0.9 * MOST_AWAY_S) == pytest.approx(0.9 * MOST_AWAY_S, abs=60.0)


@pytest.mark.parametrize(("away_s", "expected_s"), [(-365 * DAY_S, 0.0), (365 * DAY_S, MOST_AWAY_S)])
def test_a_clock_that_jumped_by_a_year_neither_turns_time_back_nor_becomes_the_time_for_good(
    away_s: float, expected_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert counted(away_s) == pytest.approx(expected_s, abs=60.0)
    assert "Is the clock right?" in caplog.text


def test_without_a_restart_of_the_machine_its_wall_clock_says_nothing() -> None:
    first = MonotonicClock(None)
    last = first.stored(first.now())
    after = MonotonicClock(StoredClock(last.at, last.boot, last.monotonic, last.wall - 365 * DAY_S))
    assert after.now() - first.now() == pytest.approx(0.0, abs=60.0)
