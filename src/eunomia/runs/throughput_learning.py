"""Learns throughputs from the progress of gangs, and says which types are to be tried because they are unmeasured.

A gang is measured from one report of its steps to another, at least `measure_s` later, while it runs alone on the same
seats; what passed before the first report, such as loading a checkpoint, does not count. What is believed of its job
type changes by an event, `ThroughputsLearnt`, so records hold it and the policy is asked again.

A type on which gangs of a kind (job type and size) were never measured is tried where a trial is cheap for what is
left to gain: while it lasts at most the share `explore` of the time that the kind's jobs present would still take, one
after the other, on the type that is believed fastest. Until it is measured, the upper end of its 80 % interval is then
believed instead of the median. The policy decides whether a gang goes there. After `MOST_FAILED` starts there without a
measurement, of gangs that failed or made no progress for `measure_s`, the type is not tried any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from eunomia.backends.protocol import Backend
from eunomia.core.belief import LearntThroughput
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, GiveUp, Refuse, Start, Starts, Stop
from eunomia.model.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobSubmitted,
    JobUpdated,
    Moment,
    Progressed,
    ThroughputsLearnt,
)
from eunomia.model.job import Job
from eunomia.model.job_kind import JobKind
from eunomia.model.speeds import Speeds, spread_throughput
from eunomia.model.tolerance import RELATIVE
from eunomia.model.topology import Topology
from eunomia.records.learnt_rates import learnt_rows
from eunomia.setup.run_objects import RunConfig
from eunomia.throughputs.estimators.calibration import as_csv
from eunomia.throughputs.estimators.learnt_throughputs import MOST_FAILED, LearntRates, LearntThroughputs
from eunomia.throughputs.placed_throughputs import PlacedThroughputs

LISTED = 5  # in a note

Kind = tuple[str, int]  # job type, size of the gang


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningSettings:
    """When a measurement is made and believed, and when a type is tried.

    `trial_s` is how long a gang stays at least where it is tried; inf = to its end. With `spreads` gangs on several
    machines are slower as the prior says.
    """

    measure_s: float
    explore: float
    tolerance: float
    trial_s: float
    spreads: bool = False


@dataclass(slots=True)
class _Present:
    """A job that waits or runs. `steps` were reported last."""

    job: Job
    total: float
    steps: float = 0.0
    ran: bool = False


@dataclass(slots=True)
class _Running:
    """A gang alone on its seats, and its last report that a measurement can begin with; `at` nan = none yet."""

    kind: Kind
    type: int
    share: float  # of the speed on one machine that the prior says it has there
    started: float
    follows: bool  # an earlier start of the job, whose last report may still come
    at: float = math.nan
    steps: float = 0.0
    is_counted: bool = False  # among the starts without a measurement


@dataclass(slots=True)
class TrialAccount:
    """What trying types cost and gained, in accelerator-seconds.

    `held`: on types that were tried, until they were measured; `lost`: the part of it that the same steps would not
    have taken on the other type that was believed fastest; `saved`: what gangs that started there later would have
    needed more for the same steps on the type that the prior says is fastest.
    """

    tried: int = 0
    better: int = 0  # of these, types that were measured faster than any other was believed to be
    held: float = 0.0
    lost: float = 0.0
    saved: float = 0.0


@dataclass(slots=True)
class ThroughputLearner:
    """Takes events and decisions in their order; `take` returns what is learnt from them, as events.

    With `believed`, what follows a `|` in the name of a job type says where the job may run, and the part before it is
    learnt. Jobs that name no job type teach nothing.
    """

    learnt: LearntThroughputs
    topology: Topology
    settings: LearningSettings
    believed: Speeds | None = None  # where jobs may run by the names that the scheduler has; None = as `learnt` says
    account: TrialAccount = field(default_factory=TrialAccount)
    _present: dict[str, _Present] = field(default_factory=dict)
    _of_type: dict[str, dict[str, None]] = field(default_factory=dict)  # job type learnt → jobs present
    _names: dict[str, dict[str, None]] = field(default_factory=dict)  # job type learnt → names that the scheduler has
    _running: dict[str, _Running] = field(default_factory=dict)
    _believed: dict[Kind, LearntThroughput] = field(default_factory=dict)
    _tried: dict[tuple[Kind, int], float] = field(
        default_factory=dict
    )  # cell → rate of the other type believed fastest
    _measured_at: dict[tuple[Kind, int], float] = field(default_factory=dict)  # cells that were tried: when first
    _failed: dict[tuple[Kind, int], int] = field(default_factory=dict)  # cells that were tried: starts without a speed
    _news: dict[str, None] = field(default_factory=dict)  # job types of which something changed, in order

    def take(self, at: float, events: Iterable[Event]) -> list[Event]:
        """Take the events of a moment; return a `ThroughputsLearnt` if what is believed changes."""
        reports, known = list[Progressed](), list[ThroughputsLearnt]()
        for event in events:  # ends first: what a gang that failed reports is its last checkpoint
            match event:
                case JobSubmitted(job):
                    self._submit(job)
                case JobUpdated(name, _, total) if name in self._present and not math.isnan(total):
                    self._present[name].total = total
                case JobFinished(name) | JobCancelled(name):
                    self._forget(name, at)
                case JobFailed(name):
                    self._leave_seats(name, at, has_failed=True)
                case JobPaused(name):
                    self._leave_seats(name, at)
                case ThroughputsLearnt():
                    known.append(event)
                case Progressed():
                    reports.append(event)
        for event in reports:
            for name, steps in zip(event.job_ids, event.steps, strict=True):
                self._progress(name, float(steps), at)
        for before in known:  # last: what a record says has these ends and reports in it
            self.adopt(LearntThroughput.of(before))
        return self._moved()

    def order(self, at: float, decision: Decision) -> None:
        """Take a decision that is carried out."""
        match decision:
            case Start():
                self._start(decision, at)
            case Starts():
                for start in decision.each():
                    self._start(start, at)
            case Stop(names):
                for name in names:
                    self._leave_seats(name, at)
            case Refuse(name) | GiveUp(name):
                self._forget(name, at)

    def adopt(self, learnt: Iterable[tuple[Kind, LearntThroughput]]) -> None:
        """Take over what was learnt before, from a record or from what a scheduler believes."""
        for kind, found in learnt:
            self._believed[kind] = found
            if name := self._name(kind[0]):
                self._names.setdefault(name, {})[kind[0]] = None
                self.learnt.restore(name, kind[1], found.rates, found.measured_s)
                for type in np.flatnonzero(found.failed).tolist():
                    self._failed[(name, kind[1]), type] = int(found.failed[type])

    def rates(self, job_type: str, size: int) -> Floats:
        """Return the medians of a gang's rates on each type, (type,); `job_type` as the scheduler has it.

        Nothing is kept of gangs that no job has had so far.
        """
        name = self._name(job_type)
        if not name:
            return (self.believed or self.learnt.prior).solo_throughput(job_type, size)
        found = self.learnt.rates_if_asked(name, size)
        tried = np.zeros(len(found.median), dtype=np.bool_)
        return self._where_it_may_run((job_type, size), LearntThroughput(found.median, found.measured_s, tried)).rates

    def resume(self, job: Job, steps: float, start: Start | None, at: float) -> None:
        """Take over a job that is present, and the start with which it runs, if it does."""
        self._submit(job)
        self._present[job.job_id].steps = steps
        if start is not None:
            self._start(start, at)

    def _name(self, job_type: str) -> str:
        """Return the name under which a job type is learnt; empty for jobs that name none."""
        return job_type if self.believed is None else JobKind.of(job_type).job_type

    # ---- what happens ----------------------------------------------------------------------------------------

    def _submit(self, job: Job) -> None:
        self._present[job.job_id] = _Present(job, job.total_steps)
        if name := self._name(job.job_type):
            self._of_type.setdefault(name, {})[job.job_id] = None
            self._names.setdefault(name, {})[job.job_type] = None
            self._news[name] = None
            for size in job.shapes:
                self.learnt.rates(name, size)  # known from now on

    def _forget(self, name: str, at: float) -> None:
        self._leave_seats(name, at)
        present = self._present.pop(name, None)
        if present is not None and (job_type := self._name(present.job.job_type)):
            del self._of_type[job_type][name]
            self._news[job_type] = None

    def _start(self, start: Start, at: float) -> None:
        """Note a gang that is alone on its seats; of two that share them neither is measured."""
        ran = False
        for name in filter(None, (start.job_id, start.partner_id)):
            self._leave_seats(name, at)
            if name in self._present:
                ran = ran or self._present[name].ran
                self._present[name].ran = True
        present = self._present.get(start.job_id)
        name = "" if present is None else self._name(present.job.job_type)
        if name and start.partner_id is None:
            seats = np.array(start.seats)
            kind, type = (name, len(seats)), int(self.topology.type[seats[0]])
            self._running[start.job_id] = _Running(kind, type, self._share(kind, type, seats), at, ran)

    def _leave_seats(self, name: str, at: float, *, has_failed: bool = False) -> None:
        """Forget the gang of a job; count what its type has saved, if that was tried and measured before it started."""
        run = self._running.pop(name, None)
        if run is None:
            return
        if has_failed or at - run.started >= self.settings.measure_s * (1.0 - RELATIVE):
            self._count_failed(run)
        if self._measured_at.get((run.kind, run.type), math.inf) > run.started:
            return
        found = self.learnt.rates(*run.kind).median
        first = int(np.argmax(self.learnt.prior.solo_throughput(*run.kind)))
        if first != run.type:
            more = float(found[run.type]) / float(found[first]) - 1.0
            self.account.saved += (at - run.started) * run.kind[1] * max(more, 0.0)

    def _share(self, kind: Kind, type: int, seats: Ints) -> float:
        """Return which share of its speed on one machine a gang has on these seats, by the prior."""
        if not self.settings.spreads or len(np.unique(self.topology.node[seats])) == 1:
            return 1.0
        together = float(self.learnt.prior.solo_throughput(*kind)[type])
        apart = float(spread_throughput(self.learnt.prior, *kind)[type])
        return apart / together if apart > 0 and together > 0 else 1.0

    # ---- what is learnt --------------------------------------------------------------------------------------

    def _progress(self, name: str, steps: float, at: float) -> None:
        """Measure a gang since the report that its measurement began with, if that is long enough ago."""
        known = steps
        if (present := self._present.get(name)) is not None:
            known, present.steps = present.steps, steps
        run = self._running.get(name)
        if run is None:
            return
        if run.follows and steps > known and math.isnan(run.at):
            run.follows = False  # it may be what the start before saved at its end
            return
        seconds = at - run.at
        if math.isnan(run.at) or steps < run.steps:
            run.at, run.steps = at, steps
        elif seconds >= self.settings.measure_s * (1.0 - RELATIVE):
            rate = (steps - run.steps) / (seconds * run.share)
            run.at, run.steps = at, steps
            if rate <= 0:
                self._count_failed(run)
            else:
                self._failed.pop((run.kind, run.type), None)
            self._count_trial(run, rate, at)
            self.learnt.measure(*run.kind, run.type, rate, seconds)
            self._news[run.kind[0]] = None

    def _count_trial(self, run: _Running, rate: float, at: float) -> None:
        """Count what a trial has cost, which ends with the first measurement."""
        cell, account = (run.kind, run.type), self.account
        other = self._tried.get(cell)
        if other is not None and rate > 0 and cell not in self._measured_at:
            held = (at - run.started) * run.kind[1]
            self._measured_at[cell] = at
            account.tried, account.held = account.tried + 1, account.held + held
            account.better += rate > other
            account.lost += held * max(1.0 - rate / other, 0.0)

    def _count_failed(self, run: _Running) -> None:
        """Count a start on a type that is tried, if nothing was measured there before it."""
        cell = run.kind, run.type
        if cell not in self._tried or self.learnt.rates(*run.kind).measured_s[run.type] > 0:
            return
        if not run.is_counted:
            run.is_counted = True
            self._failed[cell] = min(self._failed.get(cell, 0) + 1, MOST_FAILED)
            self._news[run.kind[0]] = None

    def given_up(self) -> list[tuple[Kind, int]]:
        """Return the kinds and types, by row, that are not tried any more as nothing could be measured there."""
        return [cell for cell, starts in self._failed.items() if starts >= MOST_FAILED]

    def _moved(self) -> list[Event]:
        """Return what is believed anew of the job types that something was learnt of or whose jobs came or went."""
        moved = dict[Kind, LearntThroughput]()
        for job_type in self._news:
            for size in self.learnt.sizes(job_type):
                found = self._belief((job_type, size))
                for name in self._names[job_type]:
                    kind = name, size
                    new = self._where_it_may_run(kind, found)
                    if self._differs(new, self._before(kind)):
                        self._believed[kind] = moved[kind] = new
        self._news.clear()
        if not moved:
            return []
        names, sizes = (tuple(each) for each in zip(*moved, strict=True))
        rates, seconds, tried, failed = (
            np.array([getattr(one, column) for one in moved.values()])
            for column in ("rates", "measured_s", "tried", "failed")
        )
        return [ThroughputsLearnt(names, sizes, rates, seconds, tried, failed if failed.any() else None)]

    def _before(self, kind: Kind) -> LearntThroughput:
        found = self._believed.get(kind)
        if found is not None:
            return found
        prior = (self.believed or self.learnt.prior).solo_throughput(*kind)
        return LearntThroughput(prior, np.zeros(len(prior)), np.zeros(len(prior), dtype=np.bool_))

    def _where_it_may_run(self, kind: Kind, found: LearntThroughput) -> LearntThroughput:
        if self.believed is None:
            return found
        may = self.believed.solo_throughput(*kind) > 0
        return replace(found, rates=np.where(may, found.rates, 0.0), tried=found.tried & may)

    def _differs(self, new: LearntThroughput, before: LearntThroughput) -> bool:
        """Return whether a rate moved by more than the tolerance, or a type was measured or failed anew."""
        far = np.abs(new.rates - before.rates) > self.settings.tolerance * before.rates
        first = (new.measured_s > 0) & (before.measured_s == 0)
        return bool((far | first | (new.tried != before.tried) | (new.failed != before.failed)).any())

    def _belief(self, kind: Kind) -> LearntThroughput:
        """Return what is to be believed of a kind."""
        found = self.learnt.rates(*kind)
        tried = found.open & self._is_worth_trying(kind, found)
        failed = np.array([self._failed.get((kind, type), 0) for type in range(len(tried))])
        tried &= failed < MOST_FAILED
        for type in np.flatnonzero(tried).tolist():
            self._tried[kind, type] = float(np.delete(found.median, type).max())
        return LearntThroughput(np.where(tried, found.high, found.median), found.measured_s, tried, failed)

    def _is_worth_trying(self, kind: Kind, found: LearntRates) -> bool:
        """Return whether a trial is short beside the work that is left to the jobs of the kind."""
        fastest, share = float(found.median.max(initial=0.0)), self.settings.explore
        if not (share > 0 and np.count_nonzero(found.median) > 1 and found.open.any()):
            return False
        jobs = (self._present[name] for name in self._of_type.get(kind[0], ()))
        left = [max(one.total - one.steps, 0.0) / fastest for one in jobs if kind[1] in one.job.shapes]
        trial_s = max(self.settings.measure_s, min(self.settings.trial_s, max(left, default=0.0)))
        return share * math.fsum(left) >= trial_s


class ThroughputLearning:
    """A backend that adds what is learnt to each moment of another."""

    def __init__(self, world: Backend, learner: ThroughputLearner):
        self._world, self.learner, self._at = world, learner, 0.0

    def moments(self) -> Iterator[Moment]:
        """Yield the moments of the world with what is learnt in them; those of a record have it already."""
        for moment in self._world.moments():
            self._at = moment.at
            more = self.learner.take(moment.at, moment.events)
            is_recorded = any(isinstance(event, ThroughputsLearnt) for event in moment.events)
            yield moment if is_recorded or not more else Moment.of(moment.at, (*moment.events, *more))

    def carry_out(self, decision: Decision) -> None:
        """Forward the decision."""
        self.learner.order(self._at, decision)
        self._world.carry_out(decision)


def throughput_learner(setup: RunConfig, believed: Speeds | None = None) -> ThroughputLearner | None:
    """Return what learns throughputs in a run or a service; None where the scenario does not ask for that.

    `believed` says where jobs may run that are named with what they are limited to.
    """
    if setup.learnt is None:
        return None
    belief, mechanism = setup.scenario.belief, setup.mechanism
    settings = LearningSettings(
        measure_s=belief.measure_s,
        explore=belief.explore,
        tolerance=0.02 if belief.tolerance is None else belief.tolerance,
        trial_s=belief.measure_s if mechanism.recall else mechanism.lease_s,
        spreads=setup.backend.real_time or isinstance(setup.truth, PlacedThroughputs),
    )
    return ThroughputLearner(setup.learnt, setup.topology, settings, believed)


def learning_note(learner: ThroughputLearner, devices_s: float) -> str:
    """Return what was learnt, and what trying types cost and gained; `devices_s` are all accelerator-seconds."""
    learnt, account = learner.learnt, learner.account
    found = [learnt.rates(*kind) for kind in learnt.known()]
    runs = sum(int((each.median > 0).sum()) for each in found)
    measured = sum(int((each.measured_s > 0).sum()) for each in found)
    said = f"{measured:,} of {runs:,} throughputs were measured{_given_up_words(learner)}"
    if not account.tried:
        return f"{said}, none of them on a type that was tried."
    held, lost, saved = (each / 3600 for each in (account.held, account.lost, account.saved))
    share = account.held / devices_s if devices_s > 0 else 0.0
    return (
        f"{said}; {account.tried:,} of them on types that were tried, {account.better:,} of which were faster than any "
        f"other was believed to be. Until they were measured, trials held {held:,.1f} accelerator-hours ({share:.2%} "
        f"of all), {lost:,.1f} more than the same steps take on the best other type; since then they saved "
        f"{saved:,.1f} against the type stated as fastest."
    )


def _given_up_words(learner: ThroughputLearner) -> str:
    """Return which kinds are not tried any more on which types; empty for none."""
    cells, types = learner.given_up(), learner.topology.types
    if not cells:
        return ""
    named = [f"{job_type} on {size} {types[type]}" for (job_type, size), type in cells[:LISTED]]
    more = [f"{len(cells) - LISTED:,} more"] if len(cells) > LISTED else []
    return f"; not tried any more after {MOST_FAILED} starts without progress: {', '.join(named + more)}"


def learnt_table(setup: RunConfig) -> str:
    """Return what was learnt as a table for [throughputs] source; empty where nothing is learnt."""
    return "" if setup.learnt is None else as_csv(learnt_rows(setup.learnt, setup.stated_job_types))
