"""What a backend is made from, and what runs in virtual and in real time ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol

from eunomia.backends.protocol import Backend, TunableBackend
from eunomia.backends.simulated.fault_model import FaultModel
from eunomia.model.decisions import Start
from eunomia.model.events import Moment
from eunomia.model.held_time import HeldTime
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology
from eunomia.throughputs.interference import Neighbours


class VirtualBackend(Backend, Protocol):
    """A backend in virtual time, for `eunomia simulate`."""

    given_up: str  # why the run was ended early, if it was

    def losses(self, until: float) -> HeldTime | None:
        """Return what held seats were used for up to the end of the run, `until`; None if it is not counted."""
        ...


class RealBackend(TunableBackend, Protocol):
    """A backend in real time, for `eunomia run`. It is closed on exit from `with`."""

    def __enter__(self) -> RealBackend: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

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
        """Continue at time `at` a run whose process ended; return the moment with the ends of its gangs, if any."""
        ...

    def loss(self, job: Job, steps: float) -> float:
        """Return the last loss that the job reported; nan if none."""
        ...

    def log(self, job_id: str) -> Path:
        """Return the file with the output of a job."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendInputs:
    """What a backend is made from. The last group is for real time only."""

    jobs: Sequence[Job]
    topology: Topology
    speeds: Speeds  # the true ones; those of a `PlacedThroughputs` depend on placement
    overheads: Overheads
    faults: FaultModel
    neighbours: Neighbours | None  # what gangs on one machine cost each other
    divides_time: bool  # decisions are `SetShares`, without seats
    checkpoint_every_s: float
    replay_status: bool  # jobs fail or are cancelled as in the trace
    seed: int
    report_after_s: float = 0.0  # a simulated gang reports its steps after so many seconds of progress; 0 = it does not

    folder: Path = Path()  # of the scenario
    workdir: Path = Path()  # for the jobs' files
    clock: Path | None = None  # file with the time of the run, from which it is resumed
    grace_s: float = 10.0  # for a job to save
    wait_s: float = 0.0  # for an earlier run to leave `workdir`
    options: Mapping[str, Any] = field(default_factory=dict)  # of the backend: the table [world.NAME]
    settings: Callable[[str], Mapping[str, Any]] | None = None  # of a job, called at each start; None = losses not read


class BackendClass:
    """The base of a class that the registry or a scenario names: `build` makes the backend of a run."""

    real_time: ClassVar[bool] = False  # for `eunomia run`; others are for `eunomia simulate`

    @classmethod
    def check(cls, inputs: BackendInputs) -> None:
        """Raise InvalidInput for jobs that cannot run here, before anything is written."""

    @classmethod
    def build(cls, inputs: BackendInputs) -> VirtualBackend | RealBackend:
        """Return a `RealBackend` if `real_time`, else a `VirtualBackend`."""
        raise NotImplementedError
