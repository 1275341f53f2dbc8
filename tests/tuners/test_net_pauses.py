"""Pauses and resumes within one instant: the scheduler receives only the net change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.decisions import Decision
from eunomia.model.events import Event, JobCancelled, JobPaused, JobResumed, JobSubmitted, Measured, Moment
from eunomia.model.job import Job
from eunomia.tuners.tuner import NOTHING, TunerRequests, Wish
from eunomia.tuners.tuner_backend import TunerBackend

JOBS = tuple(Job(job_id=f"t{m}", total_steps=9.0, app="search", sequence=m) for m in range(3))
Word = tuple[type[JobPaused] | type[JobResumed] | type[JobCancelled], int]


class Still:
    """A world in which nothing runs: the trials come at 0, and at every later second one of them says how far it is."""

    def __init__(self, seconds: int):
        self._seconds, self._over = seconds, set[str]()

    def moments(self) -> Iterator[Moment]:
        yield Moment.of(0.0, [JobSubmitted(job) for job in JOBS])
        for at in range(1, self._seconds + 1):
            yield Moment.of(float(at), [Measured("t0", float(at), 0.5)])

    def carry_out(self, decision: Decision) -> None:
        """Ignore decisions."""

    def watch(self, job_id: str, steps: float) -> None:
        """Do nothing: every report is made anyway."""

    def accept(self, wish: Event) -> bool:
        """Let a cancellation be the last wish about a job."""
        name = getattr(wish, "job_id", "")
        late = name in self._over
        if isinstance(wish, JobCancelled):
            self._over.add(name)
        return not late


class Fickle:
    """A tuner with given requests for each second."""

    def __init__(self, wishes: Sequence[Sequence[Word]]):
        self._wishes = list(wishes)
        self._asked = False

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        return NOTHING

    def ask(self) -> Sequence[str]:
        asked, self._asked = self._asked, True
        return () if asked else [job.job_id for job in JOBS]

    def settings(self, job_id: str) -> Mapping[str, Any]:
        return {}

    def submitted(self, job: Job) -> TunerRequests:
        return NOTHING

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        words: list[Wish] = [kind(f"t{m}") for kind, m in self._wishes[round(steps) - 1]]
        return TunerRequests(events=words)

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        return NOTHING


def received(wishes: Sequence[Sequence[Word]]) -> list[list[Event]]:
    """Return the pauses, resumes and cancellations that the scheduler receives in each second."""
    world = TunerBackend(Still(len(wishes)), JOBS, {"search": Fickle(wishes)}, lambda job, steps: 0.5)
    words = JobPaused | JobResumed | JobCancelled
    return [[event for event in moment.events if isinstance(event, words)] for moment in world.moments()][1:]


def stage(before: str, event: Event) -> str:
    """Return the stage of a trial after one event: there, paused or gone."""
    if before == "gone" or isinstance(event, JobCancelled):
        return "gone"
    return "paused" if isinstance(event, JobPaused) else "there"


words = st.tuples(st.sampled_from((JobPaused, JobResumed, JobCancelled, JobPaused, JobResumed)), st.integers(0, 2))


@given(st.lists(st.lists(words, max_size=6), max_size=5))
def test_the_scheduler_receives_the_net_change_of_a_moment(wishes: list[list[Word]]) -> None:
    truth = belief = {job.job_id: "there" for job in JOBS}
    for requested, events in zip(wishes, received(wishes), strict=True):
        before = truth
        for kind, m in requested:
            truth = truth | {f"t{m}": stage(truth[f"t{m}"], kind(f"t{m}"))}
        for event in events:
            assert isinstance(event, JobPaused | JobResumed | JobCancelled)
            belief = belief | {event.job_id: stage(belief[event.job_id], event)}
        assert belief == truth
        pauses = [event.job_id for event in events if not isinstance(event, JobCancelled)]
        assert sorted(pauses) == [name for name in truth if truth[name] not in (before[name], "gone")]


def test_a_resume_and_a_pause_at_once_change_nothing() -> None:
    assert received([[(JobPaused, 0)], [(JobResumed, 0), (JobPaused, 0)]]) == [[JobPaused("t0")], []]


def test_a_pause_a_resume_and_a_pause_at_once_are_one_pause() -> None:
    three = [(JobPaused, 1), (JobResumed, 1), (JobPaused, 1)]
    assert received([three, [(JobResumed, 1)]]) == [[JobPaused("t1")], [JobResumed("t1")]]
