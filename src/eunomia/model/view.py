"""The input of a policy: the scheduler's beliefs about jobs, cluster and tenants at one instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

import numpy as np

from eunomia.model.apps import Apps
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.rounding import SEEN_BITS, rounded
from eunomia.model.tenants import Tenants
from eunomia.model.topology import Topology
from eunomia.model.value_equality import ValueEqual

T = TypeVar("T")


# What other simulators call it → what to read instead.
_OTHER_NAMES = {
    **dict.fromkeys(("now", "time", "t", "clock", "current_time", "timestamp"), "at"),
    **dict.fromkeys(("n", "num_jobs", "n_jobs", "job_count"), "jobs"),
    **dict.fromkeys(("gpus", "num_gpus", "accelerators", "gang_size", "workers", "z"), "scale_factor"),
    **dict.fromkeys(("steps_remaining", "remaining_steps", "remaining_time"), "remaining"),
    **dict.fromkeys(("arrival", "arrival_time", "submit_time", "submitted_at"), "submitted"),
    **dict.fromkeys(("attained_service", "executed_time"), "service"),
    **dict.fromkeys(("owner", "user", "users"), "tenant"),
    **dict.fromkeys(("accelerator_types", "gpu_types"), "types"),
    "random": "rng",
}


def _no_such(view: View, name: str) -> str:
    """Return the message for an attribute that no view has; "" for a column or a name of Python's own."""
    if name in COLUMNS or name.startswith("_"):
        return ""
    whole = [*View.__slots__, "rng", "part"]
    close = _OTHER_NAMES.get(name) or next(iter(get_close_matches(name, [*whole, *sorted(COLUMNS)], 1)), "")
    instead = f"a view has {close!r}; " if close else ""
    columns = ", ".join(sorted(view.columns))
    return f"a view has no {name!r}; {instead}this one has {', '.join(whole)} and the columns of info.needs: {columns}"


class UndeclaredColumn(AttributeError):
    """A policy read a column that its `needs` do not list."""


class _Column(Generic[T]):
    """Reads an entry of `View.columns`. Raises UndeclaredColumn where it is not filled."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: View, owner: type) -> T:
        try:
            return view.columns[self._name]  # type: ignore[no-any-return]
        except KeyError:
            name = self._name
            raise UndeclaredColumn(
                f"the policy reads the column {name!r}, which its needs do not list; add {name!r} to info.needs"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View(ValueEqual):
    """What is believed at one instant. Axes: job m in order of (submission, row), type j in `types` order.

    Only the columns that the policy `needs` are filled. Columns of sums are rounded to 40 bits (twelve digits), so that
    the last digit of a sum breaks no tie. `seed` (run seed, number of the ask) is the only source of random draws;
    `memory` holds what the last answer stored, its job columns in the order of this view's rows.
    """

    at: float  # seconds since the run began
    types: tuple[str, ...]
    jobs: int  # rows of the job axis
    columns: Mapping[str, Any]
    seed: tuple[int, int] = (0, 0)
    memory: Mapping[str, Array] = field(default_factory=dict)
    whole: Floats | None = None  # (type,) capacity of the cluster, where this is a part of its view

    scale_factor = _Column[Ints]()  # (job,) accelerators that the gang holds at once in its first shape
    weight = _Column[Floats]()  # (job,) above 0
    submitted = _Column[Floats]()  # (job,) seconds
    throughput = _Column[Floats]()  # (job, type) believed steps/s of the gang in its first shape; 0 = cannot run there
    remaining = _Column[Floats]()  # (job,) believed steps still to do
    deadline = _Column[Floats]()  # (job,) seconds since the run began; inf = none
    equal_share_throughput = _Column[
        Floats
    ]()  # (job,) believed steps/s on an equal part of the cluster; 0 = no type can run it
    tenant = _Column[Ints]()  # (job,) rows of `tenants`
    tenants = _Column[Tenants]()  # owners of jobs: a tree with weights
    service = _Column[Floats]()  # (job,) attained accelerator-seconds
    # (job,) the same when this policy was asked last, of the seats it has now; nan = it was not asked yet
    service_at_last_ask = _Column[Floats]()
    held_time_by_type = _Column[Floats]()  # (job, type) seconds held
    running = _Column[Bools]()  # (job,) holds seats now
    on_type = _Column[Ints]()  # (job,) type whose seats it holds, -1 = waiting
    capacity = _Column[Floats]()  # (type,) accelerators this policy may allocate
    price = _Column[Floats]()  # (type,) US$ per accelerator-hour
    job_type = _Column[Array]()  # (job,) names of what the jobs train; "" = not named
    job_class = _Column[Ints]()  # (job,) rows of `packed_throughput`: jobs believed to behave alike
    packed_throughput = _Column[
        Floats
    ]()  # (class, class, type) steps/s of the first beside the second; 0 = they do not fit
    packed_spread_throughput = _Column[Floats]()  # (class, class, type) the same of two that are spread over machines
    spread_throughput = _Column[
        Floats
    ]()  # (job, type) believed steps/s of a gang spread over machines; 0 = cannot run so
    shapes = _Column[Ints]()  # (job, shape) accelerators of each shape; 0 = the job has no such shape
    shape_throughput = _Column[Floats]()  # (job, shape, type) believed steps/s in each shape
    run_time = _Column[Floats]()  # (job,) seconds that it held seats
    waiting_time = _Column[Floats]()  # (job,) seconds of its present wait; 0 while it holds seats
    started = _Column[Floats]()  # (job,) when it got its present seats; inf while it waits
    first_started = _Column[Floats]()  # (job,) when it first held seats; inf = never
    lease_end = _Column[Floats]()  # (job,) end of its lease; inf = none, or none is agreed
    longest_lease = _Column[float]()  # longest lease given now, in seconds; inf = until the job ends
    failures = _Column[Ints]()  # (job,) runs that failed
    debug = _Column[Bools]()  # (job,) submitted as a short job for trying things out
    total = _Column[Floats]()  # (job,) believed steps in all
    # (job, level) step time over that at the best place, at least 1, of a gang in one slot, machine, rack, or more
    slowdown = _Column[Floats]()
    largest_tensor_fraction = _Column[
        Floats
    ]()  # (job,) largest tensor's part of all parameters of the model; nan = model not known
    fair_share_service = _Column[
        Floats
    ]()  # (job,) accelerator-seconds: its part, by weight, of its tenant's share over its life
    # (hour, tenant, 3) accelerator-seconds used, deserved, and its quota in whole accelerators; up to 168 hours, the
    # present one last
    tenant_hourly_usage = _Column[Floats]()
    # (tenant,) accelerator-seconds used by its own jobs; their weight halves in every `usage_half_life_s` of the policy
    tenant_usage = _Column[Floats]()
    app = _Column[Ints]()  # (job,) rows of `apps`
    apps = _Column[Apps]()  # sets of jobs with one goal; a job that names none is an app of its own
    past_service = _Column[Floats]()  # (sample,) accelerator-seconds of every job that has finished
    # (job, 3) believed learning curve: start, floor and rate of `model.curves`; the median where none is declared
    loss_curve = _Column[Floats]()
    losses = _Column[Floats]()  # (job, loss, 2) steps, ascending, and loss, as reported so far; padded with nan
    demand = _Column[Floats]()  # (job, 2) CPUs and GiB of host memory of the whole gang; 0 = none
    host_capacity = _Column[Floats]()  # (2,) CPUs and GiB of memory of the machines that are up; inf = not declared
    holder = _Column[Ints]()  # (device,) job that holds the seat (the first of a pair), -1 = free, -2 = lost
    topology = _Column[Topology]()  # where the accelerators are

    def __post_init__(self) -> None:
        sums = {name: rounded(column, bits=SEEN_BITS) for name, column in self.columns.items() if name in ROUNDED}
        object.__setattr__(self, "columns", {**self.columns, **sums})

    def __getattr__(self, name: str) -> Any:
        if text := _no_such(self, name):
            raise AttributeError(text, name=name, obj=self)
        return object.__getattribute__(self, name)  # raises the error of the first attempt again

    def rng(self) -> np.random.Generator:
        """Return this ask's generator: the same view draws the same numbers."""
        return np.random.default_rng(self.seed)

    def part(self, jobs: Ints, capacity: Floats) -> View:
        """Return the view of some of the jobs, ascending rows, with another capacity (type,); for wrappers.

        Device columns stay whole: a wrapper around policies that answer with grants must split those itself.
        """
        columns = {name: column if name in NOT_BY_JOB else column[jobs] for name, column in self.columns.items()}
        if "capacity" in columns:
            columns["capacity"] = capacity
        memory = {
            name: value[jobs] if np.ndim(value) and len(value) == self.jobs else value
            for name, value in self.memory.items()
        }
        return replace(self, jobs=len(jobs), columns=columns, memory=memory, whole=self.widest())

    def widest(self) -> Floats:
        """Return (type,) accelerators that one gang can hold: in a part of the cluster, those of the whole cluster."""
        return self.capacity if self.whole is None else self.whole


COLUMNS = frozenset(name for name, value in vars(View).items() if isinstance(value, _Column))
NOT_BY_JOB = frozenset(  # others: a row per job
    {
        "apps",
        "capacity",
        "holder",
        "tenant_hourly_usage",
        "longest_lease",
        "packed_spread_throughput",
        "packed_throughput",
        "past_service",
        "price",
        "host_capacity",
        "tenant_usage",
        "tenants",
        "topology",
    }
)
ROUNDED = frozenset(  # columns of sums
    {
        "fair_share_service",
        "tenant_hourly_usage",
        "tenant_usage",
        "equal_share_throughput",
        "past_service",
        "held_time_by_type",
        "remaining",
        "run_time",
        "service",
        "service_at_last_ask",
        "waiting_time",
    }
)
