"""Plays the state of a scheduler forward: F futures, each with run times drawn from what is believed of each job."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eunomia.backends.simulated.continued_simulation import ContinuedSimulation
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts.drawn_run_times import draw_arrivals, draw_totals
from eunomia.forecasts.ranked_queue import RankedQueue
from eunomia.kernels import PROCESS
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.decisions import Decision, Start, Starts
from eunomia.model.events import JobFinished, Moment
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage
from eunomia.model.moment_batch import Instant, MomentBatch
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.records.run import InlinePolicyRunner, run

FUTURES = 20
LOOK_AHEAD_S = 60 * 86_400.0  # later than that nothing is played


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentState:
    """What futures begin with: the state after the last moment, and what the state does not say."""

    scheduler: Scheduler
    policy: Policy
    speeds: Speeds  # those that are believed
    at: float
    wake: float = math.inf  # when the scheduler wants to be called
    overheads: Overheads = field(default_factory=Overheads)
    resumes_at: Mapping[int, float] = field(default_factory=dict)  # paused jobs that are tried again then, by row
    follows: Mapping[int, frozenset[int]] = field(default_factory=dict)  # paused jobs and the rows they wait for
    ended: Sequence[Job] = ()  # jobs that the scheduler has no rows of any more, with the steps that they did


@dataclass(frozen=True, slots=True)
class Futures:
    """When each job starts next and finishes, (future, row); inf = not within what was played, nan = it is over.

    Of a running job, the start is that of its present run.
    """

    at: float
    start: Floats
    finish: Floats
    complete: bool  # all futures that were asked for were played to their end
    until: float  # to which all of them were played; inf = to their end
    compiled: bool  # what the policy would answer is known, and one compiled call played each

    def __len__(self) -> int:
        return len(self.start)


def play_futures(
    present: PresentState,
    *,
    futures: int = FUTURES,
    seed: int = 0,
    arrivals: bool = False,
    budget_s: float = math.inf,
    only: Ints | None = None,
    totals: Floats | None = None,
) -> Futures:
    """Play the futures, in about `budget_s` seconds of CPU time, in which the first is cut if it takes longer.

    Compiling, which happens once on a machine, does not count.

    With `arrivals` each tenant goes on submitting jobs like those that it submitted before. `only`: play until these
    rows have finished. `totals` are the total steps of each job in each future, (future, row), else they are drawn.
    Nothing of `present` changes.
    """
    begun = _played_s()
    scheduler, at = present.scheduler, present.at
    totals = draw_totals(scheduler, at, futures, seed) if totals is None else totals
    if not arrivals and (totals == totals[0]).all():
        totals = totals[:1]
    is_plain = not (arrivals or present.resumes_at or present.follows)
    queue = _compiled_queue(present) if is_plain else None
    played: list[tuple[Floats, Floats, float]] = []
    complete, template = True, None
    for number, total in enumerate(totals):
        spent = _played_s() - begun
        if played and spent * (1 + 1 / len(played)) > budget_s:
            complete = False
            break
        if queue is not None:
            played.append(queue.play(total, lambda: _played_s() > begun + budget_s))
            continue
        coming = draw_arrivals(scheduler, at, (seed, number), present.ended) if arrivals else ()
        if template is None or arrivals:
            template = ContinuedSimulation(
                scheduler, present.speeds, at, present.wake, coming=coming, overheads=present.overheads
            )
        played.append(_play_one(present, template, total, [job.total_steps for job in coming], begun + budget_s, only))
    start, finish = (np.array([one[part] for one in played]) for part in (0, 1))
    _fill_known(scheduler, start, finish)
    until = min(one[2] for one in played)
    return Futures(at, start, finish, complete and until == math.inf, until, queue is not None)


def _played_s() -> float:
    """Return the processor time of this process without what it took to compile."""
    return time.process_time() - PROCESS.compiling_cpu_s


def _compiled_queue(present: PresentState) -> RankedQueue | None:
    """Return what plays a future in one compiled call, where all that the policy would answer is known."""
    at = present.at
    return RankedQueue.of(present.scheduler, present.policy, present.overheads, at, present.wake, at + LOOK_AHEAD_S)


def _fill_known(scheduler: Scheduler, start: Floats, finish: Floats) -> None:
    """Write the starts of jobs that run, and nan for those that are over."""
    state = scheduler.state
    running = state.running()
    start[:, running] = scheduler.ledger.since[running]
    stage = state.jobs.stage[: start.shape[1]]
    over = ~np.isin(stage, (Stage.WAITING, Stage.RUNNING, Stage.PAUSED))
    start[:, over] = finish[:, over] = np.nan


def _play_one(
    present: PresentState,
    template: ContinuedSimulation,
    total: Floats,
    coming: Sequence[float],
    deadline: float,
    only: Ints | None,
) -> tuple[Floats, Floats, float]:
    """Play one future with the scheduler's own code; return starts, ends, and until when they are known."""
    n = len(total)
    world = template.fork(np.concatenate((total, coming)), present.resumes_at, present.follows)
    times = _Times(n, np.zeros(n, dtype=bool) if only is None else _mask(n, only))
    clock = _Bounded(world, present.at + LOOK_AHEAD_S, deadline, times)
    run(present.scheduler.copy(), clock, InlinePolicyRunner(present.policy), (times,))
    return times.start, times.finish, clock.cut_at


def _mask(n: int, rows: Ints) -> Bools:
    mask = np.zeros(n, dtype=bool)
    mask[rows] = True
    return mask


class _Times:
    """An observer of starts and ends by row."""

    def __init__(self, jobs: int, wanted: Bools) -> None:
        self.start, self.finish = np.full(jobs, np.inf), np.full(jobs, np.inf)
        self._jobs, self._wanted, self.missing = jobs, wanted, int(wanted.sum()) or math.inf
        self._row_of: Mapping[str, int] = {}

    def bind(self, row_of: Mapping[str, int]) -> None:
        """Use these rows for job ids."""
        self._row_of = row_of

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note the starts and ends of one moment."""
        for event in moment.events:
            if isinstance(event, JobFinished):
                self._end(np.array([self._row_of[event.job_id]]), moment.at)
        for decision in decisions:
            if isinstance(decision, Starts):
                self._begin(decision.jobs.rows, moment.at)
                self._begin(decision.partners.rows, moment.at)
            elif isinstance(decision, Start):
                names = [decision.job_id] + [decision.partner_id] * (decision.partner_id is not None)
                self._begin(np.array([self._row_of[name] for name in names if name]), moment.at)

    def observe_batch(self, batch: MomentBatch) -> None:
        """Note the starts and ends of many moments."""
        ends = batch.epoch > 0
        self._end(batch.row[ends], batch.at[ends])
        self._begin(batch.started, batch.started_at)

    def _begin(self, rows: Ints, at: float | Floats) -> None:
        known = (rows >= 0) & (rows < self._jobs)
        when = np.broadcast_to(at, rows.shape)[known]
        np.minimum.at(self.start, rows[known], when)

    def _end(self, rows: Ints, at: float | Floats) -> None:
        known = rows < self._jobs
        self.finish[rows[known]] = np.broadcast_to(at, rows.shape)[known]
        self.missing -= int(self._wanted[rows[known]].sum())


class _Bounded:
    """A simulation that ends when it has gone far enough: by time, by what it cost, or by what it was asked for."""

    def __init__(self, world: ContinuedSimulation, until: float, deadline: float, times: _Times) -> None:
        self._world, self._until, self._deadline, self._times = world, until, deadline, times
        self.cut_at = math.inf
        times.bind(world.row_of)
        self.carry_out = world.carry_out

    def implied(self, scheduler: Scheduler, ranked: bool, instant: Instant) -> Iterator[MomentBatch]:
        """Play what is implied, up to the end; see `Simulation.implied`."""
        for batch in self._world.implied(scheduler, ranked, instant):
            yield batch
            if self._is_over(float(batch.at[-1])):
                return

    def moments(self) -> Iterator[Moment]:
        """Yield moments up to the end."""
        for moment in self._world.moments():
            if self._is_over(moment.at):
                return
            yield moment
            if self.cut_at < math.inf:  # within what was implied
                return

    def _is_over(self, at: float) -> bool:
        """Say whether the end has come; `cut_at` is when, unless all that was asked for is known."""
        if self._times.missing <= 0:
            return True
        if at > self._until or _played_s() > self._deadline:
            self.cut_at = at
            return True
        return False
