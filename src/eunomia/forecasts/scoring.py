"""Scores forecasts: what was said against what came."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from eunomia.forecasts.intervals import TimeInterval

LEAST_JOBS = 20  # of a group that is shown
MINUTE_S, TEN_MINUTES_S, PART = 60.0, 600.0, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastOutcome:
    """The first forecast of a job that had to wait, and what came. Times are seconds of the scheduler's time.

    `latest_start` is the latest median that was said of its start before it started. Start and finish are None while
    they have not come.
    """

    tenant: str
    size: int
    said_at: float
    start: TimeInterval
    finish: TimeInterval
    latest_start: float
    started: float | None
    finished: float | None

    @property
    def off_s(self) -> float:
        """How far the median start was from the truth."""
        return abs(self.start.p50 - (self.started or 0.0))


def score(outcomes: Iterable[ForecastOutcome]) -> dict[str, Any]:
    """Return the figures; coverage is the share of jobs whose 80 % interval held the truth, None without any."""
    begun = [one for one in outcomes if one.started is not None]
    ended = [one for one in begun if one.finished is not None]
    return {
        "jobs": len(begun),
        "start_coverage": _share(begun, _start_held),
        "finish_coverage": _share(ended, lambda one: one.finish.holds(one.finished or 0.0)),
        "within_1_min_or_5_percent": _share(
            begun, lambda one: one.off_s <= max(MINUTE_S, PART * ((one.started or 0.0) - one.said_at))
        ),
        "within_1_min": _share(begun, lambda one: one.off_s <= MINUTE_S),
        "within_10_min": _share(begun, lambda one: one.off_s <= TEN_MINUTES_S),
        "median_moved_past_first_p90": _share(begun, lambda one: one.latest_start > one.start.p90),
        "median_wait_s": _median([(one.started or 0.0) - one.said_at for one in begun]),
        "median_width_s": _median([one.start.p90 - one.start.p10 for one in begun]),
        "start_coverage_by_tenant": _groups(begun, lambda one: one.tenant or "-"),
        "start_coverage_by_size": _groups(begun, lambda one: str(one.size)),
    }


def _start_held(one: ForecastOutcome) -> bool:
    return one.start.holds(one.started or 0.0)


def _share(outcomes: Sequence[ForecastOutcome], holds: Callable[[ForecastOutcome], bool]) -> float | None:
    return round(sum(map(holds, outcomes)) / len(outcomes), 4) if outcomes else None


def _median(values: Sequence[float]) -> float | None:
    return round(sorted(values)[len(values) // 2], 1) if values else None


def _groups(
    outcomes: Sequence[ForecastOutcome], key: Callable[[ForecastOutcome], str]
) -> dict[str, dict[str, float | int | None]]:
    """Return jobs and coverage of each group that has enough jobs, the largest first."""
    groups = defaultdict[str, list[ForecastOutcome]](list)
    for one in outcomes:
        groups[key(one)].append(one)
    kept = sorted(((name, mine) for name, mine in groups.items() if len(mine) >= LEAST_JOBS),
                  key=lambda pair: (-len(pair[1]), pair[0]))  # fmt: skip
    return {name: {"jobs": len(mine), "coverage": _share(mine, _start_held)} for name, mine in kept}
