"""All that a policy may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eunomia.model.apps import Apps
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.rounding import SEEN_BITS, rounded
from eunomia.model.tenants import Tenants
from eunomia.model.topology import Topology


class UndeclaredColumn(AttributeError):
    """A policy read a column that its `needs` do not list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is believed at one instant. Axes: job m in order of (submission, row), type j in `types` order.

    Only the columns that the policy `needs` are filled. Those that are added up are rounded to 40 bits (twelve
    digits), so that the last digit of a sum tells no two jobs apart. `seed` (run seed, number of the ask) is the only
    source of random draws; `memory` holds what the last answer asked to keep, with job columns moved to today's rows.
    """

    at: float  # seconds since the run began
    types: tuple[str, ...]
    jobs: int  # rows of the job axis
    columns: Mapping[str, Any]
    seed: tuple[int, int] = (0, 0)
    memory: Mapping[str, Array] = field(default_factory=dict)
    whole: Floats | None = None  # (type,) capacity of the cluster, where this is a part of its view

    def __post_init__(self) -> None:
        near = {name: rounded(each, bits=SEEN_BITS) for name, each in self.columns.items() if name in ROUNDED}
        object.__setattr__(self, "columns", {**self.columns, **near})

    def _column(self, name: str) -> Any:
        try:
            return self.columns[name]
        except KeyError:
            raise UndeclaredColumn(
                f"the policy reads the column {name!r}, which its needs do not list; add {name!r} to info.needs"
            ) from None

    def rng(self) -> np.random.Generator:
        """Return this ask's generator: the same view draws the same numbers."""
        return np.random.default_rng(self.seed)

    def part(self, jobs: Ints, capacity: Floats) -> View:
        """Return the view of some of the jobs, ascending rows, with another capacity (type,); for wrappers.

        Who sits where stays as it is: a wrapper around policies that grant seats has to split those itself.
        """
        columns = {name: column if name in NOT_BY_JOB else column[jobs] for name, column in self.columns.items()}
        if "capacity" in columns:
            columns["capacity"] = capacity
        memory = {
            name: kept[jobs] if np.ndim(kept) and len(kept) == self.jobs else kept for name, kept in self.memory.items()
        }
        return replace(self, jobs=len(jobs), columns=columns, memory=memory, whole=self.widest())

    def widest(self) -> Floats:
        """Return (type,) what one gang can have at once: more than the capacity in a part of the cluster."""
        return self.capacity if self.whole is None else self.whole

    @property
    def scale_factor(self) -> Ints:
        """(job,) accelerators that the gang holds at once in its first shape."""
        return self._column("scale_factor")  # type: ignore[no-any-return]

    @property
    def weight(self) -> Floats:
        """(job,) above 0."""
        return self._column("weight")  # type: ignore[no-any-return]

    @property
    def submitted(self) -> Floats:
        """(job,) seconds."""
        return self._column("submitted")  # type: ignore[no-any-return]

    @property
    def throughput(self) -> Floats:
        """(job, type) believed steps/s of the whole gang as asked; 0 = cannot run there."""
        return self._column("throughput")  # type: ignore[no-any-return]

    @property
    def remaining(self) -> Floats:
        """(job,) believed steps still to do."""
        return self._column("remaining")  # type: ignore[no-any-return]

    @property
    def deadline(self) -> Floats:
        """(job,) seconds since the run began; inf = none."""
        return self._column("deadline")  # type: ignore[no-any-return]

    @property
    def isolated(self) -> Floats:
        """(job,) believed steps/s on an equal part of the cluster; 0 = no type can run it."""
        return self._column("isolated")  # type: ignore[no-any-return]

    @property
    def tenant(self) -> Ints:
        """(job,) rows of `tenants`."""
        return self._column("tenant")  # type: ignore[no-any-return]

    @property
    def tenants(self) -> Tenants:
        """Who owns jobs, as a tree with weights."""
        return self._column("tenants")  # type: ignore[no-any-return]

    @property
    def service(self) -> Floats:
        """(job,) attained accelerator-seconds."""
        return self._column("service")  # type: ignore[no-any-return]

    @property
    def received(self) -> Floats:
        """(job, type) seconds held."""
        return self._column("received")  # type: ignore[no-any-return]

    @property
    def running(self) -> Bools:
        """(job,) holds seats now."""
        return self._column("running")  # type: ignore[no-any-return]

    @property
    def on_type(self) -> Ints:
        """(job,) type whose seats it holds, -1 = waiting."""
        return self._column("on_type")  # type: ignore[no-any-return]

    @property
    def capacity(self) -> Floats:
        """(type,) accelerators this policy may share out."""
        return self._column("capacity")  # type: ignore[no-any-return]

    @property
    def price(self) -> Floats:
        """(type,) US$ per accelerator-hour."""
        return self._column("price")  # type: ignore[no-any-return]

    @property
    def kind(self) -> Ints:
        """(job,) rows of the `paired` table: jobs believed to behave alike."""
        return self._column("kind")  # type: ignore[no-any-return]

    @property
    def paired(self) -> Floats:
        """(kind, kind, type) steps/s of the first beside the second on the same seats; 0 = they do not fit."""
        return self._column("paired")  # type: ignore[no-any-return]

    @property
    def apart(self) -> Floats:
        """(job, type) believed steps/s of the whole gang when it does not fit on one machine; 0 = cannot."""
        return self._column("apart")  # type: ignore[no-any-return]

    @property
    def shapes(self) -> Ints:
        """(job, shape) accelerators of each shape; 0 = the job has no such shape."""
        return self._column("shapes")  # type: ignore[no-any-return]

    @property
    def shape_throughput(self) -> Floats:
        """(job, shape, type) believed steps/s in each shape."""
        return self._column("shape_throughput")  # type: ignore[no-any-return]

    @property
    def run_time(self) -> Floats:
        """(job,) seconds that it held seats."""
        return self._column("run_time")  # type: ignore[no-any-return]

    @property
    def wait(self) -> Floats:
        """(job,) seconds that it has waited without a break; 0 while it holds seats."""
        return self._column("wait")  # type: ignore[no-any-return]

    @property
    def started(self) -> Floats:
        """(job,) when it sat down on its present seats; inf while it waits."""
        return self._column("started")  # type: ignore[no-any-return]

    @property
    def first_started(self) -> Floats:
        """(job,) when it first held seats; inf = never."""
        return self._column("first_started")  # type: ignore[no-any-return]

    @property
    def until(self) -> Floats:
        """(job,) end of its lease; inf = none, or none is agreed."""
        return self._column("until")  # type: ignore[no-any-return]

    @property
    def lease(self) -> float:
        """Seconds that a lease given now lasts at most; inf = until the job ends."""
        return self._column("lease")  # type: ignore[no-any-return]

    @property
    def attempts(self) -> Ints:
        """(job,) runs that failed."""
        return self._column("attempts")  # type: ignore[no-any-return]

    @property
    def total(self) -> Floats:
        """(job,) believed steps in all."""
        return self._column("total")  # type: ignore[no-any-return]

    @property
    def slowdown(self) -> Floats:
        """(job, level) at least 1: step time when a slot, a machine, a rack or more hold the gang, best place = 1."""
        return self._column("slowdown")  # type: ignore[no-any-return]

    @property
    def skew(self) -> Floats:
        """(job,) the largest tensor's part of all parameters of its model; nan = the model is not known."""
        return self._column("skew")  # type: ignore[no-any-return]

    @property
    def deserved(self) -> Floats:
        """(job,) accelerator-seconds that it could claim: its part, by weight, of its tenant's quota over its life."""
        return self._column("deserved")  # type: ignore[no-any-return]

    @property
    def hourly(self) -> Floats:
        """(hour, tenant, 3) accelerator-seconds used, deserved and entitled; up to 168 hours, the present one last."""
        return self._column("hourly")  # type: ignore[no-any-return]

    @property
    def app(self) -> Ints:
        """(job,) rows of `apps`."""
        return self._column("app")  # type: ignore[no-any-return]

    @property
    def apps(self) -> Apps:
        """The sets of jobs with one goal; a job that names none is an app of its own."""
        return self._column("apps")  # type: ignore[no-any-return]

    @property
    def past_service(self) -> Floats:
        """(sample,) accelerator-seconds of every job that has finished."""
        return self._column("past_service")  # type: ignore[no-any-return]

    @property
    def loss_curve(self) -> Floats:
        """(job, 3) believed learning curve: start, floor and rate of `model.curves`; the median where none is told."""
        return self._column("loss_curve")  # type: ignore[no-any-return]

    @property
    def losses(self) -> Floats:
        """(job, loss, 2) steps, ascending, and loss: what each job told so far; nan where there is no more."""
        return self._column("losses")  # type: ignore[no-any-return]

    @property
    def demand(self) -> Floats:
        """(job, 2) CPUs and GiB of memory of the machines that the whole gang asks for; 0 = none."""
        return self._column("demand")  # type: ignore[no-any-return]

    @property
    def room(self) -> Floats:
        """(2,) CPUs and GiB of memory of the machines that are there; inf = not said."""
        return self._column("room")  # type: ignore[no-any-return]

    @property
    def holder(self) -> Ints:
        """(device,) job that holds the seat (the first of a pair), -1 = free, -2 = lost."""
        return self._column("holder")  # type: ignore[no-any-return]

    @property
    def topology(self) -> Topology:
        """Where the accelerators are."""
        return self._column("topology")  # type: ignore[no-any-return]


COLUMNS = frozenset(name for name, value in vars(View).items() if isinstance(value, property))
NOT_BY_JOB = frozenset(  # others: a row per job
    {"apps", "capacity", "holder", "hourly", "lease", "paired", "past_service", "price", "room", "tenants", "topology"}
)
ROUNDED = frozenset(  # added up
    {"deserved", "hourly", "isolated", "past_service", "received", "remaining", "run_time", "service", "wait"}
)
