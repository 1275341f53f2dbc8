"""A world in virtual time in which everything can go wrong: places, neighbours, fates, outages, word that is late.

It goes from event to event and from gang to gang, and keeps account of what held seats were good for.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.backends.simulated.fault_model import FaultModel
from eunomia.backends.simulated.interference_state import Interference
from eunomia.backends.simulated.loss_accounting import LeaseSpan, LossAccount
from eunomia.backends.simulated.outages import Fault, Outages
from eunomia.backends.simulated.simulated_gang import Gang
from eunomia.backends.simulated.stall_detection import StallDetector, sitting
from eunomia.failures.retrying import BY_MACHINE
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Ask, Decision, Refuse, Renew, Start, Starts, Stop, WakeAt
from eunomia.model.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Measured,
    Moment,
    NodeJoined,
    NodeLost,
    Progressed,
    Woken,
)
from eunomia.model.job import Job
from eunomia.model.losses import Losses
from eunomia.model.overheads import Overheads
from eunomia.model.topology import Topology
from eunomia.throughputs.interference import Neighbours
from eunomia.throughputs.situated import Situated

ENDED = -1  # in the place of an epoch: no order concerns this job any more


@dataclass(frozen=True, slots=True)
class _End:
    """A gang's work ends by itself, in success or not; nobody has heard of it yet."""

    gang: Gang
    epoch: int


@dataclass(frozen=True, slots=True)
class _Word:
    """Word of a gang arrives. It speaks of one run, and is void when that is over."""

    gang: Gang
    epoch: int


@dataclass(frozen=True, slots=True)
class _Mark:
    """A gang has done as many steps as its user wanted to hear of."""

    gang: Gang
    epoch: int


@dataclass(frozen=True, slots=True)
class _Repaired:
    """What a gang failed for is mended on these machines."""

    nodes: tuple[int, ...]


_Coming = _End | _Word | _Mark | _Repaired | Fault | Event


class DetailedSimulation:
    """Virtual time, the truth about every gang, seeded chance; every kind of chance draws from a stream of its own."""

    def __init__(
        self,
        jobs: Sequence[Job],
        topology: Topology,
        speeds: Situated,
        *,
        neighbours: Neighbours | None = None,
        overheads: Overheads | None = None,
        faults: FaultModel | None = None,
        checkpoint_every_s: float = 0.0,
        replay_status: bool = False,
        seed: int = 0,
    ):
        self._jobs = sorted(jobs, key=lambda job: (job.submitted, job.sequence, job.job_id))
        self._topology, self._speeds = topology, speeds
        self._overheads, self._faults = overheads or Overheads(), faults or FaultModel()
        self._checkpoint_every_s, self._replay_status = checkpoint_every_s, replay_status
        shuffles, cancels, failures, outages, fates, words = np.random.SeedSequence(seed).spawn(6)
        self._shuffles, self._failures, self._words = map(np.random.default_rng, (shuffles, failures, words))
        self._fates = self._faults.sample_outcomes(self._jobs, np.random.default_rng(fates))
        shares = self._fates.share.tolist()
        self._all = [Gang(row, job, shares[row]) for row, job in enumerate(self._jobs)]
        self._gangs = {gang.job.job_id: gang for gang in self._all}
        self._around = Interference(topology, speeds, neighbours)
        self._account = LossAccount([0.0] * len(self._jobs))
        self._heap: list[tuple[float, int, _Coming]] = []
        self._pushed = 0
        self._wake = math.inf
        self._at = 0.0
        self._left = len(self._jobs)  # jobs that have not ended
        self._sitting, self._starts = 0, 0  # gangs that sit now; that were started
        self._stalls = StallDetector()
        for when, event in self._faults.cancellations(self._jobs, np.random.default_rng(cancels)):
            self._push(when, event)
        self._outages = Outages(topology, self._faults.node, self._faults.rack, outages)
        for when, fault in self._outages.first():
            self._push(when, fault)

    def losses(self, until: float) -> Losses:
        """Return what held seats were good for up to the end of the run, which is over."""
        for gang in self._all:
            gang.advance(until, self._account)
        return self._account.losses()

    # ---- what happens ----------------------------------------------------------------------------------------

    def moments(self) -> Iterator[Moment]:
        """Yield moments until every job has ended or nothing more can happen to those that wait."""
        arrived = 0
        while self._left:
            arrival = self._jobs[arrived].submitted if arrived < len(self._jobs) else math.inf
            at = min(arrival, self._heap[0][0] if self._heap else math.inf, self._wake)
            still = math.isinf(arrival) and self._is_still()
            away = self._outages.away if still else 0
            if math.isinf(at) or self._stalls.is_final(self._at, still, away, self._wake < math.inf):
                return
            if math.isinf(arrival) and self._stalls.is_stalled(self._starts, self._left, self._look):
                return
            self._at = at
            events: list[Event] = []
            while arrived < len(self._jobs) and self._jobs[arrived].submitted == at:
                events.append(JobSubmitted(self._jobs[arrived]))
                arrived += 1
            while self._heap and self._heap[0][0] == at:
                events += self._happen(heapq.heappop(self._heap)[2])
            if self._wake <= at:
                self._wake = math.inf
                events.append(Woken())
            if len(events) > 1:
                events = [events[i] for i in self._shuffles.permutation(len(events))]
            if events:
                yield Moment.of(at, events)

    @property
    def given_up(self) -> str:
        """Why the run was ended before its jobs were done, if it was."""
        return self._stalls.reason

    def _look(self) -> tuple[Floats, Ints]:
        rows = np.array([(gang.safe, gang.rate, gang.epoch) for gang in self._all], dtype=float)
        return rows[:, 0], sitting(rows[:, 1], rows[:, 2].astype(np.int64))

    def _is_still(self) -> bool:
        """Say whether nobody sits, and all that is still true of what is to come are machines that go or come back."""
        passing = Fault | _Repaired | _End | _Mark
        return not self._sitting and all(isinstance(coming, passing) for _, _, coming in self._heap)

    def _happen(self, coming: _Coming) -> list[Event]:
        """Let what was foreseen happen, if it is still true; return what is heard of it now."""
        match coming:
            case _End(gang, epoch):
                if gang.epoch != epoch or gang.rate == 0 or gang.ends != self._at or gang.pending_report is not None:
                    return []
                gang.advance(self._at, self._account)
                gang.pending_report = self._outcome(gang)
                return self._tell(gang) if isinstance(gang.pending_report, JobCancelled) else self._send(gang)
            case _Word(gang, epoch):
                return self._tell(gang) if gang.epoch == epoch else []
            case _Mark(gang, epoch):
                if gang.epoch != epoch or gang.rate == 0 or gang.watched_at != self._at:
                    return []
                steps, gang.watched, gang.watched_at = gang.watched, math.inf, math.inf
                return [Measured(gang.job.job_id, steps, math.nan)]
            case JobCancelled():
                return [coming] if self.accept(coming) else []
            case _Repaired(mended):
                return [NodeJoined(node) for node in self._outages.bring_up(mended)]
            case Fault():
                nodes, when, following = self._outages.happen(self._at, coming)
                self._push(when, following)
                return [NodeLost(node) if coming.down else NodeJoined(node) for node in nodes]
        return [coming]

    # ---- what users wish -------------------------------------------------------------------------------------

    def watch(self, job_id: str, steps: float) -> None:
        """Have it said when the job has done so many steps."""
        gang = self._gangs[job_id]
        gang.watched = steps
        if gang.rate > 0:
            gang.advance(self._at, self._account)
            self._foresee_mark(gang)

    def accept(self, wish: Event) -> bool:
        """Let a user's wish come true; False when the job has ended."""
        if not isinstance(wish, JobCancelled | JobPaused | JobResumed):
            return True
        gang = self._gangs[wish.job_id]
        if gang.epoch == ENDED:
            return False
        if isinstance(wish, JobCancelled):
            self._end(gang, "cancelled_jobs")
        return True

    def _foresee_mark(self, gang: Gang) -> None:
        steps = max(gang.watched - gang.done, 0.0)
        gang.watched_at = gang.since + steps / gang.rate if steps <= min(gang.limit, gang.left) else math.inf
        if gang.watched_at < math.inf:
            self._push(gang.watched_at, _Mark(gang, gang.epoch))

    # ---- what truly happens ----------------------------------------------------------------------------------

    def _outcome(self, gang: Gang) -> JobFinished | JobFailed | JobCancelled:
        """Return how a gang's work ended: as it was drawn, as its trace says, or well."""
        name, said = gang.job.job_id, gang.job.status if self._replay_status else ""
        if gang.ends == gang.fails_at:
            by_chance = gang.fails_at == gang.chance_at
            return JobFailed(name, gang.epoch, "chance" if by_chance else self._fates.name(gang.row))
        if said == "failed":
            return JobFailed(name, gang.epoch, "as in the trace")
        return JobCancelled(name) if gang.killed or said == "cancelled" else JobFinished(name, gang.epoch)

    def _send(self, gang: Gang) -> list[Event]:
        """Word of a gang sets out; return it if it arrives at once."""
        arrives_at = self._faults.report_latency.arrives_at(self._at, self._words)
        if arrives_at <= self._at:
            return self._tell(gang)
        self._push(arrives_at, _Word(gang, gang.epoch))
        return []

    def _tell(self, gang: Gang) -> list[Event]:
        """Word of a gang's end, or of its checkpoint, is heard; what it stands for is over."""
        event, name = gang.pending_report, gang.job.job_id
        match event:
            case JobFinished():
                self._end(gang)
            case JobCancelled():
                self._end(gang, "cancelled_jobs")
            case JobFailed(reason=reason):
                self._halt(gang, save=False)
                gang.failures += 1
                lost = self._take_down(gang) if reason in BY_MACHINE else []
                if gang.failures <= gang.job.retries:
                    return [event, Progressed((name,), (gang.safe,)), *lost]
                self._forget(gang, "failed_jobs")
                return [event, *lost]
            case None:
                return [] if gang.rate else [Progressed((name,), (gang.safe,))]
        return [event]

    def _take_down(self, gang: Gang) -> list[NodeLost]:
        """Take the machines of a gang out of service, for as long as it is said; nobody knows which of them it was."""
        seconds, nodes = self._faults.blacklist_s, np.unique(self._topology.node[list(gang.seats)]).tolist()
        if not seconds:
            return []
        self._push(self._at + seconds, _Repaired(tuple(nodes)))
        return [NodeLost(node) for node in self._outages.take_down(nodes)]

    # ---- what is ordered -------------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> None:
        """Do as decided, at once."""
        match decision:
            case Start():
                self._start(decision)
            case Starts():
                for order in decision.each():
                    self._start(order)
            case Stop():
                self._stop(decision)
            case WakeAt(at):
                self._wake = at
            case Refuse(name):
                gang = self._gangs[name]
                self._end(gang, "failed_jobs" if gang.failures else "cancelled_jobs")
            case Renew():
                self._renew(decision)
            case Ask():
                pass

    def _start(self, order: Start) -> None:
        gangs = [self._gangs[order.job_id]]
        if order.partner_id is not None:
            gangs.append(self._gangs[order.partner_id])
        for gang, epoch in zip(gangs, (order.epoch, order.partner_epoch), strict=False):
            gang.epoch, gang.seats, gang.type = epoch, order.seats, int(self._topology.type[order.seats[0]])
            gang.partner = gangs[1 - gangs.index(gang)] if len(gangs) == 2 else None
            gang.limit = math.inf if order.max_steps is None else order.max_steps
            self._open(gang)
        kinds = [(gang.job.job_type, len(order.seats)) for gang in gangs]
        changed = self._around.arrive(tuple(gang.row for gang in gangs), kinds, order.seats)
        for gang in gangs:
            self._settle(gang)
            self._reckon(gang)
        self._sitting += len(gangs)
        self._starts += len(gangs)
        self._refresh(changed)

    def _open(self, gang: Gang) -> None:
        """Let a gang's time on its seats begin, with what a start costs. One that ended unheard only has to say so."""
        cost = self._overheads.of(first=not gang.ran, size=len(gang.seats), saved=gang.saved)
        if gang.ran and gang.left == 0:
            cost = 0.0
        gang.start_cause = "restore" if gang.ran else "start"
        gang.mark, gang.since, gang.ran, gang.pending_report = self._at, self._at + cost, True, None
        gang.chance_at = gang.since + float(self._faults.times_to_failure(1, self._failures)[0])

    def _renew(self, order: Renew) -> None:
        """Seats that are kept change nothing here, unless steps were or are limited."""
        limits = [math.inf] * len(order.job_ids) if order.max_steps is None else order.max_steps.tolist()
        for name, limit in zip(order.job_ids, limits, strict=True):
            gang = self._gangs[name]
            if gang.rate > 0 and gang.pending_report is None and (limit < math.inf or gang.limit < math.inf):
                gang.advance(self._at, self._account)
                gang.limit = limit
                self._reckon(gang)

    def _stop(self, order: Stop) -> None:
        saved: list[Gang] = []
        for name, epoch in zip(order.job_ids, order.epochs, strict=True):
            gang = self._gangs[name]
            if gang.epoch == epoch and gang.rate > 0:
                self._halt(gang, save=order.save)
                saved.append(gang)
        if saved and self._faults.report_latency.perfect:
            names = tuple(gang.job.job_id for gang in saved)
            self._push(self._at, Progressed(names, tuple(gang.safe for gang in saved)))
        elif saved:
            for gang in saved:
                gang.pending_report = None
                self._push(self._faults.report_latency.arrives_at(self._at, self._words), _Word(gang, gang.epoch))

    # ---- what gangs truly do ---------------------------------------------------------------------------------

    def _settle(self, gang: Gang) -> None:
        """Work out how fast a gang is on its seats, its neighbours left aside."""
        job, size, mate = gang.job, len(gang.seats), gang.partner
        gang.alone = gang.beside = float(self._speeds.alone(job.job_type, size)[gang.type])
        if mate is not None:
            gang.beside = float(self._speeds.beside(job.job_type, mate.job.job_type, size)[gang.type])
        if gang.beside <= 0:
            type = self._topology.types[gang.type]
            raise RuntimeError(f"job {job.job_id!r} was started on {type}, where it cannot run")
        place = self._around.by_place((job.job_type, size), gang.type, gang.seats)
        gang.lease = LeaseSpan(size, size if mate is None else size / 2, gang.beside / gang.alone, place)

    def _reckon(self, gang: Gang) -> None:
        """Set a gang's rate as its neighbours are now, and foresee its end."""
        lease = gang.lease
        lease.near = self._around.by_neighbours(gang.group)
        gang.rate = gang.beside / (lease.place * lease.near)
        if math.isnan(gang.trial_s):
            gang.trial_s = self._fates.time_to_failure(gang.row, gang.trial, self._left_s(gang))
        ends = gang.foresee()
        if ends < math.inf:
            self._push(ends, _End(gang, gang.epoch))
        if gang.watched < math.inf:
            self._foresee_mark(gang)

    def _left_s(self, gang: Gang) -> float:
        """Return the seconds that a gang has left to run; in another shape those that it would have as asked."""
        job, rate = gang.job, gang.rate
        if len(gang.seats) != job.scale_factor:
            rate = float(self._speeds.alone(job.job_type, job.scale_factor)[gang.type]) or rate
        return gang.left / rate

    def _refresh(self, rows: list[int]) -> None:
        """Somebody came to these gangs' machines, or went."""
        for row in rows:
            gang = self._all[row]
            gang.advance(self._at, self._account)
            if gang.pending_report is None:
                self._reckon(gang)

    def _halt(self, gang: Gang, *, save: bool) -> None:
        """Take a gang off its seats; its partner goes on alone."""
        if gang.rate == 0:
            return
        gang.advance(self._at, self._account)
        failed, every = isinstance(gang.pending_report, JobFailed), self._checkpoint_every_s
        gang.saved = save and not failed
        if gang.saved or every == 0 or isinstance(gang.pending_report, JobFinished):
            gang.safe = gang.done
        else:
            step = every * gang.rate
            gang.fall_back(max(gang.safe, math.floor(gang.done / step) * step), self._account)
        if failed:
            gang.trial, gang.trial_s = gang.trial + 1, math.nan
        gang.rate = 0.0
        self._sitting -= 1
        mate, gang.partner = gang.partner, None
        changed = self._around.leave(gang.row)
        if mate is not None:
            mate.advance(self._at, self._account)
            mate.partner = None
            self._settle(mate)
            if mate.row not in changed and mate.pending_report is None:
                self._reckon(mate)
        self._refresh(changed)

    def _end(self, gang: Gang, lost: str = "") -> None:
        self._halt(gang, save=True)
        self._forget(gang, lost)

    def _forget(self, gang: Gang, lost: str) -> None:
        """The job has ended; with `lost`, all its work was for nothing."""
        gang.epoch = ENDED
        self._left -= 1
        if lost:
            self._account.give_up(gang.row, lost)

    def _push(self, when: float, coming: _Coming) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (when, self._pushed, coming))
