"""Events: the only input of the scheduling core."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from eunomia.model.answers import Answer
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.tenants import Tenant
from eunomia.model.value_equality import PlainValue, ValueEqual


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """A user asked for a training run."""

    job: Job


@dataclass(frozen=True, slots=True)
class JobCancelled:
    """The user cancelled the job; `by_tuner`: a search stopped its trial."""

    job_id: str
    by_tuner: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class JobUpdated(PlainValue):
    """The user changed the job's weight, steps or deadline, or the job has shown that it can save.

    nan and False = unchanged. One that `keeps_seats` is not preempted until `can_save` is said of it again.
    """

    job_id: str
    weight: float = math.nan
    total_steps: float = math.nan
    can_save: bool = False
    deadline: float = math.nan  # seconds since the run began; inf = none
    keeps_seats: bool = False


@dataclass(frozen=True, slots=True)
class Estimated:
    """The run time of a job, on its fastest type, was estimated: median and ends of the 80 % interval, in seconds.

    `measurements` counts the ended jobs of its kind that the estimate rests on.
    """

    job_id: str
    run_s: float
    low_s: float
    high_s: float
    measurements: int = 0

    def describe(self) -> str:
        """Return the estimate in words, after "its run time"."""
        count = f"{self.measurements:,} measurement{'s' * (self.measurements != 1)} of like jobs"
        interval = f"80 % between {self.low_s:,.3g} s and {self.high_s:,.3g} s"
        return f"of {self.run_s:,.3g} s is estimated from {count}, {interval}"


@dataclass(frozen=True, slots=True, eq=False)
class PairsEstimated(ValueEqual):
    """Believed throughputs of pairs of job types have changed, by `measurements` measured pairs so far.

    `kept` is the rate of each job type beside its partner over its rate alone, (pair, type).
    """

    job_types: Sequence[str]  # (pair,)
    partners: Sequence[str]  # (pair,)
    kept: Floats
    measurements: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ThroughputsLearnt(ValueEqual):
    """Believed throughputs of gangs have changed, by the progress of gangs that ran or by which ones are to be tried.

    All believed throughputs of these kinds, a kind being a job type and a scale factor.
    """

    job_types: Sequence[str]  # (kind,)
    scale_factors: Sequence[int]  # (kind,)
    throughput: Floats  # (kind, type) steps/s that are believed from now on
    measured_s: Floats  # (kind, type) seconds of progress that they rest on, 0 = never measured
    tried: Bools  # (kind, type) the upper end of the interval is believed, so that it is measured
    failed: Ints | None = None  # (kind, type) starts on types that were tried, none of them measured; None = none


@dataclass(frozen=True, slots=True)
class JobPaused:
    """The user paused the job: it keeps its progress and requests nothing until it is resumed."""

    job_id: str


@dataclass(frozen=True, slots=True)
class JobResumed:
    """The user resumed a paused job: it is pending from now on."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A running job reported its loss after so many steps, which may exceed those of its last checkpoint."""

    job_id: str
    steps: float
    loss: float


@dataclass(frozen=True, slots=True)
class AppFinished:
    """The app reached its goal; all its jobs have ended. `best` is the job with the best loss, or empty."""

    app: str
    best: str
    loss: float


@dataclass(frozen=True, slots=True)
class JobFinished:
    """The gang completed its last step."""

    job_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The gang ended before its last step."""

    job_id: str
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Progressed(ValueEqual):
    """Checkpointed steps of each job since it began, in the order of `job_ids`."""

    job_ids: Sequence[str]
    steps: Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class NodeLost:
    """A machine failed, with the gangs on it."""

    node: int


@dataclass(frozen=True, slots=True)
class NodeJoined:
    """A lost machine is up again, without gangs."""

    node: int


@dataclass(frozen=True, slots=True)
class TenantChanged:
    """An operator gave a tenant other options; a tenant without jobs so far may be named."""

    name: str
    tenant: Tenant


@dataclass(frozen=True, slots=True)
class AcceleratorsTaken:
    """These accelerators, and no others, are used by processes that the scheduler did not start.

    None of them is given away; one that a gang holds is taken out of service as soon as the gang has left it.
    """

    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GangAdopted:
    """The gang of a job that waits was found running: it goes on, on the accelerators that it has.

    Nothing changes where the job does not wait, has had a later start, or the accelerators are not free.
    """

    job_id: str
    epoch: int  # of its start, which is not known
    devices: tuple[int, ...]
    until: float  # end of its lease; inf = none


@dataclass(frozen=True, slots=True)
class AskAbandoned:
    """The ask of that number will not be answered; the last answer goes on, and no further ask is due before then."""

    asked: int
    next_at: float


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time of the last `SetTimer` was reached."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The policy's answer to the ask of that number."""

    asked: int
    answer: Answer


Event: TypeAlias = (
    Progressed | JobSubmitted | JobUpdated | Estimated | PairsEstimated | ThroughputsLearnt
    | JobFinished | JobFailed | JobCancelled | JobPaused | JobResumed
    | Measured | AppFinished | TenantChanged | NodeLost | NodeJoined | AcceleratorsTaken | GangAdopted | Answered
    | TimerFired | AskAbandoned
)  # fmt: skip

# The order in which events of one instant are handled.
EVENTS: tuple[type[Event], ...] = get_args(Event)
_RANK = {kind: rank for rank, kind in enumerate(EVENTS)}


def _key(event: Event) -> tuple[int, float, int, str]:
    """Return the sort key of an event: kind, submission, sequence or number, id."""
    rank = _RANK[type(event)]
    match event:
        case JobSubmitted(job):
            return rank, job.submitted, job.sequence, job.job_id
        case (
            JobUpdated(name)
            | JobFinished(name)
            | JobFailed(name)
            | JobCancelled(name)
            | Measured(name)
            | GangAdopted(name)
        ):
            return rank, 0.0, 0, name
        case JobPaused(name) | JobResumed(name) | AppFinished(name) | Estimated(name) | TenantChanged(name):
            return rank, 0.0, 0, name
        case Progressed(names):
            return rank, 0.0, 0, "\0".join(names)
        case NodeLost(number) | NodeJoined(number) | Answered(number) | AskAbandoned(number):
            return rank, 0.0, number, ""
    return rank, 0.0, 0, ""


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant and all its events, sorted, so that the backend's order cannot matter."""

    at: float  # seconds since the run began
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if type(self.at) is int:  # kernels are compiled for each type of a number that they are given
            object.__setattr__(self, "at", float(self.at))

    @classmethod
    def of(cls, at: float, events: Iterable[Event]) -> Moment:
        """Sort by kind, then by id."""
        unsorted = tuple(events)
        return cls(at, unsorted if len(unsorted) == 1 else tuple(sorted(unsorted, key=_key)))
