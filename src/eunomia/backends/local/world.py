"""Real processes on this machine, behind the same door as the simulator."""

from __future__ import annotations

import json
import logging
import math
import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from eunomia.backends.local.clock import RunClock
from eunomia.backends.local.environment import environment_of
from eunomia.backends.local.environment_filter import refuse_what_cannot_run
from eunomia.backends.local.gang import LocalGang, lease_end
from eunomia.backends.local.job_directory import JobFolder, lock
from eunomia.backends.local.recovery import became_of, ended_well
from eunomia.model.decisions import Ask, Decision, Refuse, Renew, Start, Starts, Stop, WakeAt
from eunomia.model.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobSubmitted,
    Measured,
    Moment,
    Progressed,
    Woken,
)
from eunomia.model.job import Job
from eunomia.model.topology import Topology

LONGEST_WAIT_S = 3600.0  # in one call to the system, which has a limit of its own
NO_SAVE_GRACE_S = 0.5  # for a gang whose work nobody wants any more
Settings = Callable[[str], Mapping[str, Any]]  # what a job is to be run with, asked at each start
_log = logging.getLogger(__name__)


class LocalWorld:
    """Starts and stops gangs as ordered and reports what happens to them. Close it, or use it with `with`.

    Time is seconds since the loop first asked for moments, or since the time that a run is taken up at; it is kept in
    the file `clock`, so that a run whose process is killed can be taken up near its last instant. A start waits,
    without holding up anything else, until those before it have left its seats. A gang whose lease lapsed is stopped
    with a checkpoint and goes on when renewed. Raises InvalidInput for jobs that cannot be run here, and while another
    run uses `workdir`, for which it waits `wait_s`.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        topology: Topology,
        *,
        workdir: Path,
        grace_s: float = 10.0,
        cwd: Path | None = None,
        settings: Settings | None = None,
        clock: Path | None = None,
        wait_s: float = 0.0,
    ) -> None:
        self._inherited = dict(os.environ)
        refuse_what_cannot_run(jobs, topology, grace_s, self._inherited)
        self._jobs = {job.job_id: job for job in jobs}
        self._coming = deque(sorted(jobs, key=lambda job: (job.submitted, job.sequence, job.job_id)))
        self._topology = topology
        self._workdir, self._cwd, self._grace_s = workdir.resolve(), (cwd or Path.cwd()).resolve(), grace_s
        self._settings = settings
        self._queue: list[LocalGang] = []  # started, but their seats are not yet empty or their lease has lapsed
        self._live: dict[tuple[str, int], LocalGang] = {}  # (job, epoch): has a supervisor
        self._finished: set[str] = set()
        self._wake = math.inf
        self._events: list[Event] = []  # not yet told
        self._steps: dict[str, float] = {}  # progress not yet told
        self._heard: dict[str, float] = {}  # progress, last report of each job
        self._at = 0.0  # time of the last moment
        self._clock = RunClock(clock)
        self._taken_up = False
        self._lock = lock(self._workdir, wait_s)
        self._selector = selectors.DefaultSelector()
        self._closed = False

    def __enter__(self) -> LocalWorld:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def moments(self) -> Iterator[Moment]:
        """Yield what happens as it happens, until no job can come, run or be woken for."""
        self._clock.start(self._at)
        if not self._taken_up:
            for job in self._coming:
                self._folder(job).exit.unlink(missing_ok=True)  # of an earlier run
        while not self._closed:
            self._start_waiting()
            if not self._events and not self._steps and not self._more_can_happen():
                self._give_up_lapsed()
                if not self._events:
                    return
            self._listen()
            if moment := self._next_moment():
                yield moment

    def take_up(
        self,
        at: float,
        *,
        submitted: Set[str],
        finished: Set[str],
        running: Sequence[Start],
        steps: Mapping[str, float],
        wake: float,
    ) -> Moment | None:
        """Go on at `at` with a run whose process ended; return what became of its gangs since, if any was running.

        `running` are the starts that had not ended, one for each job, and `steps` the progress that is known.
        """
        self._taken_up, self._at, self._wake = True, at, wake
        self._coming = deque(job for job in self._coming if job.job_id not in submitted)
        self._heard = dict(steps)
        for job in self._coming:
            self._folder(job).exit.unlink(missing_ok=True)  # of an earlier run
        ended = {job_id for job_id in submitted if ended_well(self._folder(self._jobs[job_id]))}
        self._finished = set(finished) | ended
        gangs = [(start, self._jobs[start.job_id], self._folder(self._jobs[start.job_id])) for start in running]
        events = became_of(gangs, steps, self._topology, with_losses=self._settings is not None)
        for event in events:
            if isinstance(event, Progressed):
                self._heard.update(zip(event.job_ids, map(float, event.steps), strict=True))
        return Moment.of(at, events) if events else None

    def carry_out(self, decision: Decision) -> None:
        """Do as decided. An order whose epoch is past, or whose job is gone, is ignored."""
        match decision:
            case Start():
                self._seat(decision)
            case Starts():
                for order in decision.each():
                    self._seat(order)
            case Renew(job_ids, until):
                for job_id in job_ids:
                    self._renew(job_id, until)
            case Stop(job_ids, epochs, save):
                for job_id, epoch in zip(job_ids, epochs, strict=True):
                    self._stop(job_id, epoch, save)
            case WakeAt(at):
                self._wake = at
            case Refuse(job_id, why):
                _log.info("job %r refused: %s", job_id, why)
            case Ask():
                raise AssertionError("a question to the policy was sent to a world")

    # ---- what users wish -------------------------------------------------------------------------------------

    def watch(self, job_id: str, steps: float) -> None:
        """A job says by itself how far it is."""

    def accept(self, wish: Event) -> bool:
        """Let a wish come true: the core itself orders the end, or the rest, of a job. False when it has ended."""
        return not (isinstance(wish, JobCancelled | JobPaused) and wish.job_id in self._finished)

    def loss(self, job: Job, steps: float) -> float:
        """Return the loss that a job reported last; nan = none."""
        return self._folder(job).read_loss()

    def close(self) -> None:
        """Stop every gang: TERM, checkpoint, KILL after the grace.

        Interrupted while it waits, it gives them no more time; interrupted again, it leaves that to their supervisors.
        """
        if self._closed:
            return
        self._closed = True
        self._queue.clear()
        self._clock.keep(at_once=True)
        short_s = min(self._grace_s, NO_SAVE_GRACE_S)
        try:
            try:
                self._stop_all(self._grace_s)
            except KeyboardInterrupt:
                self._stop_all(short_s)
                raise
            finally:
                for gang in self._launched():
                    gang.let_go()
        finally:
            self._live.clear()
            self._selector.close()
            os.close(self._lock)

    def _stop_all(self, grace_s: float) -> None:
        """Ask every gang for its end and wait for it; kill what has not ended long after the grace."""
        for gang in self._launched():
            gang.stop(grace_s)
        self._await_ends(time.monotonic() + grace_s + 2.0)
        for gang in self._launched():
            gang.destroy()
            del self._live[gang.job.job_id, gang.epoch]

    def _launched(self) -> list[LocalGang]:
        return [gang for gang in self._live.values() if gang.process is not None]

    def _folder(self, job: Job) -> JobFolder:
        return JobFolder.of(job, self._workdir, self._cwd)

    def _now(self) -> float:
        return self._clock.now()

    def _more_can_happen(self) -> bool:
        return bool(self._live or self._coming) or self._wake < math.inf

    def _give_up_lapsed(self) -> None:
        """Only gangs with a lapsed lease are left, and nobody will ever renew them: say so."""
        for gang in self._queue:
            self._events.append(JobFailed(gang.job.job_id, gang.epoch, "its lease ended and was not renewed"))
        self._queue.clear()

    def _listen(self) -> None:
        """Wait until something happens, and hear what supervisors say."""
        self._clock.keep()
        longest_s = self._clock.shortened(LONGEST_WAIT_S)
        wait_s = 0.0 if self._events or self._steps else min(max(self._due() - self._now(), 0.0), longest_s)
        for key, _ in self._selector.select(wait_s):
            self._hear(key.data)

    def _due(self) -> float:
        """Return when the next job comes or the core is woken."""
        return min(self._coming[0].submitted if self._coming else math.inf, self._wake)

    def _next_moment(self) -> Moment | None:
        """Return the earliest moment not yet told. What was due is told at the time it was due, so rounds are exact."""
        due, now = self._due(), self._now()
        if due <= now:
            self._at = max(self._at, due)
            return Moment.of(self._at, self._take_due())
        self._at = max(self._at, now)
        if events := self._take_events():
            return Moment.of(self._at, events)
        return None

    def _take_due(self) -> list[Event]:
        events: list[Event] = []
        while self._coming and self._coming[0].submitted <= self._at:
            events.append(JobSubmitted(self._coming.popleft()))
        if self._wake <= self._at:
            self._wake = math.inf
            events.append(Woken())
        return events

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        if self._steps:
            job_ids = tuple(sorted(self._steps))
            events.append(Progressed(job_ids, tuple(self._steps[job_id] for job_id in job_ids)))
            self._steps = {}
        return events

    def _hear(self, gang: LocalGang) -> None:
        over = not gang.has_news()
        step = gang.folder.read_progress(gang.job.total_steps)
        if step is not None and self._heard.get(gang.job.job_id) != step:
            self._heard[gang.job.job_id] = self._steps[gang.job.job_id] = step
            if self._settings is not None and not math.isnan(loss := gang.folder.read_loss()):
                self._events.append(Measured(gang.job.job_id, step, loss))
        if over:
            self._end(gang)

    def _end(self, gang: LocalGang) -> None:
        """A supervisor has ended, and its gang with it: report what is true of the job."""
        assert gang.process is not None
        assert gang.process.stdout is not None
        self._selector.unregister(gang.process.stdout)
        ending = gang.bury()
        del self._live[gang.job.job_id, gang.epoch]
        if ending.finished:
            self._finished.add(gang.job.job_id)
            self._events.append(JobFinished(gang.job.job_id, gang.epoch))
        elif gang.stopping and ending.was_stopped:
            _log.info("job %r stopped, exit code %d", gang.job.job_id, ending.code)
        elif not gang.stopping and ending.lapsed(self._lease_end(gang)):
            _log.warning("job %r: its lease ended at %.3f s unrenewed; stopped", gang.job.job_id, gang.until)
            self._queue.append(gang)
        else:
            reason = ending.reason(gang.folder.last_words())
            self._events.append(JobFailed(gang.job.job_id, gang.epoch, reason))

    def _seat(self, start: Start) -> None:
        """Queue the one or two gangs of a start; they are launched when their seats are empty."""
        pairs = [(start.job_id, start.epoch)]
        if start.partner_id is not None:
            pairs.append((start.partner_id, start.partner_epoch))
        for job_id, epoch in pairs:
            job = self._jobs[job_id]
            self._queue.append(
                LocalGang(
                    job=job,
                    epoch=epoch,
                    seats=frozenset(start.seats),
                    lease_id=pairs[0],
                    until=start.until,
                    folder=self._folder(job),
                    environment=environment_of(job, start, self._topology, self._inherited) | self._wanted(job_id),
                )
            )

    def _wanted(self, job_id: str) -> dict[str, str]:
        """Return the variable that tells a trial what it is to be run with."""
        return {} if self._settings is None else {"EUNOMIA_SETTINGS": json.dumps(self._settings(job_id))}

    def _start_waiting(self) -> None:
        """Launch what has its seats to itself now."""
        for gang in list(self._queue):
            if gang.job.job_id in self._finished:  # it ended well while it was being stopped
                self._queue.remove(gang)
                self._events.append(JobFinished(gang.job.job_id, gang.epoch))
            elif gang.until > self._now() and not any(gang.must_wait_for(other) for other in self._live.values()):
                self._queue.remove(gang)
                self._launch(gang)

    def _launch(self, gang: LocalGang) -> None:
        key = gang.job.job_id, gang.epoch
        self._live[key] = gang  # before there is a process, so that none is forgotten when interrupted
        try:
            voice = gang.launch(self._lease_end(gang), self._grace_s, self._lock, self._cwd)
        except OSError as error:
            del self._live[key]
            self._events.append(JobFailed(*key, f"its supervisor cannot be started: {error}"))
        else:
            self._selector.register(voice, selectors.EVENT_READ, gang)

    def _renew(self, job_id: str, until: float) -> None:
        for gang in self._queue:
            if gang.job.job_id == job_id:
                gang.until = until
        for gang in self._live.values():
            if gang.job.job_id == job_id and not gang.stopping:
                gang.until = until
                gang.folder.write_lease(self._lease_end(gang))

    def _stop(self, job_id: str, epoch: int, save: bool) -> None:
        self._queue = [gang for gang in self._queue if (gang.job.job_id, gang.epoch) != (job_id, epoch)]
        if gang := self._live.get((job_id, epoch)):
            gang.stop(self._grace_s if save else min(self._grace_s, NO_SAVE_GRACE_S))

    def _lease_end(self, gang: LocalGang) -> float:
        return lease_end(self._clock.origin, gang.until, self._grace_s)

    def _await_ends(self, give_up: float) -> None:
        while self._live and time.monotonic() < give_up:
            for key, _ in self._selector.select(max(give_up - time.monotonic(), 0.0)):
                self._hear(key.data)
