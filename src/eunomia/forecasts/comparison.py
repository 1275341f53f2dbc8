"""What a change does: futures of two states with the same run times, job by job and tenant by tenant."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from eunomia.forecasts.changed_state import same_totals
from eunomia.forecasts.drawn_run_times import draw_totals
from eunomia.forecasts.futures import FUTURES, Futures, PresentState, play_futures
from eunomia.forecasts.intervals import quantiles

NOTICED_S = 60.0  # a median finish that moves by less counts as unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDifference:
    """Median start and finish of one job in both, in s of the scheduler's time; inf = later than both were played.

    `before` is None for a job that is new.
    """

    job_id: str
    tenant: str
    before: tuple[float, float] | None
    after: tuple[float, float]

    @property
    def later_s(self) -> float:
        """How much later it finishes; below 0 = sooner, nan = it cannot be said."""
        return np.nan if self.before is None else self.after[1] - self.before[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateComparison:
    """Differences of all live jobs, in order of submission, up to the time to which both states were played."""

    jobs: tuple[JobDifference, ...]
    futures: int
    complete: bool
    until: float  # inf = to the end

    def changed(self) -> list[JobDifference]:
        """Return the jobs whose median finish moves, those that move most first, and new ones before all."""
        noticed = [one for one in self.jobs if one.before is None or not abs(one.later_s) < NOTICED_S]
        noticed = [one for one in noticed if one.before != one.after]
        return sorted(noticed, key=lambda one: (one.before is not None, -abs(np.nan_to_num(one.later_s, nan=np.inf))))

    def tenants(self) -> list[tuple[str, int, int, int, float]]:
        """Return for each tenant how many jobs finish sooner, later and as before, and by how much on average."""
        moved: defaultdict[str, list[float]] = defaultdict(list)
        for one in self.jobs:
            if one.before is not None and np.isfinite(one.later_s):
                moved[one.tenant].append(one.later_s)
        found = []
        for tenant, later in sorted(moved.items()):
            sooner, behind = (sum(sign * one >= NOTICED_S for one in later) for sign in (-1, 1))
            found.append((tenant, sooner, behind, len(later) - sooner - behind, float(np.mean(later))))
        return found


def compare_states(
    before: PresentState, after: PresentState, *, futures: int = FUTURES, seed: int = 0, budget_s: float = np.inf
) -> StateComparison:
    """Play both states with the same run times, each for half of the CPU time in which the futures fit.

    Rows of `after` are those of `before` with new ones behind, or live jobs of `before` only.
    """
    totals = draw_totals(before.scheduler, before.at, futures, seed)
    is_longer = len(after.scheduler.state.jobs) > len(before.scheduler.state.jobs)
    kept = after.scheduler.state.ids[: totals.shape[1]] == before.scheduler.state.ids
    others = (
        draw_totals(after.scheduler, after.at, futures, seed) if is_longer else
        totals if kept else same_totals(before, after, totals)
    )  # fmt: skip
    if is_longer:
        others[:, : totals.shape[1]] = totals
    one = play_futures(before, totals=totals, budget_s=budget_s / 2)
    two = play_futures(after, totals=others, budget_s=budget_s / 2)
    drawn = [len(each) for each, steps in ((one, totals), (two, others)) if not (steps == steps[0]).all()]
    count = min(drawn, default=1)
    until = min(one.until, two.until)
    middle = [quantiles(_times(each, count, until)) for each in (one, two)]
    row_of = before.scheduler.state.row_of
    jobs = []
    for row, job in enumerate(after.scheduler.state.submitted):
        if np.isnan(two.finish[0, row]):
            continue
        then = (float(middle[1][1, 0, row]), float(middle[1][1, 1, row]))
        old = row_of.get(job.job_id)
        now = None if old is None else (float(middle[0][1, 0, old]), float(middle[0][1, 1, old]))
        jobs.append(JobDifference(job_id=job.job_id, tenant=job.tenant, before=now, after=then))
    return StateComparison(jobs=tuple(jobs), futures=count, complete=one.complete and two.complete, until=until)


def _times(played: Futures, count: int, until: float) -> np.ndarray:
    """Return starts and finishes of so many futures, (future, 2, row); what comes later than `until` is not known."""
    both = np.stack((played.start, played.finish), axis=1)
    both[both >= until] = np.inf
    return np.broadcast_to(both, (count, *both.shape[1:])) if len(both) == 1 else both[:count]
