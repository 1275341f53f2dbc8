"""The base of policies that rank jobs by one key: they declare it, and `decide` follows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.answers import Misfit, Order
from eunomia.model.arrays import Floats
from eunomia.model.policy import PolicyInfo, set_promises
from eunomia.model.promises import Promises
from eunomia.model.rank import Rank
from eunomia.model.view import View
from eunomia.policies.order.type_choice import Types, candidates, types_if_replanned


class RankedOrder(ABC):
    """All jobs by `rank`; each runs on the types that `types` says, and `misfit` says what follows a misfit.

    A subclass is a frozen dataclass with a field `types`. With `ties="last"` the card's memory columns have `place`, -1
    for a new job.
    """

    types: Types
    info: ClassVar[PolicyInfo]

    @property
    @abstractmethod
    def rank(self) -> Rank:
        """By what jobs are ranked."""

    @property
    def misfit(self) -> Misfit:
        """What follows a gang that does not fit: others pass it, the queue stops, or it gets a reservation."""
        return "skip"

    def __post_init__(self) -> None:
        """Promise on the card what follows from the rank, so that the answer need not be asked for.

        A subclass with a `decide` of its own promises no rank. Raises ValueError for a wrong parameter.
        """
        check_fields(self)
        stateless = self.rank.ties == "submission"  # the place in the last order requires that no ask is skipped
        covers = stateless and self.types == "fastest"
        rank = self.rank if covers and type(self).decide is RankedOrder.decide else None
        independent, reserves = covers and self.misfit == "skip", rank is not None and self.misfit == "reserve"
        promises = Promises(covers_all_jobs=covers, jobs_independent=independent, rank=rank, reserves=reserves)
        set_promises(self, promises)

    def decide(self, view: View) -> Order:
        """Return all jobs, the least key first; running jobs keep their place for when their leases end."""
        rank, again_at = self.rank, math.inf
        keys = rank.keys(view)
        order = rank.order(view, keys)
        rows, memory = candidates(view, order, self.types)
        if rank.changes:
            soonest = rank.changes_in(view, order, types_if_replanned(view, rows) >= 0, keys)
            again_at = max(view.at + soonest, math.nextafter(view.at, math.inf)) if soonest < math.inf else math.inf
        if rank.ties == "last":
            place: Floats = np.argsort(order, kind="stable").astype(np.float64)
            memory = {**memory, "place": place}
        return Order(rows, self.misfit, again_at=again_at, memory=memory)
