"""When the jobs of another scheduler start: futures of a queue with priorities and backfill, by simulation.

The queue starts jobs in its order; a job that does not fit gets a reservation, computed like the queue's own from time
limits, and jobs behind it start if they do not delay it (EASY backfill: D. Lifka, "The ANL/IBM SP Scheduling System",
JSSPP 1995). How long jobs really run is drawn in each future from the shares of their limits that earlier jobs used.

Intervals are as wide as those of earlier jobs had to be: the queue is put together again as it was when each of them
was submitted, and its start is forecast with what was known then.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eunomia.forecasts.intervals import IntervalCorrection, TimeInterval
from eunomia.model.arrays import Floats

FUTURES = 20
NO_LIMIT_S = 86_400.0  # believed limit of a job without one
NO_HISTORY = tuple((np.arange(10) + 0.5) / 10)  # shares of the limit, where nothing is known
LEAST_HALF = 0.25  # of the median wait: least half width of an interval, for what the simulation leaves out, such as
LEAST_HALF_S = 5.0  # the queue's own delays and constraints, and jobs that come later and go first; and in s
LEAST_HISTORY = 5  # jobs of a user before the user's own shares are taken
LOOK_S = 1.0  # after its submission: a job that has started by then did not wait
MOST = 200  # hindcasts, of the jobs that started last
WORK = 20_000  # jobs in all the queues that are put together: of long queues there are fewer
FUTURES_TRUSTED = 20.0  # outcomes: the rules of another scheduler are known less well than our own


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueJob:
    """A job that runs or waits."""

    job_id: str
    user: str
    size: int  # accelerators
    types: tuple[str, ...]  # any of which will do; for a job that runs, the one that it has
    limit_s: float
    elapsed_s: float = 0.0
    runs: bool = False
    held: str = ""  # why it is not considered
    priority: float = 0.0
    submitted: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierJob:
    """A job and when it started and ended, in s of the wall clock; inf = not yet."""

    job: QueueJob
    started: float
    ended: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot:
    """A queue as it is now."""

    capacity: Mapping[str, int]  # accelerators in service by type
    jobs: Sequence[QueueJob]
    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)  # of limits used, by user, in earlier jobs
    earlier: Sequence[EarlierJob] = ()  # jobs that were in the queue, those that are there still among them
    source: str = ""  # in words


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForecast:
    """When a job starts, in seconds from now: 10, 50 and 90 % points; inf = not foreseeable."""

    job_id: str
    p10_s: float
    p50_s: float
    p90_s: float
    reason: str


def forecast_starts(queue: QueueSnapshot, *, futures: int = FUTURES, seed: int = 0) -> list[StartForecast]:
    """Return a forecast of every waiting job, in the queue's order."""
    waiting = sorted(
        (job for job in queue.jobs if not job.runs and not job.held), key=lambda job: (-job.priority, job.submitted)
    )
    rng = np.random.default_rng(seed)
    active = [job for job in queue.jobs if job.runs] + waiting
    lengths = np.stack([_lengths(job, queue, futures, rng) for job in active]) if active else np.zeros((0, futures))
    starts = np.array([_play(queue, active, waiting, lengths[:, f]) for f in range(futures)]).reshape(futures, -1)
    low = max(round(0.1 * (futures + 1)), 1) - 1
    ordered = np.sort(starts, axis=0)
    middle = ordered[futures // 2]
    half = np.where(np.isfinite(middle), LEAST_HALF * middle + LEAST_HALF_S, 0.0)
    found = [
        StartForecast(
            job_id=job.job_id,
            p50_s=float(middle[n]),
            reason=_reason(queue, waiting, n),
            p10_s=float(max(min(ordered[low, n], middle[n] - half[n]), 0.0)),
            p90_s=float(max(ordered[futures - 1 - low, n], middle[n] + half[n])),
        )
        for n, job in enumerate(waiting)
    ]
    held = [job for job in queue.jobs if job.held]
    return found + [
        StartForecast(job_id=job.job_id, p10_s=math.inf, p50_s=math.inf, p90_s=math.inf, reason=job.held)
        for job in held
    ]


def _limit(job: QueueJob) -> float:
    return job.limit_s if math.isfinite(job.limit_s) else NO_LIMIT_S


def _lengths(job: QueueJob, queue: QueueSnapshot, futures: int, rng: np.random.Generator) -> Floats:
    """Return how long a job runs from now or from its start in each future, given that it has run so long."""
    own = queue.shares.get(job.user, ())
    everyone = [share for shares in queue.shares.values() for share in shares]
    shares = own if len(own) >= LEAST_HISTORY else (everyone or NO_HISTORY)
    totals = np.sort(np.asarray(shares, dtype=float)) * _limit(job)
    totals = totals[totals > job.elapsed_s]
    if len(totals) == 0:  # longer than any before: somewhere up to its limit
        left = max(_limit(job) - job.elapsed_s, 1.0)
        totals = job.elapsed_s + left * (np.arange(futures) + 0.5) / futures
    levels = (rng.permutation(futures) + rng.random(futures)) / futures
    return np.asarray(np.maximum(np.quantile(totals, levels) - job.elapsed_s, 1e-3))


def _play(
    queue: QueueSnapshot, active: Sequence[QueueJob], waiting: Sequence[QueueJob], lengths: Floats
) -> list[float]:
    """Return when each waiting job starts in one future, in seconds from now."""
    free = dict(queue.capacity)
    running: list[tuple[float, int, str, int, float]] = []  # end, number, type, size, end by its limit
    first = len(active) - len(waiting)
    for number, job in enumerate(active[:first]):
        kind = job.types[0] if job.types else ""
        free[kind] = free.get(kind, 0) - job.size
        heapq.heappush(running, (float(lengths[number]), number, kind, job.size, _limit(job) - job.elapsed_s))
    starts = [math.inf] * len(waiting)
    left = list(range(len(waiting)))
    now = 0.0
    while left:
        for n in _startable(queue, waiting, left, free, running, now):
            place, job = n[0], waiting[n[0]]
            starts[place] = now
            left.remove(place)
            entry = (now + float(lengths[first + place]), first + place, n[1], job.size, now + _limit(job))
            heapq.heappush(running, entry)
        if not running:
            break
        now = running[0][0]
        while running and running[0][0] <= now:
            _, _, kind, size, _ = heapq.heappop(running)
            free[kind] += size
    return starts


def _startable(
    queue: QueueSnapshot,
    waiting: Sequence[QueueJob],
    left: Sequence[int],
    free: dict[str, int],
    running: Sequence[tuple[float, int, str, int, float]],
    now: float,
) -> list[tuple[int, str]]:
    """Return the jobs that start now and their types, and take their accelerators from `free`."""
    found: list[tuple[int, str]] = []
    begun: list[tuple[float, str, int]] = []
    reserved: tuple[str, float, int] | None = None  # type, time of the reservation, accelerators to spare then
    for place in left:
        job = waiting[place]
        kinds = [name for name in (job.types or tuple(queue.capacity)) if queue.capacity.get(name, 0) >= job.size]
        for kind in kinds:
            if free[kind] < job.size:
                continue
            if reserved is not None and kind == reserved[0] and now + _limit(job) > reserved[1]:
                if job.size > reserved[2]:
                    continue
                reserved = (reserved[0], reserved[1], reserved[2] - job.size)
            free[kind] -= job.size
            begun.append((now + _limit(job), kind, job.size))
            found.append((place, kind))
            break
        else:
            if reserved is None and kinds:
                ends = [(end, kind, size) for _, _, kind, size, end in running] + begun
                reserved = min((_reservation(job, kind, free, ends, now) for kind in kinds), key=lambda one: one[1])
    return found


def _reservation(
    job: QueueJob, kind: str, free: Mapping[str, int], ends: Sequence[tuple[float, str, int]], now: float
) -> tuple[str, float, int]:
    """Return when a job could start on a type if all ran to their limits, and what would be to spare."""
    count, at = free[kind], now
    for end, other, size in sorted(ends):
        if count >= job.size:
            break
        if other == kind:
            count, at = count + size, max(end, now)
    return kind, at if count >= job.size else math.inf, max(count - job.size, 0)


def _reason(queue: QueueSnapshot, waiting: Sequence[QueueJob], place: int) -> str:
    """Return why a job waits."""
    job = waiting[place]
    kinds = [name for name in (job.types or tuple(queue.capacity)) if queue.capacity.get(name, 0) >= job.size]
    if not kinds:
        most = max((queue.capacity.get(name, 0) for name in job.types or tuple(queue.capacity)), default=0)
        return f"it needs {job.size} accelerators of one type, and at most {most} are in service"
    held = {name: sum(one.size for one in queue.jobs if one.runs and one.types[:1] == (name,)) for name in kinds}
    free = ", ".join(f"{queue.capacity[name] - held[name]} of {queue.capacity[name]} {name}" for name in kinds)
    ahead = "no job is before it" if place == 0 else f"{place} waiting job{'s are' if place > 1 else ' is'} before it"
    return f"it needs {job.size}; free: {free}; {ahead}"


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
