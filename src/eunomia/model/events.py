"""What happened: the only thing that changes the core's mind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from eunomia.model.answers import Answer
from eunomia.model.arrays import Floats
from eunomia.model.job import Job
from eunomia.model.value_equality import ValueEqual


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """A user asked for a training run."""

    job: Job


@dataclass(frozen=True, slots=True)
class JobCancelled:
    """Its user no longer wants the job; `by_tuner`: the user is a search that gives the trial up."""

    job_id: str
    by_tuner: bool = False


@dataclass(frozen=True, slots=True)
class JobUpdated:
    """Its user thinks otherwise of the job: of its weight, or of the steps it needs in all. nan = as before."""

    job_id: str
    weight: float = math.nan
    total_steps: float = math.nan


@dataclass(frozen=True, slots=True)
class JobPaused:
    """Its user wants the job to rest: it keeps its progress and asks for nothing until it is resumed."""

    job_id: str


@dataclass(frozen=True, slots=True)
class JobResumed:
    """Its user wants a paused job to go on: it waits for seats from now on."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A running job told its user how good it is: its loss after so many steps, which no checkpoint holds yet."""

    job_id: str
    steps: float
    loss: float


@dataclass(frozen=True, slots=True)
class AppFinished:
    """Its user has what the app was for; nothing of it is left to run. `best` is the job that found it, or empty."""

    app: str
    best: str
    loss: float


@dataclass(frozen=True, slots=True)
class JobFinished:
    """The gang ended by itself after its last step."""

    job_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The gang ended by itself before its last step."""

    job_id: str
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Progressed(ValueEqual):
    """Steps that are safe in a checkpoint, since the job began; `steps` stands beside `job_ids`."""

    job_ids: Sequence[str]
    steps: Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class NodeLost:
    """A machine and the gangs on it are gone."""

    node: int


@dataclass(frozen=True, slots=True)
class NodeJoined:
    """A lost machine is back, empty."""

    node: int


@dataclass(frozen=True, slots=True)
class Woken:
    """The time came at which the core had asked to be woken."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The adviser's answer to the ask of that number."""

    asked: int
    answer: Answer


Event: TypeAlias = (
    Progressed | JobSubmitted | JobUpdated | JobFinished | JobFailed | JobCancelled | JobPaused | JobResumed
    | Measured | AppFinished | NodeLost | NodeJoined | Answered | Woken
)  # fmt: skip

# Of one instant: first what is known of the past, then who came, who went (perhaps at once), what was answered.
EVENTS: tuple[type[Event], ...] = (
    Progressed,
    JobSubmitted,
    JobUpdated,
    JobFinished,
    JobFailed,
    JobCancelled,
    JobPaused,
    JobResumed,
    Measured,
    AppFinished,
    NodeLost,
    NodeJoined,
    Answered,
    Woken,
)
_RANK = {kind: rank for rank, kind in enumerate(EVENTS)}


def _key(event: Event) -> tuple[int, float, int, str]:
    """Return what an instant's events are sorted by: kind, then who came first, then id."""
    rank = _RANK[type(event)]
    match event:
        case JobSubmitted(job):
            return rank, job.submitted, job.sequence, job.job_id
        case JobUpdated(name) | JobFinished(name) | JobFailed(name) | JobCancelled(name) | Measured(name):
            return rank, 0.0, 0, name
        case JobPaused(name) | JobResumed(name) | AppFinished(name):
            return rank, 0.0, 0, name
        case Progressed(names):
            return rank, 0.0, 0, "\0".join(names)
        case NodeLost(number) | NodeJoined(number) | Answered(number):
            return rank, 0.0, number, ""
    return rank, 0.0, 0, ""


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant and all that happened then. Events are sorted, so the world's order cannot matter."""

    at: float  # seconds since the run began
    events: tuple[Event, ...]

    @classmethod
    def of(cls, at: float, events: Iterable[Event]) -> Moment:
        """Sort by kind, then by id."""
        found = tuple(events)
        return cls(at, found if len(found) == 1 else tuple(sorted(found, key=_key)))
