"""A simulation that begins in the present state of a scheduler: jobs wait, gangs run on their seats, others follow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Unpack

import numpy as np

from eunomia.backends.simulated.completion_heap import PLACES, foresee_end, note_next
from eunomia.backends.simulated.gang_kernels import ENDED
from eunomia.backends.simulated.simulation import Simulation
from eunomia.backends.simulated.stall_detection import StallDetector
from eunomia.backends.simulated.virtual_clock import SHUFFLES, GangSettings
from eunomia.core.scheduler import Scheduler
from eunomia.inputs.problems import refused
from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.events import Event, JobFinished, JobResumed
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage
from eunomia.model.job_table import job_array
from eunomia.model.moment_batch import Instant, MomentBatch
from eunomia.model.speeds import Speeds


@kernel(allocates=False)
def _predict_ends(gangs: Array, heap: Array, counts: Ints, next_end: Floats, rows: Ints) -> None:
    """Predict the ends of gangs that run now."""
    for row in rows:
        gang = gangs[row]
        foresee_end(heap, counts, row, gang["since"] + (gang["total"] - gang["done"]) / gang["rate"])
    note_next(heap, counts, next_end)


class ContinuedSimulation(Simulation):
    """Plays on from time `at`; `timer` is when the scheduler wants to be called, inf = not.

    Progress so far is as the scheduler believes it. `coming` are jobs that are submitted later. `fork` returns
    a simulation that can be played, with other total steps, which costs a copy of its arrays.

    Raises InvalidInput for a scheduler whose rows are not in the order of submission.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        speeds: Speeds,
        at: float,
        timer: float,
        *,
        coming: Sequence[Job] = (),
        **settings: Unpack[GangSettings],
    ):
        state = scheduler.state
        super().__init__([*state.submitted, *coming], state.topology, speeds, **settings)
        if self._register.ids[: len(state.ids)] != state.ids:
            rule = "jobs are not in the order of their submission, so no simulation can continue from here"
            raise refused("scheduler", None, None, rule, "start the service again: it begins with the jobs in order")
        self._at, self._timer, self._arrived = at, timer, len(state.ids)
        self._follows: dict[int, set[int]] = {}
        stage = state.jobs.stage[: len(state.ids)]
        live = np.isin(stage, (Stage.WAITING, Stage.RUNNING, Stage.PAUSED))
        self._unfinished = int(live.sum()) + len(coming)
        self._set_gangs(scheduler, np.flatnonzero(live), np.flatnonzero(~live))
        self.running = state.running().copy()

    def _set_gangs(self, scheduler: Scheduler, live: Ints, over: Ints) -> None:
        """Write the rows of jobs as the scheduler's state has them."""
        jobs, belief, gangs = scheduler.state.jobs, scheduler.belief, self._gangs
        gangs["epoch"][over] = ENDED
        gangs["done"][live] = gangs["safe"][live] = belief.done[live]
        gangs["epoch"][live], gangs["ran"][live] = jobs.epoch[live], jobs.ran[live]
        gangs["failures"][live] = jobs.failures[live]
        gangs["saved"][live] = ~jobs.no_checkpoint[live]
        if scheduler.state.has_uninterruptible:
            # As it is known by now, not as it was when they were submitted.
            cannot_save = ~job_array(self._jobs, "interruptible", np.bool_)
            cannot_save[live] = jobs.uninterruptible[live]
            cannot_save[[scheduler.state.row_of[name] for name in scheduler.state.restartable]] = True
            self._cannot_save = cannot_save
        running = scheduler.state.running()
        mates = jobs.partner[running]
        size = np.where(jobs.lease_size[running] > 0, jobs.lease_size[running], jobs.lease_size[mates])
        type, rates = jobs.on_type[running], self._rates
        kind = rates.kind_of[gangs["model"][running], size]
        gangs["type"][running], gangs["size"][running], gangs["kind"][running] = type, size, kind
        gangs["mate"][running], gangs["since"][running] = mates, belief.since[running]
        gangs["mark"][running] = self._at
        gangs["rate"][running] = rates.alone[kind, type]
        paired = np.flatnonzero(mates >= 0)
        if len(paired):
            other = rates.kind_of[gangs["model"][mates[paired]], size[paired]]
            rates.look_up_pairs(kind[paired], other)
            gangs["rate"][running[paired]] = rates.beside[rates.pair_of[kind[paired], other], type[paired]]

    @property
    def row_of(self) -> Mapping[str, int]:
        """The row of each job by its id."""
        return self._register.by_id

    def fork(
        self, total: Floats, resumes_at: Mapping[int, float], follows: Mapping[int, Collection[int]]
    ) -> ContinuedSimulation:
        """Return a simulation of its own in which the jobs have these total steps, (job,).

        `resumes_at` says when paused jobs are resumed, by row; `follows`, by row of a paused job, the rows whose jobs
        it waits for. Other paused jobs stay so.
        """
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        _, heap, counts, _ = self._ends
        made._gangs, made._next_end = self._gangs.copy(), np.full(1, np.inf)
        made._gangs["total"] = total
        made._ends = (made._gangs, heap.copy(), counts.copy(), made._next_end)
        made._reports, made._future, made._implied, made._stalls = [], [], None, StallDetector()
        made._shuffles = np.random.default_rng(self._streams[SHUFFLES])
        made._follows = {row: set(rows) for row, rows in follows.items()}
        for row, when in resumes_at.items():
            made._schedule(max(when, self._at), JobResumed(self._register.ids[row]), awaited=True)
        assert counts[PLACES:].max(initial=-1) < 0  # nothing is predicted before
        _predict_ends(made._gangs, *made._ends[1:], self.running)
        return made

    def implied(self, scheduler: Scheduler, ranked: bool, instant: Instant) -> Iterator[MomentBatch]:
        """Play the next moments as far as they are implied; see `Simulation.implied`."""
        return iter(()) if self._follows else super().implied(scheduler, ranked, instant)

    def _happen_now(self) -> list[Event]:
        """Resume the jobs whose last predecessor has ended."""
        events = super()._happen_now()
        if self._follows:
            ended = {self._register.row(event.job_id) for event in events if isinstance(event, JobFinished)}
            for row in list(self._follows):
                self._follows[row] -= ended
                if not self._follows[row]:
                    del self._follows[row]
                    events.append(JobResumed(self._register.ids[row]))
        return events
