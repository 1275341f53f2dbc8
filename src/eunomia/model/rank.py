"""The rank of a job in an order: declared by a policy, once for its answer and for the compiled pass.

A policy of order declares a `Rank` in its own file. `keys` are those of a view, from which
`policies.order.ranked_order` makes the answer; `key_of` is that of one job, with which `core.ranked_pass` makes the
same order without asking. The least key is first, then the earlier submission. This is the only place where a key is
computed and where it says when it changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rounded, rounded_key
from eunomia.model.tolerance import RELATIVE
from eunomia.model.value_equality import PlainValue
from eunomia.model.view import View

Key: TypeAlias = Literal["submission", "scale_factor", "weight", "remaining_time", "remaining_service", "service"]

# What a pass ranks by: nothing that it knows, the place in an order that does not change, or a key.
# Snapshots contain these numbers.
(
    UNKNOWN, BY_PLACE, BY_SUBMISSION, BY_SCALE_FACTOR, BY_REMAINING_TIME, BY_REMAINING_SERVICE, BY_SERVICE_LEVEL,
    BY_WEIGHT,
) = range(8)  # fmt: skip
NUMBER_OF: dict[str, int] = {
    "submission": BY_SUBMISSION,
    "weight": BY_WEIGHT,
    "scale_factor": BY_SCALE_FACTOR,
    "remaining_time": BY_REMAINING_TIME,
    "remaining_service": BY_REMAINING_SERVICE,
    "service": BY_SERVICE_LEVEL,
}


@dataclass(frozen=True, slots=True, eq=False)
class Rank(PlainValue):
    """By what a policy ranks jobs, the least first.

    key: `submission`, `scale_factor`, `weight` (the largest first); `remaining_time`, that of `view.remaining` on the
        fastest type that holds the gang, `remaining_service`, which is that times the scale factor, both rounded to 30
        bits (`model.rounding.rounded`); `service`, the attained accelerator-seconds.
    quantum: of a level of `service`: jobs of one level count as equal.
    ties: equal keys go by submission, or by the place in the last order ("last").
    """

    key: Key
    quantum: float = math.nan
    ties: Literal["submission", "last"] = "submission"

    def __post_init__(self) -> None:
        """Raise ValueError for a key that is none."""
        if self.key not in get_args(Key):
            raise ValueError(f"the key of a rank is one of {', '.join(get_args(Key))}, not {self.key!r}")

    @property
    def by(self) -> int:
        """The constant by which a pass ranks so."""
        return NUMBER_OF[self.key]

    def keys(self, view: View) -> Floats:
        """Return the key of each job, (job,)."""
        match self.key:
            case "submission":
                return np.zeros(view.jobs)
            case "scale_factor":
                return view.scale_factor.astype(float)
            case "weight":
                return rounded(-view.weight)
            case "service":
                return service_levels(view.service, self.quantum)
        usable = np.where(view.scale_factor <= view.capacity[:, None], view.throughput.T, 0.0)  # (type, job)
        best = usable.max(axis=0, initial=0.0)
        left = np.divide(view.remaining, best, out=np.full(view.jobs, np.inf), where=best > 0)
        return rounded(left * view.scale_factor if self.key == "remaining_service" else left)

    def order(self, view: View, keys: Floats) -> Ints:
        """Return the jobs, the least key first, (job,). With `ties` "last" it reads `place` of the memory, -1 = new."""
        if self.ties == "submission":
            return np.argsort(keys, kind="stable")
        place = view.memory["place"]
        return np.lexsort((np.where(place < 0, np.inf, place), keys))

    @property
    def changes(self) -> bool:
        """Whether a running job may fall behind a waiting one without an event.

        Levels of service rise while a job runs; what remains falls, so that job only gets further ahead.
        """
        return self.key == "service"

    def changes_in(self, view: View, order: Ints, running: Bools, keys: Floats) -> float:
        """Return in how many seconds a running job first falls behind a waiting one by its level; inf = never."""
        return first_fall(order, running, keys, view.service, view.scale_factor, self.quantum)


def service_levels(service: Floats, quantum: float) -> Floats:
    """Return the level of each job, (job,), as `level_of`."""
    return np.floor(service / quantum + RELATIVE)


@kernel(allocates=False, forceinline=True)
def level_of(service: float, quantum: float) -> float:
    """Return the level of accelerator-seconds, which are a sum of products: the tolerance is of a level."""
    return float(np.floor(service / quantum + RELATIVE))


@kernel(allocates=False, forceinline=True)
def key_of(by: int, quantum: float, size: int, weight: float, service: float, remaining: float, best: float) -> float:
    """Return the key of a job, as `Rank.keys`.

    It has `remaining` steps to do, at `best` steps/s on its fastest type; what `by` does not read may be 0.
    """
    if by == BY_SERVICE_LEVEL:
        return level_of(service, quantum)
    if by == BY_WEIGHT:
        return rounded_key(-weight)
    if by == BY_SCALE_FACTOR:
        return float(size)
    left = remaining / best if best > 0 else np.inf
    return rounded_key(left * size if by == BY_REMAINING_SERVICE else left)


@kernel(allocates=False, forceinline=True)
def falls_behind_in(job: int, rival: int, service: float, size: int, rival_level: float, quantum: float) -> float:
    """Return in how many seconds a running job of `size` accelerators falls behind a waiting one.

    Within one level the earlier row is first.
    """
    behind = rival_level + (1.0 if rival > job else 0.0)
    return (behind * quantum - service) / size


@kernel(allocates=False)
def first_fall(order: Ints, running: Bools, level: Floats, service: Floats, size: Ints, quantum: float) -> float:
    """Return in how many seconds a running job first falls behind the next waiting one in `order`; inf = never.

    running … size (job,).
    """
    soonest, rival = np.inf, -1
    for place in range(len(order) - 1, -1, -1):
        job = order[place]
        if not running[job]:
            rival = job
        elif rival >= 0:
            soonest = min(soonest, falls_behind_in(job, rival, service[job], size[job], level[rival], quantum))
    return soonest
