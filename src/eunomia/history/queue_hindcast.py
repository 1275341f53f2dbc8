"""Intervals of a queue's forecasts that are as wide as those of its earlier jobs had to be.

The queue is put together again as it was when each of them was submitted, its start is forecast with what was known
then, and compared with when it really started.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

from eunomia.forecasts.intervals import IntervalCorrection, TimeInterval
from eunomia.history.queue_forecast import QueueSnapshot, StartForecast, forecast_starts

LOOK_S = 1.0  # after its submission: a job that has started by then did not wait
MOST = 200  # hindcasts, of the jobs that started last
WORK = 20_000  # jobs in all the queues that are put together: of long queues there are fewer
FUTURES_TRUSTED = 20.0  # outcomes: the rules of another scheduler are known less well than our own


def calibrated_starts(queue: QueueSnapshot) -> list[StartForecast]:
    """Return a forecast of every waiting job, with intervals that earlier jobs have corrected if there are enough."""
    by = _correction(queue)
    wide = [(one, by.apply(0.0, _interval(one))) for one in forecast_starts(queue)]
    return [replace(one, p10_s=said.p10, p90_s=said.p90) for one, said in wide]


def _correction(queue: QueueSnapshot) -> IntervalCorrection:
    """Return what the starts of earlier jobs teach, in their order."""
    waited = [one for one in queue.earlier if one.job.submitted + LOOK_S < one.started < math.inf]
    waited.sort(key=lambda one: (one.started, one.job.job_id))
    outcomes: list[tuple[TimeInterval, float]] = []
    work = 0
    for one in reversed(waited[-MOST:]):
        at = one.job.submitted + LOOK_S
        then = _queue_at(at, queue)
        work += len(then.jobs)
        if work > WORK:
            break
        said = next(each for each in forecast_starts(then) if each.job_id == one.job.job_id)
        outcomes.append((_interval(said), one.started - at))
    found = IntervalCorrection(trusted=FUTURES_TRUSTED)
    for interval, came in reversed(outcomes):
        found.learn(0.0, interval, came)
    return found


def _interval(one: StartForecast) -> TimeInterval:
    return TimeInterval(one.p10_s, one.p50_s, one.p90_s)


def _queue_at(at: float, queue: QueueSnapshot) -> QueueSnapshot:
    """Return the queue as it was, with those run times only that were known then."""
    jobs, shares = [], defaultdict(list)
    for one in queue.earlier:
        if one.ended <= at:
            if math.isfinite(one.job.limit_s):
                shares[one.job.user].append(min((one.ended - one.started) / one.job.limit_s, 1.0))
        elif one.started <= at:
            jobs.append(replace(one.job, runs=True, elapsed_s=at - one.started))
        elif one.job.submitted <= at:
            jobs.append(replace(one.job, runs=False, elapsed_s=0.0))
    return QueueSnapshot(capacity=queue.capacity, jobs=jobs, shares=dict(shares))
