"""What every search keeps: which trials live, which have been asked for, and the best that has been found."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eunomia.model.events import AppFinished, JobCancelled
from eunomia.model.job import Job
from eunomia.tuners.tuner import NOTHING, TunerRequests


class Trials:
    """The trials of one app, in order of submission; a search that runs them all to their ends, as random search does.

    At most `parallel` trials are asked for at a time, the next one when one has ended, and at most `most` in all; None
    = no limit. The app is over when its last trial has ended, and what it found is the best of those that came to their
    ends; where none did it found nothing, and has not finished.
    """

    def __init__(self, *, parallel: int | None = None, most: int | None = None) -> None:
        self.app = ""
        self.jobs: dict[str, Job] = {}  # those that it may ask for
        self.alive: dict[str, None] = {}  # asked for or not yet, and not ended
        self.parallel, self._most = parallel, most
        self._unasked: deque[str] = deque()
        self._running: set[str] = set()  # asked for, and alive when it last asked
        self._best = (math.inf, "")  # loss and trial
        self._over = False

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """Take the trials in."""
        self.app = app
        self.jobs = {job.job_id: job for job in trials[: self._most]}
        self.alive = dict.fromkeys(self.jobs)
        self._unasked.extend(self.jobs)
        return NOTHING

    def ask(self) -> Sequence[str]:
        """Return the trials that it wants to have submitted from now on."""
        self._running &= self.alive.keys()
        room = len(self.jobs) if self.parallel is None else self.parallel - len(self._running)
        asked: list[str] = []
        while self._unasked and len(asked) < room:
            name = self._unasked.popleft()
            asked += [name] if name in self.alive else []
        self._running.update(asked)
        return asked

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Return nothing: a trial's command says what it is."""
        return {}

    def submitted(self, job: Job) -> TunerRequests:
        """Nothing is wished of a new trial."""
        return NOTHING

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Nothing is watched."""
        return NOTHING

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Note what the trial has found."""
        self.alive.pop(job_id, None)
        if not math.isnan(loss):
            self._best = min(self._best, (loss, job_id))
        return TunerRequests(events=self.finish())

    def drop(self, names: Iterable[str]) -> list[JobCancelled]:
        """Give up these trials; return the wishes."""
        gone = [name for name in names if name in self.alive]
        for name in gone:
            del self.alive[name]
        return [JobCancelled(name, by_tuner=True) for name in gone]

    def finish(self) -> list[AppFinished]:
        """Say that the app is over when nothing of it lives any more, once; without a trial's name it found nothing."""
        if self.alive or self._over:
            return []
        self._over = True
        loss, name = self._best
        return [AppFinished(self.app, name, loss)]
