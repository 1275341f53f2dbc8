"""Run times of new jobs from those of jobs that have ended: causal, online, with calibrated intervals.

Every job belongs to groups: all jobs, its size, its tenant, its tenant and size, its name. Of each group two moving
averages of log run times (fast and slow), the last one, the jobs running and the time since the last submission and
the last end are kept; a group's averages are shrunk to those of the group before. Of each tenant the last jobs are
kept, too: their weighted median, by recency, size and time since the submission before, is one more fact; jobs that
still run count with what they have run so far and somewhat more. The share of a tenant's last jobs, and of those of
the size, that failed or were killed is a fact as well: such jobs come in rows and end early. A linear model of these
facts, fitted by recursive least squares on ended jobs, gives the centre; the errors of a tenant's jobs of that size
give the scale. The 10 and 90 % points of (log run time − centre) / scale are followed online by steps on the quantile
loss, so that coverage holds in the long run whatever the distribution (I. Gibbs and E. Candès, "Adaptive Conformal
Inference Under Distribution Shift", NeurIPS 2021). The steps become shorter: long jobs are reported late, and long
steps overshoot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.elementary import exp_one, log_one

GROUPS = 5  # all, size, tenant, tenant and size, name
FAST, SLOW = 0.3, 0.06  # weights of the newest run time in the averages
LEVELS = (0.1, 0.9)
FIRST_STEP, STEP, STEP_JOBS = 0.05, 0.01, 500  # of the quantiles, in scales: from the first, over so many jobs
PRIOR_LOG_S = 6.5  # log of 11 minutes: what is believed before any job has ended
PRIOR_SCALE = 2.0
UNKNOWN_JOBS = 50.0  # ended jobs over which the interval of any job fades: those that end first are the short ones
LEAST_SCALE = 0.05
LONGEST_LOG_S = 16.0  # 100 days
RIDGE = 1.0
RECENT = 64  # jobs of a tenant that are kept
NEVER_RAN = 1e9  # as a size, which gives such a job no weight
RECENCY = 40.0  # jobs over which the weight of a tenant's jobs falls to 1 / e
RUNNING_WEIGHT, RUNNING_MORE = 0.5, 0.7  # of a job that still runs: its weight, and what is added to its log run time
_VALUE, _AT, _GAP, _SIZE = range(4)  # columns of a tenant's jobs; the value of a running one is below 0
LOG_2 = 0.6931471805599453
FAR_S = 4e5  # time since something that never happened

# Columns of a group's statistics.
_FAST, _FAST_WEIGHT, _SLOW, _SLOW_WEIGHT, _LAST, _COUNT, _SUBMITTED, _ENDED, _RUNNING, _SUBMITTED_SUM, _MISS = range(11)
_OUTCOME_WEIGHT, _FAILED, _KILLED, _LAST_FAILED, _LAST_KILLED = range(11, 16)
_COLUMNS = 16
OUTCOMES = ("completed", "failed", "killed")
OUTCOME_RATE = 0.2  # weight of the newest outcome
OUTCOME_GROUPS = (2, 3)  # tenant, tenant and size
_RECENT_FEATURE = 2 + GROUPS * 8
_OUTCOME_FEATURE = _RECENT_FEATURE + 1
_FEATURES = _OUTCOME_FEATURE + 4 * len(OUTCOME_GROUPS)


@dataclass(frozen=True, slots=True)
class RunTimeEstimate:
    """A run time in seconds: median, both ends of the 80 % interval, and how many ended jobs it rests on."""

    median_s: float
    low_s: float
    high_s: float
    measurements: int


UNKNOWN = RunTimeEstimate(3600.0, 120.0, 108_000.0, 0)  # of any job, without a history


@kernel(allocates=False)
def _open_job(
    groups: Ints, at: float, log_size: float, stats: Floats, weights: Floats, x: Floats,
    recent: Floats, count: int, values: Floats, shares: Floats, own: int,
) -> tuple[float, float]:  # fmt: skip
    """Write the features of a job into `x`, and return the centre and scale of its estimate.

    A new job, whose `own` is -1, is counted as running. Of a job that was estimated before, `own` is its number among
    its tenant's jobs, and `x` keeps what is about the time of its submission: only the averages are those of now.
    """
    new = own < 0
    x[0], x[1] = 1.0, log_size
    parent = PRIOR_LOG_S
    for q in range(GROUPS):
        s, c = stats[groups[q]], 2 + 8 * q
        slow = (s[_SLOW] + SLOW * parent) / (s[_SLOW_WEIGHT] + SLOW)
        fast = (s[_FAST] + 0.1 * slow) / (s[_FAST_WEIGHT] + 0.1)
        x[c] = slow if q == 0 else slow - parent
        x[c + 1] = fast - slow
        x[c + 2] = s[_LAST] - slow if s[_COUNT] > 0 else 0.0
        if new:
            x[c + 3] = log_one(1.0 + s[_RUNNING])
            x[c + 4] = log_one(1.0 + max(at - s[_SUBMITTED], 0.0)) - 5.0
            x[c + 5] = log_one(1.0 + max(at - s[_ENDED], 0.0)) - 5.0
            waited = at - s[_SUBMITTED_SUM] / s[_RUNNING] if s[_RUNNING] > 0 else 0.0
            x[c + 6] = log_one(1.0 + max(waited, 0.0)) - 5.0 if s[_RUNNING] > 0 else 0.0
        x[c + 7] = log_one(1.0 + s[_COUNT]) - 3.0
        parent = slow
        if q == 2:
            gap = log_one(1.0 + max(at - s[_SUBMITTED], 0.0)) if new else x[c + 4] + 5.0
            x[_RECENT_FEATURE] = _typical(recent, count, at, gap, log_size, slow, values, shares, own)
            if new:
                row = recent[count % RECENT]
                row[_VALUE], row[_AT], row[_GAP], row[_SIZE] = -1.0, at, gap, log_size
    x[_RECENT_FEATURE] -= parent
    for place, q in enumerate(OUTCOME_GROUPS):
        s, c = stats[groups[q]], _OUTCOME_FEATURE + 4 * place
        x[c] = s[_FAILED] / (s[_OUTCOME_WEIGHT] + 0.1)
        x[c + 1] = s[_KILLED] / (s[_OUTCOME_WEIGHT] + 0.1)
        x[c + 2], x[c + 3] = s[_LAST_FAILED], s[_LAST_KILLED]
    centre = 0.0
    for a in range(len(x)):
        centre += x[a] * weights[a]
    scale = PRIOR_SCALE
    for q in (0, 2, 3):
        s = stats[groups[q]]
        scale = (s[_MISS] + 3.0 * SLOW * scale) / (s[_SLOW_WEIGHT] + 3.0 * SLOW)
    if new:
        for q in range(GROUPS):
            s = stats[groups[q]]
            s[_SUBMITTED] = at
            s[_RUNNING] += 1.0
            s[_SUBMITTED_SUM] += at
    return min(max(centre, 0.0), LONGEST_LOG_S), max(scale, LEAST_SCALE)


@kernel(allocates=False)
def _typical(
    recent: Floats, count: int, at: float, gap: float, log_size: float, general: float, values: Floats,
    weights: Floats, own: int,
) -> float:  # fmt: skip
    """Return the weighted median of the log run times of a tenant's last jobs and a general one of weight 1.

    The job of number `own` is left out.
    """
    kept = min(count, RECENT)
    values[0], weights[0], total = general, 1.0, 1.0
    for m in range(kept):
        row = recent[(count - 1 - m) % RECENT]
        away = row[_GAP] - gap
        weight = exp_one(-m / RECENCY - abs(row[_SIZE] - log_size) / LOG_2 - away * away / 2.0)
        value = row[_VALUE]
        if count - 1 - m == own:
            weight = 0.0
        if value < 0.0:
            value, weight = log_one(max(at - row[_AT], 1.0)) + RUNNING_MORE, weight * RUNNING_WEIGHT
        place = m + 1
        while place > 0 and values[place - 1] > value:
            values[place], weights[place] = values[place - 1], weights[place - 1]
            place -= 1
        values[place], weights[place] = value, weight
        total += weight
    passed, place = weights[0], 0
    while passed < total / 2.0 and place < kept:
        place += 1
        passed += weights[place]
    return float(values[place])


@kernel(allocates=False)
def _learn(x: Floats, value: float, weights: Floats, inverse: Floats, scratch: Floats) -> None:
    """Take one step of recursive least squares."""
    n, total, miss = len(x), 1.0, value
    for a in range(n):
        product = 0.0
        for b in range(n):
            product += inverse[a, b] * x[b]
        scratch[a] = product
    for a in range(n):
        total += x[a] * scratch[a]
        miss -= x[a] * weights[a]
    for a in range(n):
        weights[a] += scratch[a] / total * miss
        for b in range(n):
            inverse[a, b] -= scratch[a] * scratch[b] / total


@kernel(allocates=False)
def _close(
    groups: Ints, submitted: float, at: float, value: float, miss: float, failed: float, killed: float, stats: Floats
) -> None:
    """Add the log run time and the outcome of an ended job to its groups."""
    for q in range(GROUPS):
        s = stats[groups[q]]
        s[_FAST] = (1.0 - FAST) * s[_FAST] + FAST * value
        s[_FAST_WEIGHT] = (1.0 - FAST) * s[_FAST_WEIGHT] + FAST
        s[_SLOW] = (1.0 - SLOW) * s[_SLOW] + SLOW * value
        s[_SLOW_WEIGHT] = (1.0 - SLOW) * s[_SLOW_WEIGHT] + SLOW
        s[_MISS] = (1.0 - SLOW) * s[_MISS] + SLOW * miss
        s[_OUTCOME_WEIGHT] += OUTCOME_RATE * (1.0 - s[_OUTCOME_WEIGHT])
        s[_FAILED] += OUTCOME_RATE * (failed - s[_FAILED])
        s[_KILLED] += OUTCOME_RATE * (killed - s[_KILLED])
        s[_LAST_FAILED], s[_LAST_KILLED] = failed, killed
        s[_LAST], s[_ENDED] = value, at
        s[_COUNT] += 1.0
        s[_RUNNING] -= 1.0
        s[_SUBMITTED_SUM] -= submitted


class RunTimeHistory:
    """Estimates run times of jobs when they are submitted, and learns from those that end."""

    def __init__(self) -> None:
        self._stats = np.zeros((64, _COLUMNS))
        self._number: dict[tuple[object, ...], int] = {}
        self._weights, self._inverse = np.zeros(_FEATURES), np.eye(_FEATURES) / RIDGE
        self._weights[2] = 1.0  # before anything is learnt: the average of all
        self._scratch = np.zeros(_FEATURES)
        self._open: dict[str, tuple[Ints, float, Floats, float, tuple[float, ...]]] = {}  # …, x, centre, ends
        self._quantiles = [-1.3, 1.3]
        self._recent: dict[str, tuple[Floats, list[int]]] = {}  # by tenant: its last jobs, and how many there were
        self._slots: dict[str, tuple[str, int]] = {}  # by running job: tenant, number of the job
        self._values, self._shares = np.zeros(RECENT + 1), np.zeros(RECENT + 1)

    def submit(self, job_id: str, tenant: str, size: int, name: str, at: float) -> RunTimeEstimate:
        """Estimate the run time of a job that is submitted now; `name` is empty where there is none."""
        keys = ((), ("size", size), ("tenant", tenant), ("both", tenant, size), ("name", tenant, size, name))
        groups = np.array([self._group(key) for key in keys], dtype=np.int64)
        x = np.empty(_FEATURES)
        if tenant not in self._recent:
            self._recent[tenant] = np.zeros((RECENT, 4)), [0]
        recent, count = self._recent[tenant]
        centre, scale = _open_job(
            groups, at, log_one(float(size)), self._stats, self._weights, x,
            recent, count[0], self._values, self._shares, -1,
        )  # fmt: skip
        self._slots[job_id] = tenant, count[0]
        count[0] += 1
        ends = self._ends(centre, scale)
        self._open[job_id] = (groups, at, x, centre, ends)
        return self._answer(groups, centre, ends)

    def estimate_again(self, job_id: str, at: float) -> RunTimeEstimate:
        """Estimate the run time of a submitted job by the jobs that have ended until now; nothing is learnt from it.

        When it was submitted, and how many ran then, stays as it was.
        """
        groups, _, x, _, _ = self._open[job_id]
        tenant, number = self._slots[job_id]
        recent, count = self._recent[tenant]
        centre, scale = _open_job(
            groups, at, float(x[1]), self._stats, self._weights, x.copy(),
            recent, count[0], self._values, self._shares, number,
        )  # fmt: skip
        return self._answer(groups, centre, self._ends(centre, scale))

    def _ends(self, centre: float, scale: float) -> tuple[float, ...]:
        return tuple(min(max(centre + scale * each, 0.0), LONGEST_LOG_S) for each in self._quantiles)

    def _answer(self, groups: Ints, centre: float, ends: tuple[float, ...]) -> RunTimeEstimate:
        ended = float(self._stats[groups[0], _COUNT])
        doubt = exp_one(-ended / UNKNOWN_JOBS)
        outer = log_one(UNKNOWN.low_s), log_one(UNKNOWN.high_s)
        low = exp_one(ends[0] + doubt * min(outer[0] - ends[0], 0.0))
        high = exp_one(ends[1] + doubt * max(outer[1] - ends[1], 0.0))
        median = min(max(exp_one(centre), low), high)
        return RunTimeEstimate(median, low, high, int(self._likes(groups)))

    def end(self, job_id: str, run_s: float, at: float, outcome: str = "completed") -> None:
        """Learn that a submitted job has ended after running so long; a job that never ran only leaves its groups.

        `outcome` is one of `OUTCOMES`.
        """
        groups, submitted, x, centre, ends = self._open.pop(job_id)
        tenant, number = self._slots.pop(job_id)
        recent, count = self._recent[tenant]
        if count[0] - number <= RECENT:
            row = recent[number % RECENT]
            row[_VALUE] = log_one(max(run_s, 1.0))
            row[_SIZE] = row[_SIZE] if run_s > 0 else NEVER_RAN
        if not run_s > 0:
            self._stats[groups, _RUNNING] -= 1.0
            self._stats[groups, _SUBMITTED_SUM] -= submitted
            return
        value = log_one(max(run_s, 1.0))
        step = max(STEP, FIRST_STEP * STEP_JOBS / (STEP_JOBS + self._stats[groups[0], _COUNT]))
        for place, level in enumerate(LEVELS):
            self._quantiles[place] += step * (level - (value <= ends[place]))
        _learn(x, value, self._weights, self._inverse, self._scratch)
        failed, killed = float(outcome == "failed"), float(outcome == "killed")
        _close(groups, submitted, at, value, abs(value - centre), failed, killed, self._stats)

    def _group(self, key: tuple[object, ...]) -> int:
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = len(self._number)
            if number == len(self._stats):
                self._stats = np.concatenate((self._stats, np.zeros(self._stats.shape)))
            self._stats[number, [_SUBMITTED, _ENDED]] = -FAR_S
        return number

    def _likes(self, groups: Ints) -> float:
        """Return the ended jobs of the smallest group that has five, else of all."""
        counts = [float(self._stats[groups[q], _COUNT]) for q in (3, 2, 0)]
        return next((count for count in counts if count >= 5), counts[-1])
