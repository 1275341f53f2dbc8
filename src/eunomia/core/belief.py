"""What the scheduler thinks is true: how fast jobs go and how much they have left.

It hears events and what was decided, never the world. What it thinks of speeds comes from a source of its own,
which may differ from the truth.
"""

from __future__ import annotations

import numpy as np

from eunomia.core.columns import Columns
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.speeds import Speeds, apart


class Belief(Columns):
    """Declared steps, believed speeds; between reports progress is reckoned from the time on seats."""

    total: Floats
    done: Floats  # steps up to `since`
    rate: Floats  # steps/s now, 0 = not running
    since: Floats  # when the present rate began or begins
    throughput: Floats  # (job, type) steps/s as asked

    def __init__(self, speeds: Speeds, overheads: Overheads | None = None):
        super().__init__(
            {
                "total": (np.float64, 1.0),
                "done": (np.float64, 0.0),
                "rate": (np.float64, 0.0),
                "since": (np.float64, 0.0),
                "throughput": (np.float64, 0.0, len(speeds.types)),
            }
        )
        self.speeds = speeds
        self._overheads = overheads or Overheads()
        self._jobs: list[Job] = []
        self._kinds: dict[tuple[str, int], int] = {}
        self._kind_of: list[int] = []
        self._table = np.zeros((0, 0, len(speeds.types)))  # (kind, kind, type) of the kinds asked about so far

    def learn(self, job: Job) -> int:
        """Take in a new job and return its row."""
        row = self.add()
        self.total[row] = job.total_steps
        self.throughput[row] = self.speeds.alone(job.job_type, job.scale_factor)
        self._jobs.append(job)
        self._kind_of.append(self._kinds.setdefault((job.job_type, job.scale_factor), len(self._kinds)))
        return row

    def start(self, row: int, at: float, type: int, size: int, partner: int, *, first: bool) -> None:
        """The job runs from now on, after what a start costs."""
        job = self._jobs[row]
        if partner >= 0:
            rate = self.speeds.beside(job.job_type, self._jobs[partner].job_type, size)[type]
        else:
            rate = self.throughput[row, type] if size == job.scale_factor else self._alone(job, size)[type]
        self.rate[row], self.since[row] = rate, at + self._overheads.of(first=first)

    def start_cost(self, ran: Bools) -> Floats:
        """Return the seconds without progress that a start costs, (row,), for jobs that `ran` before or not."""
        return np.where(ran, self._overheads.of(first=False), self._overheads.of(first=True))

    def go_alone(self, row: int, at: float, type: int, size: int) -> None:
        """Its partner left; it keeps the seats."""
        self._reckon(row, at)
        self.rate[row], self.since[row] = self._alone(self._jobs[row], size)[type], max(at, self.since[row])

    def stop(self, row: int, at: float) -> None:
        """The job no longer runs."""
        self._reckon(row, at)
        self.rate[row] = 0.0

    def hear_progress(self, row: int, steps: float, at: float) -> None:
        """A checkpoint says how many steps are safe."""
        self.done[row] = steps
        self.since[row] = max(at, self.since[row])

    def remaining_at(self, at: float, rows: Ints) -> Floats:
        """Return believed steps still to do, (row,), at least 0."""
        run = np.maximum(at - self.since[rows], 0.0) * self.rate[rows]
        return np.asarray(np.maximum(self.total[rows] - self.done[rows] - run, 0.0))

    def kinds(self, rows: Ints) -> Ints:
        """Return the row of each job in the table of kinds, (row,)."""
        return np.asarray(self._kind_of, dtype=np.int64)[rows]

    def paired(self) -> Floats:
        """Return steps/s of each kind beside each, (kind, kind, type); 0 where gangs differ in size."""
        kinds, known = list(self._kinds), len(self._table)
        if len(kinds) > known:
            table = np.zeros((len(kinds), len(kinds), len(self.speeds.types)))
            table[:known, :known] = self._table
            for i, mine in enumerate(kinds):
                for j, other in enumerate(kinds):
                    if max(i, j) >= known and mine[1] == other[1]:
                        table[i, j] = self.speeds.beside(mine[0], other[0], mine[1])
            self._table = table
        return self._table.copy()

    def apart(self, rows: Ints) -> Floats:
        """Return steps/s of each gang when it does not sit on one machine, (row, type)."""
        jobs = [self._jobs[row] for row in rows.tolist()]
        speeds = [apart(self.speeds, job.job_type, job.scale_factor) for job in jobs]
        return np.array(speeds).reshape(len(jobs), len(self.speeds.types))

    def shapes(self, rows: Ints) -> tuple[Ints, Floats]:
        """Return accelerators of each shape, (row, shape), and steps/s in each, (row, shape, type)."""
        jobs = [self._jobs[row] for row in rows.tolist()]
        widest = max((len(job.shapes) for job in jobs), default=1)
        sizes = np.zeros((len(jobs), widest), dtype=np.int64)
        speeds = np.zeros((len(jobs), widest, len(self.speeds.types)))
        for m, job in enumerate(jobs):
            for s, size in enumerate(job.shapes):
                sizes[m, s], speeds[m, s] = size, self._alone(job, size)
        return sizes, speeds

    def _reckon(self, row: int, at: float) -> None:
        self.done[row] += max(at - self.since[row], 0.0) * self.rate[row]

    def _alone(self, job: Job, size: int) -> Floats:
        return self.speeds.alone(job.job_type, size)
