"""The state of each job of a real run: for the live table and for the outcomes at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from eunomia.model.decisions import Ask, Decision, GiveUp, Refuse, Start, Starts, Stop
from eunomia.model.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Moment,
    Progressed,
)
from eunomia.model.job import Job
from eunomia.model.topology import Topology

ENDED = frozenset({"finished", "failed", "cancelled", "rejected"})


@dataclass(slots=True)
class JobState:
    """The current state of a job."""

    job: Job
    state: str  # waiting, running, paused, or how it ended
    since: float
    seats: str = ""
    epoch: int = 0  # of its last start
    steps: float = 0.0  # saved in a checkpoint
    failures: int = 0
    reason: str = ""  # of its last failure, or of its refusal

    def describe(self) -> str:
        """Return the state in a few words."""
        match self.state:
            case "running":
                return f"running on {self.seats} (epoch {self.epoch})"
            case "waiting" if self.failures:
                return f"waiting for another attempt, after it failed: {self.reason}"
            case "failed" | "rejected":
                return f"{self.state}: {self.reason}"
        return self.state


class Watcher(Protocol):
    """Shows the progress of a run to a user."""

    def begin(self, states: JobStates) -> None:
        """Show these states from now on."""
        ...

    def changed(self, at: float, state: JobState) -> None:
        """Show the change of one job."""
        ...


class JobStates:
    """An observer that keeps the state of each job of a run of `total` jobs."""

    def __init__(self, topology: Topology, total: int):
        self.total = total
        self.by_id: dict[str, JobState] = {}
        self.at = 0.0
        self._topology = topology
        self._before: dict[str, tuple[str, int] | None] = {}  # state and epoch of changed jobs before the change
        self._watcher: Watcher | None = None
        self._is_new: Callable[[], bool] = lambda: True

    def show_changes_to(self, watcher: Watcher, is_new: Callable[[], bool]) -> None:
        """Show each changed job once a moment, but only while `is_new` returns True."""
        self._watcher, self._is_new = watcher, is_new
        watcher.begin(self)

    @property
    def ended(self) -> int:
        """Number of ended jobs."""
        return sum(state.state in ENDED for state in self.by_id.values())

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Update the states by events and decisions."""
        self.at = moment.at
        for event in moment.events:
            self._apply_event(event)
        for decision in decisions:
            self._apply_decision(decision)
        if any(isinstance(decision, Ask) for decision in decisions):
            return  # the answer follows at the same instant
        before, self._before = self._before, {}
        for job_id, was in before.items():
            now = self.by_id[job_id]
            if (now.state, now.epoch) != was:
                now.since = moment.at
                if self._watcher is not None and self._is_new():
                    self._watcher.changed(moment.at, now)

    def _apply_event(self, event: Event) -> None:
        match event:
            case JobSubmitted(job):
                self._before[job.job_id] = None
                self.by_id[job.job_id] = JobState(job, "waiting", self.at)
            case JobFinished(job_id, epoch) if self._is_running(job_id, epoch):
                self._set_state(job_id, "finished")
            case JobFailed(job_id, epoch, reason) if self._is_running(job_id, epoch):
                state = self.by_id[job_id]
                state.failures, state.reason = state.failures + 1, reason
                self._set_state(job_id, "waiting")
            case JobCancelled(job_id) if self.by_id[job_id].state not in ENDED:
                self._set_state(job_id, "cancelled")
            case JobPaused(job_id) if self.by_id[job_id].state not in ENDED:
                self._set_state(job_id, "paused")
            case JobResumed(job_id) if self.by_id[job_id].state == "paused":
                self._set_state(job_id, "waiting")
            case Progressed(job_ids, steps):
                for job_id, done in zip(job_ids, steps, strict=True):
                    self.by_id[job_id].steps = float(done)

    def _apply_decision(self, decision: Decision) -> None:
        match decision:
            case Start() | Starts():
                for start in decision.each():
                    self._start(start)
            case Stop(job_ids, epochs):
                for job_id, epoch in zip(job_ids, epochs, strict=True):
                    if self._is_running(job_id, int(epoch)):
                        self._set_state(job_id, "waiting")
            case GiveUp(job_id):
                self._set_state(job_id, "failed")
            case Refuse(job_id, why):
                state = self.by_id[job_id]
                state.reason = why if not state.failures else state.reason
                self._set_state(job_id, "failed" if state.failures else "rejected")

    def _start(self, start: Start) -> None:
        seats = f"{self._topology.types[int(self._topology.type[start.seats[0]])]} {', '.join(map(str, start.seats))}"
        for job_id, epoch in start.gangs():
            self._set_state(job_id, "running")
            self.by_id[job_id].seats, self.by_id[job_id].epoch = seats, epoch

    def _is_running(self, job_id: str, epoch: int) -> bool:
        state = self.by_id[job_id]
        return state.state == "running" and state.epoch == epoch

    def _set_state(self, job_id: str, to: str) -> None:
        state = self.by_id[job_id]
        self._before.setdefault(job_id, (state.state, state.epoch))
        state.state = to
        if to != "running":
            state.seats = ""
