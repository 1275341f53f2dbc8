"""A backend that reports estimated run times of submitted jobs as events, so that records hold them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from eunomia.backends.protocol import Backend
from eunomia.model.arrays import Array, Ints
from eunomia.model.decisions import Decision, GiveUp, Refuse, Start, Starts, Stop
from eunomia.model.events import Estimated, Event, JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.speeds import Speeds
from eunomia.setup.run_objects import RunConfig
from eunomia.throughputs.durations.run_time_history import UNKNOWN, RunTimeEstimate, RunTimeHistory


class RunTimeEstimating:
    """Adds an `Estimated` to the moment in which a job is submitted.

    When a job ends, those of its tenant are estimated again; a median that has moved by more than the share
    `tolerance` since it was reported last is reported anew, and asks the policy again. None: reported once. Run times
    count as on the job's fastest type, whatever type it ran on; those of real jobs are the times for which they held
    accelerators, whose types are `real_types`, (device,). Without `learns` every job gets the same estimate, `UNKNOWN`.
    Jobs that did not complete say nothing of their run times. `run_s` has those of completed jobs.
    """

    def __init__(
        self, world: Backend, believed: Speeds, *, learns: bool, tolerance: float | None = None,
        real_types: Ints | None = None,
    ):  # fmt: skip
        self._world, self._believed, self._learns = world, believed, learns
        self._history, self._tolerance, self._real_types = RunTimeHistory(), tolerance, real_types
        self.run_s: dict[str, float] = {}
        self._running: dict[str, Job] = {}  # waiting or running
        self._held_s: dict[str, float] = {}  # on seats that were left, as on the fastest type
        self._on: dict[str, tuple[float, float]] = {}  # of jobs on seats: since when, and speed over the fastest type's
        self._reported: dict[str, dict[str, float]] = {}  # by tenant and running job: the median reported last
        self._news: dict[str, None] = {}  # tenants with jobs that ended since the last moment, in order
        self._at = 0.0

    def moments(self) -> Iterator[Moment]:
        """Yield the moments of the world with the estimates in them."""
        for moment in self._world.moments():
            self._at = moment.at
            estimates: list[Event] = []
            for event in moment.events:
                match event:
                    case JobFinished(name):
                        self._end(name, ran=True)
                    case JobCancelled(name):
                        self._end(name, ran=False)
                    case JobFailed(name):
                        self._leave_seats(name)
                    case JobSubmitted(job):
                        estimates.append(self._submit(job))
            estimates += self._moved()
            yield Moment.of(moment.at, (*moment.events, *estimates)) if estimates else moment

    def carry_out(self, decision: Decision) -> None:
        """Forward the decision; a refused or abandoned job has ended."""
        match decision:
            case Refuse(name) | GiveUp(name):
                self._end(name, ran=False)
            case Stop(names) if self._real_types is not None:
                for name in names:
                    self._leave_seats(name)
            case Start() if self._real_types is not None:
                self._take_seats(decision)
            case Starts() if self._real_types is not None:
                for start in decision.each():
                    self._take_seats(start)
        self._world.carry_out(decision)

    def _submit(self, job: Job) -> Estimated:
        found, is_known = UNKNOWN, job.job_id in self._running
        self._running[job.job_id] = job
        if self._learns and not is_known:
            found = self._history.submit(job.job_id, job.tenant, job.scale_factor, job.app, self._at)
            self._reported.setdefault(job.tenant, {})[job.job_id] = found.median_s
        return _event(job.job_id, found)

    def _moved(self) -> list[Event]:
        """Return the estimates that have moved by more than the tolerance."""
        news, self._news = list(self._news), {}
        if self._tolerance is None:
            return []
        events: list[Event] = []
        for tenant in news:
            reported = self._reported[tenant]
            for name, before in reported.items():
                found = self._history.estimate_again(name, self._at)
                if max(found.median_s / before, before / found.median_s) > 1.0 + self._tolerance:
                    reported[name] = found.median_s
                    events.append(_event(name, found))
        return events

    def _end(self, name: str, *, ran: bool) -> None:
        self._leave_seats(name)
        job, held_s = self._running.pop(name, None), self._held_s.pop(name, 0.0)
        if job is None:
            return
        if ran:
            self.run_s[name] = held_s if self._real_types is not None else _run_time_s(job, self._believed)
        if self._learns:
            self._history.end(name, self.run_s.get(name, 0.0), self._at)
            del self._reported[job.tenant][name]
            if ran:
                self._news[job.tenant] = None

    def _take_seats(self, start: Start) -> None:
        assert self._real_types is not None
        for name in filter(None, (start.job_id, start.partner_id)):
            self._leave_seats(name)
            if name in self._running:
                rates = self._believed.solo_throughput(self._running[name].job_type, len(start.seats))
                self._on[name] = self._at, float(rates[self._real_types[start.seats[0]]] / rates.max())

    def _leave_seats(self, name: str) -> None:
        since, speed = self._on.pop(name, (self._at, 0.0))
        self._held_s[name] = self._held_s.get(name, 0.0) + (self._at - since) * speed


def estimating_run_times(setup: RunConfig, world: Backend, *, real: bool = False) -> RunTimeEstimating:
    """Return the backend with the estimates of run times that a scenario asks for."""
    belief = setup.scenario.belief
    return RunTimeEstimating(
        world,
        setup.believed,
        learns=belief.duration == "history",
        tolerance=belief.tolerance,
        real_types=setup.topology.type if real else None,
    )


def estimates_note(run_s_of: Mapping[str, float], columns: Mapping[str, Array]) -> tuple[str, ...]:
    """Return what came of the run times estimated at submission: coverage, error and width; nothing without any.

    `run_s_of` has the run times of completed jobs, `columns` are those of jobs.csv, of some of the jobs. Jobs that did
    not finish are not counted.
    """
    if "estimated_run_s" not in columns:
        return ()
    run_s = np.array([run_s_of.get(name, math.nan) for name in columns["job_id"]])
    names = ("estimated_run_s", "estimated_run_p10_s", "estimated_run_p90_s")
    done = (columns["status"] == "finished") & ~np.isnan(columns[names[0]])
    if not done.any():
        return ("Run times were estimated, and no job has finished to judge them by.",)
    run_s, median, low, high = (each[done] for each in (run_s, *(columns[name] for name in names)))
    inside = np.count_nonzero((low <= run_s) & (run_s <= high))
    factor = float(np.median(np.maximum(median / run_s, run_s / median)))
    return (
        f"The 80 % intervals of run times estimated at submission hold {inside:,} of {len(run_s):,} finished jobs "
        f"({inside / len(run_s):.0%}); an estimate is off by a factor of {factor:.2g} in the median, and an interval's "
        f"ends by one of {float(np.median(high / low)):,.2g}.",
    )


def described_estimates(setup: RunConfig, columns: Mapping[str, Array]) -> tuple[str, ...]:
    """Return in words what was estimated in a run: of a typical job and job type; `columns` are those of jobs.csv."""
    said = []
    if "estimated_run_s" in columns:
        names = ("estimated_run_s", "estimated_run_p10_s", "estimated_run_p90_s", "estimated_measurements")
        median, low, high, count = (columns[name] for name in names)
        known = np.flatnonzero(~np.isnan(median))
        if len(known):
            row = int(known[np.argsort((high / low)[known], kind="stable")[len(known) // 2]])
            middle, low_s, high_s = (float(each[row]) for each in (median, low, high))
            found = Estimated(str(columns["job_id"][row]), middle, low_s, high_s, int(count[row]))
            said.append(f"The run time of job {found.job_id} {found.describe()}.")
    pairs = setup.pair_estimates()
    if pairs:
        by_width = sorted(pairs, key=lambda name: pairs[name].high - pairs[name].low)
        said.append(f"{(name := by_width[len(pairs) // 2])} {pairs[name].describe()}.")
    return tuple(said)


def _run_time_s(job: Job, speeds: Speeds) -> float:
    """Return the run time of a job on its fastest type."""
    return job.total_steps / float(speeds.solo_throughput(job.job_type, job.scale_factor).max())


def _event(name: str, found: RunTimeEstimate) -> Estimated:
    return Estimated(name, found.median_s, found.low_s, found.high_s, found.measurements)
