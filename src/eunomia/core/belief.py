"""What the scheduler believes: speeds of jobs and their remaining steps.

It is updated by events and decisions, never by the world. Believed speeds come from a source of their own,
which may differ from the truth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.core.job_shapes import JobShapes
from eunomia.core.kernel_arrays import DONE, RATE_SINCE
from eunomia.kernels import kernel
from eunomia.model import elementary
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.events import Estimated, PairsEstimated, ThroughputsLearnt
from eunomia.model.job import Job
from eunomia.model.job_table import SubmittedJobs, job_array, job_values
from eunomia.model.overheads import Overheads
from eunomia.model.speeds import LEVELS, Speeds, by_level, consolidated_throughput, spread_throughput
from eunomia.throughputs.job_type_facts import largest_tensor

_LOG_9 = elementary.log(9.0)


@kernel(allocates=False)
def _record_progress(rows: Ints, steps: Floats, at: float, floats: Floats) -> None:
    """Set the checkpointed steps of these jobs; further steps count from `at` on at the earliest."""
    for m in range(len(rows)):
        floats[DONE, rows[m]] = steps[m]
        floats[RATE_SINCE, rows[m]] = max(at, floats[RATE_SINCE, rows[m]])


def median_left(median: Floats, steepness: Floats, done: Floats) -> Floats:
    """Return the median of what is left of a log-logistic total of which so much is done, (row,).

    P(total > x) = 1 / (1 + (x / α)^β), α the median and β the steepness; given total > x the median of total − x is
    α (1 + 2 (x / α)^β)^(1/β) − x, which grows with x: a job that has run long is expected to run on.
    """
    past = elementary.power(done / median, steepness)
    return np.asarray(np.maximum(median * elementary.power(1.0 + 2.0 * past, 1.0 / steepness) - done, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class LearntThroughput:
    """What progress has taught of gangs of one job type and size, (type,) each; see `ThroughputsLearnt`."""

    rates: Floats
    measured_s: Floats
    tried: Bools
    failed_starts: Ints | None = None  # None = none

    @classmethod
    def of(cls, event: ThroughputsLearnt) -> Iterator[tuple[tuple[str, int], LearntThroughput]]:
        """Yield what an event says of each kind."""
        for place, kind in enumerate(zip(event.job_types, map(int, event.scale_factors), strict=True)):
            failed = None if event.failed is None else event.failed[place]
            yield kind, cls(event.throughput[place], event.measured_s[place], event.tried[place], failed)

    @property
    def failed(self) -> Ints:
        """Starts on types that were tried, none of them measured."""
        return np.zeros(len(self.rates), dtype=np.int64) if self.failed_starts is None else self.failed_starts


class Belief(GrowingColumns):
    """Declared steps, believed speeds; between reports progress is estimated from the time on seats.

    The steps of `core.transitions` set rates when gangs start or stop.
    """

    kind: Ints  # jobs of one kind go equally fast
    total: Floats
    done: Floats  # steps up to `since`
    rate: Floats  # steps/s now, 0 = not running
    since: Floats  # when the present rate began or begins
    steepness: Floats  # of the log-logistic distribution of estimated totals, 0 = the total is declared
    throughput: Floats  # (job, type) steps/s as asked

    def __init__(self, speeds: Speeds, overheads: Overheads | None = None):
        types = len(speeds.types)
        super().__init__(
            {
                "kind": (np.int64, 0),
                "total": (np.float64, 1.0),
                "done": (np.float64, 0.0),
                "rate": (np.float64, 0.0),
                "since": (np.float64, 0.0),
                "steepness": (np.float64, 0.0),
                "throughput": (np.float64, 0.0, types),
            }
        )
        self.speeds = speeds
        self.cost = np.zeros((3, 0))  # (first start, later one, later one without a checkpoint; accelerators) seconds
        self.prefer: Ints = np.zeros((0, types), dtype=np.int64)  # (kind, type) types, the fastest first
        self._overheads = overheads or Overheads()
        self.estimates: dict[int, Estimated] = {}  # by row, of jobs whose total is estimated
        self.pairs_measured = 0  # on which the believed throughputs of pairs rest that were estimated during the run
        self.learnt: dict[tuple[str, int], LearntThroughput] = {}  # by job type and size of the gang
        self._jobs = SubmittedJobs()
        self._kinds: dict[tuple[str, int], int] = {}
        self._alone: list[Floats] = []  # by kind
        # (kind, kind, type) of the kinds asked about so far, of pairs on one machine and of spread ones
        self._table, self._spread_table = np.zeros((0, 0, types)), np.zeros((0, 0, types))
        self._kept: dict[tuple[str, str], Floats] = {}  # by job type and partner, of pairs estimated during the run
        self._levels = np.zeros((0, LEVELS))  # (kind, level) likewise
        self._skew: Floats = np.zeros(0)  # (kind,) likewise
        self._spread = np.zeros((0, types))  # (kind, type) likewise
        self._by_shape = np.zeros((0, 1, types))  # (group, shape, type), groups as in `JobShapes`

    def learn(self, job: Job) -> int:
        """Add a new job and return its row."""
        row = self.add()
        kind = self._kinds.get((job.job_type, job.scale_factor))
        if kind is None:
            kind = self._add_kind(job)
        if self.cost.shape[1] <= max(job.shapes):
            self._cost_up_to(max(job.shapes))
        self.total[row] = job.total_steps
        self.throughput[row] = self._alone[kind]
        self.kind[row] = kind
        self._know((job,))
        return row

    def follow(self, jobs: SubmittedJobs) -> None:
        """Use the list of a state, which has each job before it is learnt."""
        self._jobs = jobs

    def _know(self, jobs: Sequence[Job]) -> None:
        more = len(self) - len(self._jobs)
        if more > 0:
            self._jobs.extend(jobs[-more:])

    def foresee(self, jobs: Sequence[Job]) -> int:
        """Write the columns of the jobs that come next, up to the first with a new kind or size; return how many.

        They are not known before `learn_foreseen`.
        """
        kinds, widest = [], self.cost.shape[1]
        fields = (job_values(jobs, name) for name in ("job_type", "scale_factor", "other_shapes"))
        for job_type, size, others in zip(*fields, strict=True):
            kind = self._kinds.get((job_type, size))
            if kind is None or (others and max(size, *others) >= widest):
                break
            kinds.append(kind)
        if kinds:
            rows = self.reserve(len(kinds))
            self.kind[rows], self.throughput[rows] = kinds, np.array(self._alone)[kinds]
            self.total[rows] = job_array(jobs[: len(kinds)], "total_steps")
        return len(kinds)

    def learn_foreseen(self, jobs: Sequence[Job]) -> None:
        """Add jobs whose columns are written."""
        self.add_many(len(jobs))
        self._know(jobs)

    def _add_kind(self, job: Job) -> int:
        """Add a new kind and return its row."""
        kind = self._kinds[job.job_type, job.scale_factor] = len(self._kinds)
        alone = self.solo_throughput(job.job_type, job.scale_factor)
        self._alone.append(alone)
        self.prefer = np.concatenate((self.prefer, np.argsort(-alone, kind="stable")[None, :]))
        return kind

    def _cost_up_to(self, size: int) -> None:
        """Extend `cost` to gangs of that size."""
        sizes = range(self.cost.shape[1], size + 1)
        begun = ((True, True), (False, True), (False, False))
        cost = [[self._overheads.of(first=first, size=size, saved=saved) for size in sizes] for first, saved in begun]
        self.cost = np.concatenate((self.cost, np.array(cost)), axis=1)

    def forget(self, stays: Bools, row: Ints) -> None:
        """Drop rows of jobs, (row,) each: those that stay, and their new numbers."""
        self.compact(stays)
        self.estimates = {int(row[one]): said for one, said in self.estimates.items() if stays[one]}

    def correct_rates(self, jobs: Ints, partners: Ints, types: Ints, sizes: Ints) -> None:
        """Believe of jobs that have just started what is believed of them in pairs (partner -1 = none) and shapes."""
        two = np.flatnonzero(partners >= 0)
        if len(two):
            table, job, mate, type = self.paired(), jobs[two], partners[two], types[two]
            self.rate[job] = table[self.kind[job], self.kind[mate], type]
            self.rate[mate] = table[self.kind[mate], self.kind[job], type]
        for place in np.flatnonzero(partners < 0).tolist():
            row, size = int(jobs[place]), int(sizes[place])
            if size != self._jobs[row].scale_factor:
                self.rate[row] = self.solo_throughput(self._jobs[row].job_type, size)[types[place]]

    def start_cost(self, ran: Bools, no_checkpoint: Bools, sizes: Ints) -> Floats:
        """Return the seconds without progress that a start costs, (row,), for jobs that `ran` before or not.

        Jobs with `no_checkpoint` restore none.
        """
        return np.asarray(self.cost[ran.astype(np.int64) + (ran & no_checkpoint), sizes])

    def record_progress(self, rows: Ints, steps: Floats, at: float) -> None:
        """Checkpoints say how many steps of these jobs are safe, (row,)."""
        _record_progress(rows, steps, at, self.floats)

    def remaining_at(self, at: float, rows: Ints) -> Floats:
        """Return believed steps still to do, (row,), at least 0."""
        run = np.maximum(at - self.since[rows], 0.0) * self.rate[rows]
        left = np.asarray(np.maximum(self.total[rows] - self.done[rows] - run, 0.0))
        if self.estimates:
            guessed = self.steepness[rows] > 0
            left[guessed] = median_left(
                self.total[rows][guessed], self.steepness[rows][guessed], (self.done[rows] + run)[guessed]
            )
        return left

    def declare(self, row: int, total_steps: float) -> None:
        """Believe that a job has so many steps, without doubt."""
        self.total[row], self.steepness[row] = total_steps, 0.0
        self.estimates.pop(row, None)

    def estimate(self, row: int, estimate: Estimated) -> None:
        """Believe an estimated run time instead of declared steps."""
        decades = elementary.log(max(estimate.high_s / estimate.low_s, 1.0 + 1e-6))
        self.total[row] = estimate.run_s * self.throughput[row].max()
        self.steepness[row] = min(max(2.0 * _LOG_9 / decades, 0.3), 20.0)
        self.estimates[row] = estimate

    def estimate_pairs(self, estimate: PairsEstimated) -> None:
        """Believe estimated throughputs of pairs instead of those believed so far."""
        self.pairs_measured = estimate.measurements
        self._kept.update(zip(zip(estimate.job_types, estimate.partners, strict=True), estimate.kept, strict=True))
        kinds = defaultdict(list)
        for kind in self._kinds:
            kinds[kind[0]].append(kind)
        for name, partner in zip(estimate.job_types, estimate.partners, strict=True):
            for mine in kinds[name]:
                for other in kinds[partner]:
                    self._change_pair(mine, other)

    def solo_throughput(self, job_type: str, size: int) -> Floats:
        """Return believed steps/s of a gang on each type, (type,): learnt, else those of the source."""
        found = self.learnt.get((job_type, size))
        return self.speeds.solo_throughput(job_type, size) if found is None else found.rates

    def take_over(self, other: Belief) -> None:
        """Believe what another belief has learnt of the same accelerator types; before the first job is learnt."""
        if self.speeds.types == other.speeds.types:
            self.learnt.update(other.learnt)

    def learn_throughputs(self, event: ThroughputsLearnt) -> None:
        """Believe learnt throughputs; those beside others, spread and of other shapes change in proportion."""
        for kind, found in LearntThroughput.of(event):
            self.learnt[kind] = found
            number = self._kinds.get(kind)
            if number is not None:
                self._change_kind(number, found.rates)
        self._by_shape = self._by_shape[:0]
        for row, estimate in self.estimates.items():
            self.total[row] = estimate.run_s * self.throughput[row].max()

    def _change_kind(self, kind: int, rates: Floats) -> None:
        """Write believed throughputs of a kind wherever they are kept."""
        self._alone[kind] = rates
        self.prefer[kind] = np.argsort(-rates, kind="stable")
        self.throughput[np.flatnonzero(self.kind[: len(self)] == kind)] = rates
        names = list(self._kinds)
        if kind < len(self._spread):
            self._spread[kind] = self.in_proportion(names[kind], spread_throughput(self.speeds, *names[kind]))
        for other in names:
            self._change_pair(names[kind], other)

    def _change_pair(self, mine: tuple[str, int], other: tuple[str, int]) -> None:
        """Write believed throughputs of a kind beside another wherever they are kept."""
        place = self._kinds[mine], self._kinds[other]
        for table, rates_of in ((self._table, consolidated_throughput), (self._spread_table, spread_throughput)):
            if max(place) < len(table):
                table[place] = self._packed(rates_of, mine, other)

    def change_rates(self, at: float, jobs: Ints, types: Ints) -> None:
        """Count the steps of running jobs up to now; from now on they go as believed of gangs in their own shape."""
        self.done[jobs] += np.maximum(at - self.since[jobs], 0.0) * self.rate[jobs]
        self.since[jobs] = np.maximum(at, self.since[jobs])
        self.rate[jobs] = self.throughput[jobs, types]

    def in_proportion(self, kind: tuple[str, int], rates: Floats) -> Floats:
        """Return rates of the source for gangs of a kind, (type,), changed as the believed ones alone were."""
        found = self.learnt.get(kind)
        if found is None:
            return rates
        before = self.speeds.solo_throughput(*kind)
        return rates * np.divide(found.rates, before, out=np.ones(len(rates)), where=before > 0)

    def _packed(self, rates_of: Callable[..., Floats], mine: tuple[str, int], other: tuple[str, int]) -> Floats:
        """Return believed steps/s of a kind beside another, (type,); 0 where their sizes differ.

        `rates_of` are the source's for gangs on one machine or for spread ones.
        """
        if mine[1] != other[1]:
            return np.zeros(len(self.speeds.types))
        rates = self.in_proportion(mine, rates_of(self.speeds, *mine, other[0]))
        kept = self._kept.get((mine[0], other[0]))
        if kept is None:
            return rates
        alone = self._alone[self._kinds[mine]]
        if rates_of is spread_throughput:
            alone = self.in_proportion(mine, rates_of(self.speeds, *mine))
        return np.where(rates > 0, kept * alone, 0.0)

    def kinds(self, rows: Ints) -> Ints:
        """Return the row of each job in the table of kinds, (row,)."""
        return np.asarray(self.kind[rows])

    def job_types(self, rows: Ints) -> Array:
        """Return the name of what each job trains, (row,)."""
        names = np.array([job_type for job_type, _ in self._kinds], dtype=object)
        return np.asarray(names[self.kind[rows]]) if len(rows) else names[:0]

    def paired(self) -> Floats:
        """Return steps/s of each kind beside each, (kind, kind, type); 0 where gangs differ in size.

        It is the table that changes with what is believed: copy it to keep it.
        """
        self._table = self._grown(self._table, consolidated_throughput)
        return self._table

    def spread_pairs(self) -> Floats:
        """Return what `paired` does, of pairs that are not on one machine."""
        self._spread_table = self._grown(self._spread_table, spread_throughput)
        return self._spread_table

    def _grown(self, table: Floats, rates_of: Callable[..., Floats]) -> Floats:
        """Return a table of pairs, (kind, kind, type), with the kinds that it lacks."""
        kinds, known = list(self._kinds), len(table)
        if len(kinds) == known:
            return table
        grown = np.zeros((len(kinds), len(kinds), len(self.speeds.types)))
        grown[:known, :known] = table
        for i, mine in enumerate(kinds):
            for j, other in enumerate(kinds):
                if max(i, j) >= known and mine[1] == other[1]:
                    grown[i, j] = self._packed(rates_of, mine, other)
        return grown

    def skew(self, rows: Ints) -> Floats:
        """Return the largest tensor's part of each job's model, (row,); nan where the model is not known."""
        known = len(self._skew)
        if len(self._kinds) > known:
            fresh = [largest_tensor(job_type) for job_type, _ in list(self._kinds)[known:]]
            self._skew = np.concatenate((self._skew, fresh))
        return np.asarray(self._skew[self.kind[rows]])

    def slowdown(self, rows: Ints) -> Floats:
        """Return by what each gang's step time is multiplied when a slot, machine, rack or more hold it, (row, 4)."""
        kinds = list(self._kinds)
        known = len(self._levels)
        if len(kinds) > known:
            fresh = [by_level(self.speeds, *kind) for kind in kinds[known:]]
            self._levels = np.concatenate((self._levels, fresh))
        return np.asarray(self._levels[self.kind[rows]])

    def spread_throughput(self, rows: Ints) -> Floats:
        """Return steps/s of each gang when it is not on one machine, (row, type)."""
        known = len(self._spread)
        if len(self._kinds) > known:
            kinds = list(self._kinds)[known:]
            fresh = [self.in_proportion(kind, spread_throughput(self.speeds, *kind)) for kind in kinds]
            self._spread = np.concatenate((self._spread, fresh))
        return np.asarray(self._spread[self.kind[rows]])

    def shape_throughput(self, shapes: JobShapes, rows: Ints) -> Floats:
        """Return steps/s of each job in each of its shapes, (row, shape, type); 0 where it has no more."""
        sizes, groups = shapes.sizes_of(rows), shapes.groups_of(rows)
        if len(shapes.groups) > len(self._by_shape):
            most = max(len(sized) for _, sized in shapes.groups)
            table = np.zeros((len(shapes.groups), most, len(self.speeds.types)))
            for group, (job_type, sized) in enumerate(shapes.groups):
                table[group, : len(sized)] = [self.solo_throughput(job_type, size) for size in sized]
            self._by_shape = table
        return np.asarray(self._by_shape[groups, : sizes.shape[1]])
