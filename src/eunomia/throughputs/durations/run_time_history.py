"""Run times of new jobs from those of jobs that have ended: causal, online, with calibrated intervals.

Of each tenant the last jobs are kept. Their median run time is that of their survival curve (E. Kaplan and P. Meier,
"Nonparametric Estimation from Incomplete Observations", JASA 53, 1958), weighted by recency, size and time since the
submission before: jobs that still run are censored at what they have run so far, which matters, as a tenant's last job
often still runs when the next one comes. The mean of four such medians, by other weights each, is the first estimate.

Every job belongs to groups: all jobs, its size, its tenant, its tenant and size, its name. Of each group two moving
averages of log run times (fast and slow), the last one, the jobs running and the time since the last submission and
the last end are kept; a group's averages are shrunk to those of the group before. The share of a tenant's last jobs,
and of those of the size, that failed or were killed is a fact as well: such jobs come in rows and end early. A linear
model of these facts, each in its standard deviations and at most three, corrects it; it is fitted by ridge
regression to the ended jobs now and then. The errors of a tenant's jobs of that size give the scale.

The 10 and 90 % points of (log run time − centre) / scale are followed online by steps on the quantile loss, so that
coverage holds in the long run whatever the distribution (I. Gibbs and E. Candès, "Adaptive Conformal Inference Under
Distribution Shift", NeurIPS 2021). The steps become shorter: long jobs are reported late, and long steps overshoot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.elementary import exp_one, log_one
from eunomia.model.equations import cholesky, solve_lower

GROUPS = 5  # all, size, tenant, tenant and size, name
FAST, SLOW = 0.3, 0.06  # weights of the newest run time in the averages
LEVELS = (0.1, 0.9)
FIRST_STEP, STEP, STEP_JOBS = 0.05, 0.01, 500  # of the quantiles, in scales: from the first, over so many jobs
PRIOR_LOG_S = 6.5  # log of 11 minutes: what is believed before any job has ended
PRIOR_SCALE = 2.0
UNKNOWN_JOBS = 50.0  # ended jobs over which the interval of any job fades: those that end first are the short ones
LEAST_SCALE = 0.05
LONGEST_LOG_S = 16.0  # 100 days
RIDGE = 10_000.0  # in jobs
REFIT_JOBS = 250  # ended jobs after which the model is fitted again
MOST_DEVIATIONS = 3.0
LEAST_SPREAD = 1e-9  # of a feature's squares: what is below it is constant but for rounding
RECENT = 128  # jobs of a tenant that are kept
NEVER_RAN = 1e9  # as a size, which gives such a job no weight
# How a tenant's last jobs are weighted: how many count, jobs over which the weight falls to 1 / e, what a factor of two
# in size takes off its log, what half the squared difference of log times since the submission before does, and the
# weight of the run times of any job together.
WEIGHTS = np.array(
    [
        [64.0, 40.0, 1.0, 1.0, 1.0],
        [64.0, 20.0, 1.0, 0.25, 1.0],
        [64.0, 10.0, 1.0, 0.0, 0.3],
        [128.0, 60.0, 2.0, 0.25, 1.0],
    ]
)
_COUNTED, _RECENCY, _PER_SIZE, _PER_GAP, _ANY = range(5)
ANY_LOG_S = np.arange(3.5, 12.0)  # run times of any job, from half a minute to a day
HALF = 0.5 + 1e-9  # rounding cannot tell a curve that passes it from one that ends at it
LONGER = 0.7  # log of what is added to the longest run where no median is reached
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
_OUTCOME_FEATURE = _RECENT_FEATURE + len(WEIGHTS)
_WEIGHT, _MEAN, _DEVIATION = range(3)  # rows of the linear model
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
    groups: Ints, at: float, log_size: float, stats: Floats, model: Floats, x: Floats,
    recent: Floats, count: int, lined: Floats, own: int,
) -> tuple[float, float]:  # fmt: skip
    """Write the features of a job into `x`, and return the centre and scale of its estimate.

    A new job, whose `own` is -1, is counted as running. Of a job that was estimated before, `own` is its number among
    its tenant's jobs, and `x` keeps what is about the time of its submission: only the averages are those of now.
    """
    new = own < 0
    x[0], x[1] = 1.0, log_size
    # averages of each group, narrower ones drawn to the wider ones; times since its last events
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
        # of the tenant: medians of recent jobs that are like this one in gap and size
        if q == 2:
            gap = -1.0 if count == 0 or own == 0 else x[c + 4] + 5.0  # a tenant's first job has none
            length = _line_up(recent, count, at, own, lined)
            for way in range(len(WEIGHTS)):
                x[_RECENT_FEATURE + way] = _median(recent, count, gap, log_size, WEIGHTS[way], lined[:, :length])
            if new:
                row = recent[count % RECENT]
                row[_VALUE], row[_AT], row[_GAP], row[_SIZE] = -1.0, at, gap, log_size
    # the mean of those medians is the centre to begin with; features are what differs from it
    base = 0.0
    for way in range(len(WEIGHTS)):
        base += x[_RECENT_FEATURE + way] / len(WEIGHTS)
    for way in range(1, len(WEIGHTS)):
        x[_RECENT_FEATURE + way] -= base
    x[_RECENT_FEATURE] = base - x[2]
    # how such jobs ended
    for place, q in enumerate(OUTCOME_GROUPS):
        s, c = stats[groups[q]], _OUTCOME_FEATURE + 4 * place
        x[c] = s[_FAILED] / (s[_OUTCOME_WEIGHT] + 0.1)
        x[c + 1] = s[_KILLED] / (s[_OUTCOME_WEIGHT] + 0.1)
        x[c + 2], x[c + 3] = s[_LAST_FAILED], s[_LAST_KILLED]
    # the centre: base and a linear model of the features, each held within some deviations
    centre = base
    for a in range(len(x)):
        away = (x[a] - model[_MEAN, a]) / model[_DEVIATION, a]
        centre += min(max(away, -MOST_DEVIATIONS), MOST_DEVIATIONS) * model[_WEIGHT, a]
    # the scale: how far estimates of these groups have been off
    scale = PRIOR_SCALE
    for q in (0, 2, 3):
        s = stats[groups[q]]
        scale = (s[_MISS] + 3.0 * SLOW * scale) / (s[_SLOW_WEIGHT] + 3.0 * SLOW)
    # a new job counts as running from now on
    if new:
        for q in range(GROUPS):
            s = stats[groups[q]]
            s[_SUBMITTED] = at
            s[_RUNNING] += 1.0
            s[_SUBMITTED_SUM] += at
    return min(max(centre, 0.0), LONGEST_LOG_S), max(scale, LEAST_SCALE)


@kernel(allocates=False)
def _line_up(recent: Floats, count: int, at: float, own: int, lined: Floats) -> int:
    """List a tenant's last jobs and those of any tenant by log run time so far; return how many.

    `lined` (4, place) gets the log run time, how many jobs came since (-1 = any tenant's), and whether the job has
    ended; its last row is for weights. Of equal run times, ended ones come first. The job of number `own` is left out.
    """
    length = len(ANY_LOG_S)
    for place in range(length):
        lined[0, place], lined[1, place], lined[2, place] = ANY_LOG_S[place], -1.0, 1.0
    for m in range(min(count, RECENT)):
        if count - 1 - m == own:
            continue
        row = recent[(count - 1 - m) % RECENT]
        ended = 1.0 if row[_VALUE] >= 0.0 else 0.0
        value = row[_VALUE] if ended > 0.0 else log_one(max(at - row[_AT], 1.0))
        place = length
        while place > 0 and (
            lined[0, place - 1] > value or (lined[0, place - 1] == value and lined[2, place - 1] < ended)
        ):
            for column in range(3):
                lined[column, place] = lined[column, place - 1]
            place -= 1
        lined[0, place], lined[1, place], lined[2, place] = value, m, ended
        length += 1
    return length


@kernel(allocates=False)
def _median(recent: Floats, count: int, gap: float, log_size: float, by: Floats, lined: Floats) -> float:
    """Return where the survival curve of the jobs of `_line_up` falls to a half, weighted by a row of `WEIGHTS`."""
    shares, at_risk = lined[3], 0.0
    for place in range(len(shares)):
        m = int(lined[1, place])
        if m < 0:
            shares[place] = by[_ANY] / len(ANY_LOG_S)
        elif m >= by[_COUNTED]:
            shares[place] = 0.0
        else:
            row = recent[(count - 1 - m) % RECENT]
            away = row[_GAP] - gap if row[_GAP] >= 0.0 and gap >= 0.0 else 0.0
            other = abs(row[_SIZE] - log_size) / LOG_2
            shares[place] = exp_one(-m / by[_RECENCY] - by[_PER_SIZE] * other - by[_PER_GAP] * away * away / 2.0)
        at_risk += shares[place]
    surviving = 1.0
    for place in range(len(shares)):
        if lined[2, place] > 0.0 and shares[place] > 0.0:
            surviving *= max(1.0 - shares[place] / at_risk, 0.0) if at_risk > shares[place] else 0.0
            if surviving <= HALF:
                return float(lined[0, place])
        at_risk -= shares[place]
    return float(lined[0, len(shares) - 1]) + LONGER


@kernel(allocates=False)
def _learn(x: Floats, miss: float, products: Floats) -> None:
    """Add the features of an ended job and the miss of its medians' mean to the `products`, (feature, feature + 1)."""
    n = len(x)
    for a in range(n):
        for b in range(n):
            products[a, b] += x[a] * x[b]
        products[a, n] += x[a] * miss


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
        self._model = np.ones((3, _FEATURES))
        self._model[_WEIGHT] = 0.0  # before anything is learnt: the mean of the medians
        self._products = np.zeros((_FEATURES, _FEATURES + 1))
        self._open: dict[str, tuple[Ints, float, Floats, float, tuple[float, ...]]] = {}  # …, x, centre, ends
        self._quantiles = [-1.3, 1.3]
        self._outer = log_one(UNKNOWN.low_s), log_one(UNKNOWN.high_s)
        self._recent: dict[str, tuple[Floats, list[int]]] = {}  # by tenant: its last jobs, and how many there were
        self._slots: dict[str, tuple[str, int]] = {}  # by running job: tenant, number of the job
        self._lined = np.zeros((4, RECENT + len(ANY_LOG_S)))

    def submit(self, job_id: str, tenant: str, size: int, name: str, at: float) -> RunTimeEstimate:
        """Estimate the run time of a job that is submitted now; `name` is empty where there is none."""
        keys = ((), ("size", size), ("tenant", tenant), ("both", tenant, size), ("name", tenant, size, name))
        groups = np.array([self._group(key) for key in keys], dtype=np.int64)
        x = np.empty(_FEATURES)
        if tenant not in self._recent:
            self._recent[tenant] = np.zeros((RECENT, 4)), [0]
        recent, count = self._recent[tenant]
        centre, scale = _open_job(
            groups, at, log_one(float(size)), self._stats, self._model, x,
            recent, count[0], self._lined, -1,
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
            groups, at, float(x[1]), self._stats, self._model, x.copy(),
            recent, count[0], self._lined, number,
        )  # fmt: skip
        return self._answer(groups, centre, self._ends(centre, scale))

    def _ends(self, centre: float, scale: float) -> tuple[float, ...]:
        return tuple(min(max(centre + scale * each, 0.0), LONGEST_LOG_S) for each in self._quantiles)

    def _answer(self, groups: Ints, centre: float, ends: tuple[float, ...]) -> RunTimeEstimate:
        ended = float(self._stats[groups[0], _COUNT])
        doubt = exp_one(-ended / UNKNOWN_JOBS)
        low = exp_one(ends[0] + doubt * min(self._outer[0] - ends[0], 0.0))
        high = exp_one(ends[1] + doubt * max(self._outer[1] - ends[1], 0.0))
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
        _learn(x, value - x[2] - x[_RECENT_FEATURE], self._products)
        failed, killed = float(outcome == "failed"), float(outcome == "killed")
        _close(groups, submitted, at, value, abs(value - centre), failed, killed, self._stats)
        if self._stats[groups[0], _COUNT] % REFIT_JOBS == 0:
            self._fit()

    def _fit(self) -> None:
        """Fit the linear model to what the mean of the medians missed by, around the means of all ended jobs."""
        jobs, sums = self._products[0, 0], self._products[0, :-1]
        mean = sums / jobs
        spread = self._products[:, :-1] - jobs * mean[:, None] * mean
        varies = np.diag(spread) > LEAST_SPREAD * np.diag(self._products)
        deviation = np.where(varies, np.sqrt(np.abs(np.diag(spread)) / jobs), np.inf)  # inf: it counts for nothing
        scaled = spread / deviation[:, None] / deviation + RIDGE * np.eye(_FEATURES)
        missed = (self._products[:, -1] - mean * self._products[0, -1]) / deviation
        lower = cholesky(scaled)
        half = solve_lower(lower, missed[:, None])
        weights = solve_lower(lower.T[::-1, ::-1], half[::-1])[::-1, 0]
        self._model[:] = weights, mean, deviation  # _WEIGHT, _MEAN, _DEVIATION

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
