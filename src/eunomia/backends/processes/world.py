"""A backend that runs jobs as processes on this machine."""

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

from eunomia.backends.inputs import BackendInputs
from eunomia.backends.processes.environment import environment_of
from eunomia.backends.processes.environment_filter import check_runnable
from eunomia.backends.processes.folder import JobFolder
from eunomia.backends.processes.gang import LocalGang, lease_end
from eunomia.backends.processes.real_world import RealWorld
from eunomia.backends.processes.recovery import has_finished, recover_events
from eunomia.model.decisions import Start
from eunomia.model.events import (
    Event,
    JobFailed,
    JobFinished,
    Measured,
    Moment,
    Progressed,
)
from eunomia.model.job import Job
from eunomia.model.topology import Topology

MAX_WAIT_S = 3600.0  # in one system call, which has a limit
NO_SAVE_GRACE_S = 0.5  # for a gang that need not save
Settings = Callable[[str], Mapping[str, Any]]  # job id → settings, called at each start
_log = logging.getLogger(__name__)


class LocalWorld(RealWorld):
    """Starts and stops gangs as decided and reports their events. Close it, or use it with `with`.

    Time is in seconds since the first call of `moments`, or continues from the time given to `resume`; it is saved in
    the file `clock`, for the case that the process is killed. A start waits, without delaying anything else, until
    earlier gangs have left its seats. A gang whose lease lapsed is stopped with a checkpoint and resumes when renewed.
    Raises InvalidInput for jobs that cannot run here, and if another run uses `workdir` for more than `wait_s`.
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
        check_runnable(jobs, topology, grace_s, self._inherited)
        super().__init__(jobs, workdir, cwd or Path.cwd(), clock=clock, wait_s=wait_s)
        self._topology, self._grace_s, self._settings = topology, grace_s, settings
        self._queue: list[LocalGang] = []  # decided to start, but their seats are not free or their lease has lapsed
        self._live: dict[tuple[str, int], LocalGang] = {}  # with a supervisor, by (job, epoch)
        self._steps: dict[str, float] = {}  # progress not yet reported
        self._last_steps: dict[str, float] = {}  # last progress of each job
        self._selector = selectors.DefaultSelector()

    @classmethod
    def check(cls, inputs: BackendInputs) -> None:
        """Raise InvalidInput for jobs that cannot run here."""
        check_runnable(inputs.jobs, inputs.topology, inputs.grace_s, os.environ)

    @classmethod
    def build(cls, inputs: BackendInputs) -> LocalWorld:
        """Return the backend of a run."""
        return cls(
            inputs.jobs,
            inputs.topology,
            workdir=inputs.workdir,
            grace_s=inputs.grace_s,
            cwd=inputs.folder,
            settings=inputs.settings,
            clock=inputs.clock,
            wait_s=inputs.wait_s,
        )

    def moments(self) -> Iterator[Moment]:
        """Yield events as they happen, until no job can arrive or run and no timer is set."""
        self._clock.start(self._at)
        if not self._is_resumed:
            for job in self._coming:
                self._folder(job).exit.unlink(missing_ok=True)  # of an earlier run
        while not self._closed:
            self._start_queued()
            if not self._events and not self._steps and not self._more_can_happen():
                self._fail_lapsed()
                if not self._events:
                    return
            self._wait()
            if moment := self._next_moment():
                yield moment

    def resume(
        self,
        at: float,
        *,
        submitted: Set[str],
        finished: Set[str],
        running: Sequence[Start],
        steps: Mapping[str, float],
        wake: float,
    ) -> Moment | None:
        """Continue at time `at` a run whose process ended; return the moment with the ends of its gangs, if any.

        `running` are the starts that had not ended, one for each job, and `steps` the last known progress.
        """
        self._is_resumed, self._at, self._wake = True, at, wake
        self._coming = deque(job for job in self._coming if job.job_id not in submitted)
        self._last_steps = dict(steps)
        for job in self._coming:
            self._folder(job).exit.unlink(missing_ok=True)  # of an earlier run
        ended = {job_id for job_id in submitted if has_finished(self._folder(self._jobs[job_id]))}
        self._finished = set(finished) | ended
        gangs = [(start, self._jobs[start.job_id], self._folder(self._jobs[start.job_id])) for start in running]
        events = recover_events(gangs, steps, self._topology, with_losses=self._settings is not None)
        for event in events:
            if isinstance(event, Progressed):
                self._last_steps.update(zip(event.job_ids, map(float, event.steps), strict=True))
        return Moment.of(at, events) if events else None

    def loss(self, job: Job, steps: float) -> float:
        """Return the last loss that a job reported; nan if none."""
        return self._folder(job).read_loss()

    def log(self, job_id: str) -> Path:
        """Return the file with the output of a job."""
        return self._folder(self._jobs[job_id]).log

    def close(self) -> None:
        """Stop every gang: TERM, checkpoint, KILL after the grace.

        A first interrupt shortens the grace; after a second one, supervisors stop their gangs alone.
        """
        if self._closed:
            return
        self._closed = True
        self._queue.clear()
        self._clock.save(at_once=True)
        short_s = min(self._grace_s, NO_SAVE_GRACE_S)
        try:
            try:
                self._stop_all(self._grace_s)
            except KeyboardInterrupt:
                self._stop_all(short_s)
                raise
            finally:
                for gang in self._launched():
                    gang.disconnect()
        finally:
            self._live.clear()
            self._selector.close()
            os.close(self._lock)

    def _stop_all(self, grace_s: float) -> None:
        """Stop every gang and wait; kill gangs that have not ended 2 s after the grace."""
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

    def _more_can_happen(self) -> bool:
        return bool(self._live or self._coming) or self._wake < math.inf

    def _fail_lapsed(self) -> None:
        """Fail the remaining gangs, whose leases lapsed and will not be renewed."""
        for gang in self._queue:
            self._events.append(JobFailed(gang.job.job_id, gang.epoch, "its lease ended and was not renewed"))
        self._queue.clear()

    def _wait(self) -> None:
        """Wait for the next event, and read the output of supervisors."""
        self._clock.save()
        longest_s = self._clock.limit_wait(MAX_WAIT_S)
        wait_s = 0.0 if self._events or self._steps else min(max(self._due() - self._clock.now(), 0.0), longest_s)
        for key, _ in self._selector.select(wait_s):
            self._read(key.data)

    def _take_events(self) -> list[Event]:
        events = super()._take_events()
        if self._steps:
            job_ids = tuple(sorted(self._steps))
            events.append(Progressed(job_ids, tuple(self._steps[job_id] for job_id in job_ids)))
            self._steps = {}
        return events

    def _read(self, gang: LocalGang) -> None:
        """Read the output, progress and loss of a gang."""
        has_ended = not gang.read_output()
        step = gang.folder.read_progress(gang.job.total_steps)
        if step is not None and self._last_steps.get(gang.job.job_id) != step:
            self._last_steps[gang.job.job_id] = self._steps[gang.job.job_id] = step
            if self._settings is not None and not math.isnan(loss := gang.folder.read_loss()):
                self._events.append(Measured(gang.job.job_id, step, loss))
        if has_ended:
            self._end(gang)

    def _end(self, gang: LocalGang) -> None:
        """Report how a gang ended, after its supervisor has."""
        assert gang.process is not None
        assert gang.process.stdout is not None
        self._selector.unregister(gang.process.stdout)
        ending = gang.reap()
        del self._live[gang.job.job_id, gang.epoch]
        if ending.finished:
            self._finished.add(gang.job.job_id)
            self._events.append(JobFinished(gang.job.job_id, gang.epoch))
        elif gang.stopping and ending.was_stopped:
            _log.info("job %r stopped, exit code %d", gang.job.job_id, ending.code)
        elif not gang.stopping and ending.has_lapsed(self._lease_end(gang)):
            _log.warning("job %r: its lease ended at %.3f s unrenewed; stopped", gang.job.job_id, gang.until)
            self._queue.append(gang)
        else:
            reason = ending.reason(gang.folder.last_line())
            self._events.append(JobFailed(gang.job.job_id, gang.epoch, reason))

    def _start(self, start: Start) -> None:
        """Queue the one or two gangs of a start until their seats are free."""
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
                    environment=self._environment(job, start),
                )
            )

    def _environment(self, job: Job, start: Start) -> dict[str, str]:
        """Return the environment of a gang, with the settings of a trial."""
        environment = environment_of(job, start, self._topology, self._inherited)
        if self._settings is not None:
            environment["EUNOMIA_SETTINGS"] = json.dumps(self._settings(job.job_id))
        return environment

    def _start_queued(self) -> None:
        """Launch the queued gangs whose seats are free."""
        for gang in list(self._queue):
            if gang.job.job_id in self._finished:  # it finished while it was being stopped
                self._queue.remove(gang)
                self._events.append(JobFinished(gang.job.job_id, gang.epoch))
            elif gang.until > self._clock.now() and not any(gang.must_wait_for(other) for other in self._live.values()):
                self._queue.remove(gang)
                self._launch(gang)

    def _launch(self, gang: LocalGang) -> None:
        key = gang.job.job_id, gang.epoch
        self._live[key] = gang  # before the process exists, so that an interrupt cannot lose it
        try:
            pipe = gang.launch(self._lease_end(gang), self._grace_s, self._lock, self._cwd)
        except OSError as error:
            del self._live[key]
            self._events.append(JobFailed(*key, f"its supervisor cannot be started: {error}"))
        else:
            self._selector.register(pipe, selectors.EVENT_READ, gang)

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

    def _await_ends(self, deadline: float) -> None:
        while self._live and time.monotonic() < deadline:
            for key, _ in self._selector.select(max(deadline - time.monotonic(), 0.0)):
                self._read(key.data)
