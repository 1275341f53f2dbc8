"""All that a policy may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.tenants import Tenants
from eunomia.model.topology import Topology


class UndeclaredColumn(AttributeError):
    """A policy read a column that its `needs` do not list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is believed at one instant. Axes: job m in order of (submission, row), type j in `types` order.

    Only the columns that the policy `needs` are filled. `seed` (run seed, number of the ask) is the only source of
    random draws; `memory` holds what the last answer asked to keep, with job columns moved to today's rows.
    """

    at: float  # seconds since the run began
    types: tuple[str, ...]
    jobs: int  # rows of the job axis
    columns: Mapping[str, Any]
    seed: tuple[int, int] = (0, 0)
    memory: Mapping[str, Array] = field(default_factory=dict)
    whole: Floats | None = None  # (type,) capacity of the cluster, where this is a part of its view

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
    def holder(self) -> Ints:
        """(device,) job that holds the seat (the first of a pair), -1 = free, -2 = lost."""
        return self._column("holder")  # type: ignore[no-any-return]

    @property
    def topology(self) -> Topology:
        """Where the accelerators are."""
        return self._column("topology")  # type: ignore[no-any-return]


COLUMNS = frozenset(name for name, value in vars(View).items() if isinstance(value, property))
NOT_BY_JOB = frozenset({"capacity", "paired", "price", "tenants", "topology", "holder"})  # others: a row per job
