"""The service's state in another process: it reads the log of moments and never waits for the writer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from eunomia.core.believed_speeds import believed_speeds
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts.futures import PresentState
from eunomia.model.decisions import SetTimer
from eunomia.model.events import TimerFired
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage
from eunomia.records.moment_log import MomentLog
from eunomia.records.packed_objects import restore
from eunomia.service.core_job import core_job
from eunomia.service.dependencies import dependencies_of
from eunomia.service.forecast_log import ForecastReader
from eunomia.service.job_row import JobRow
from eunomia.service.limit_forecasts import jobs_to_end_first
from eunomia.service.limits import LIMIT
from eunomia.service.own_order import PRIORITY
from eunomia.service.recovery import new_scheduler, setup_text
from eunomia.service.site import Site

MOST_ENDED = 50_000  # jobs that arrivals are drawn from
MANY_MOMENTS = 1_000  # so far behind a snapshot is quicker than the moments before it


class SiteChanged(ValueError):
    """The service decides with another site than this process has read."""


class LogReader(ForecastReader):
    """What a follower of the log reads."""

    def meta(self, key: str) -> str | None:
        """Return a fact about the service."""
        found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def begin(self) -> None:
        """Read the same state of the store from now on, until `end`."""
        self._db.execute("BEGIN")

    def end(self) -> None:
        """Read what has been committed since from now on."""
        self._db.execute("COMMIT")

    def newest_snapshot(self, after: int) -> tuple[int, float | None, bytes] | None:
        """Return number, wake time and content of the newest snapshot behind a moment; None if there is none."""
        text = "SELECT seq, wake, content FROM snapshots WHERE seq > ? ORDER BY seq DESC LIMIT 1"
        found: tuple[int, float | None, bytes] | None = self._db.execute(text, (after,)).fetchone()
        return found

    def moments(self, after: int) -> Iterator[tuple[int, str]]:
        """Yield number and lines of the moments after one, in order."""
        yield from self._db.execute("SELECT seq, lines FROM moments WHERE seq > ? ORDER BY seq", (after,))

    def first_moment(self) -> int:
        """Return the number of the first moment that is kept; 0 if there is none."""
        return int(self._db.execute("SELECT coalesce(min(seq), 0) FROM moments").fetchone()[0])

    def free_jobs(self) -> list[JobRow]:
        """Return the live jobs that nothing holds."""
        text = "SELECT body FROM jobs WHERE live = 1 AND coalesce(json_array_length(body, '$.holds'), 0) = 0"
        return [JobRow.of(body) for (body,) in self._db.execute(text)]

    def held_jobs(self) -> list[JobRow]:
        """Return the live jobs that are held for any reason."""
        text = "SELECT body FROM jobs WHERE live = 1 AND json_array_length(body, '$.holds') > 0"
        return [JobRow.of(body) for (body,) in self._db.execute(text)]


class FollowedState:
    """A scheduler that is brought to the last stored moment when it is asked for."""

    def __init__(self, site: Site) -> None:
        self.site, self.reader = site, LogReader(site.place)
        self.scheduler: Scheduler = new_scheduler(site)
        self.seq, self.wake, self.at = 0, math.inf, 0.0
        self._log = MomentLog()

    def catch_up(self) -> None:
        """Handle the moments that were stored since. Raises SiteChanged if they were decided with another site."""
        if self.reader.meta("setup") != setup_text(self.site):
            raise SiteChanged("the site file was changed since the service read it")
        is_near = self.seq and self.reader.first_moment() <= self.seq + 1  # the moments between are kept
        snapshot = self.reader.newest_snapshot(self.seq + (MANY_MOMENTS if is_near else 0))
        if snapshot is not None:
            self.scheduler = new_scheduler(self.site)
            restore(self.scheduler, snapshot[2])
            self._log.begin()
            self.seq, self.wake = snapshot[0], math.inf if snapshot[1] is None else snapshot[1]
        for seq, lines in self.reader.moments(self.seq):
            moment = self._log.read(lines)
            if any(isinstance(event, TimerFired) for event in moment.events):
                self.wake = math.inf
            for decision in self.scheduler.handle(moment):
                if isinstance(decision, SetTimer):
                    self.wake = decision.at
            self.scheduler.forget_ended()
            self.seq, self.at = seq, moment.at

    def present(self, now: float, *, arrivals: bool = False) -> PresentState:
        """Return the state at time `now`, or at the last moment if that is later; for `arrivals`, with ended jobs."""
        self.reader.begin()
        try:
            self.catch_up()
            held = self.reader.held_jobs()
            is_limited = any(row.holds in ([LIMIT], [PRIORITY]) for row in held)
            free = self.reader.free_jobs() if is_limited else []
            ended = self._ended() if arrivals else []
        finally:
            self.reader.end()
        state = self.scheduler.state
        first = jobs_to_end_first(self.site.limits, [*free, *held]) if is_limited else {}
        resumes_at, follows = dict[int, float](), dict[int, frozenset[int]]()
        for row in held:
            number = state.row_of.get(row.id)
            if number is None or state.jobs.stage[number] != Stage.PAUSED or len(row.holds) != 1:
                continue
            if row.holds == ["backoff"]:
                resumes_at[number] = row.backoff_until
                continue
            if row.holds == ["after"]:
                needed = dependencies_of(row.spec["after"])
                if any(one.kind == "afternotok" for one in needed):
                    continue  # in no future a job fails
                names = frozenset(one.job_id for one in needed)
            else:
                names = first.get(row.id, frozenset())
            waits = {state.row_of[name] for name in names if name in state.row_of}
            waits = {one for one in waits if state.jobs.stage[one] in (Stage.WAITING, Stage.RUNNING, Stage.PAUSED)}
            if waits:
                follows[number] = frozenset(waits)
            elif row.id in first and row.holds == [LIMIT]:
                resumes_at[number] = max(now, self.at)  # its place is about to become free
        at = max(now, self.at)
        setup = self.site.setup
        return PresentState(
            scheduler=self.scheduler, policy=setup.policy, speeds=believed_speeds(self.scheduler.belief), at=at,
            wake=max(self.wake, at), overheads=setup.overheads, resumes_at=resumes_at, follows=follows, ended=ended,
        )  # fmt: skip

    def _ended(self) -> list[Job]:
        """Return the last jobs that have ended and that the scheduler has no rows of, with the steps that they did."""
        known, belief, found = self.scheduler.state.row_of, self.scheduler.belief, list[Job]()
        for row in self.reader.ended_jobs(MOST_ENDED):
            if row.id in known or math.isnan(row.submitted):
                continue
            try:
                job = core_job(row)
                speed = float(belief.solo_throughput(job.job_type, job.scale_factor).max())
            except (TypeError, ValueError, LookupError, OverflowError):
                continue  # its row is damaged, or the site has no such job type any more: it does not come again
            steps = row.run_s * speed if row.state == "succeeded" else job.total_steps
            found.append(replace(job, total_steps=max(steps, 1e-6)))
        return found
