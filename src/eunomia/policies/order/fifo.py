"""First in, first out.

    order jobs by submission; a gang that does not fit
      backfill = none    stops the queue until it fits (head of line)
      backfill = skip    is passed over
      backfill = easy    gets the earliest time at which enough accelerators are believed free; a later job runs now
                         only if it ends by then, or uses accelerators that are spare even then

A job runs on the type with the largest T[m, j] that has z[m] accelerators left; T throughput (job, type), z scale
factor (job,). Agnostic: on a type that is drawn once by capacity.

Example (examples/two_jobs.json). Text came first and takes its fastest type, the v100. Image gets what is left, a k80,
though the v100 would have made it four times as fast, and text only twice.

Reference for easy: D. A. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; D. G. Feitelson and A. M. Weil,
"Utilization and Predictability in Scheduling the IBM SP2 with Backfilling", IPPS 1998, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eunomia.model.answers import Misfit, Order
from eunomia.model.policy import ENDLESS, PolicyInfo, promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types, candidates, check_types

_MISFIT: dict[str, Misfit] = {"none": "stop", "skip": "skip", "easy": "reserve"}


@dataclass(frozen=True)
class Fifo:
    """Who came first runs first, to its end.

    Use it when jobs should run undisturbed in the order in which they came. It needs no durations (`easy` keeps its
    promises as far as they are known), stops nobody, and there is nothing to tune.

    The worst-off is a short job behind long ones: it waits for all that came before it, however long they are. With
    `backfill=skip` it is the wide gang, which may be passed over for as long as narrower ones keep coming; `easy`
    keeps seats for it.
    """

    backfill: Literal["none", "skip", "easy"] = "none"
    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="fifo",
        door="order",
        objective="serve in order of arrival",
        technique="queue, with or without backfilling",
        paper="folklore; EASY: Lifka, JSSPP 1995",
        taxonomy=Taxonomy(objectives=(), heterogeneity="partial"),
        needs=NEEDS,
        remembers=REMEMBERS,
        mechanism=ENDLESS,
        backfills=False,
    )

    def __post_init__(self) -> None:
        check_types(self.types)
        if self.backfill not in _MISFIT:
            raise ValueError(f"backfill is {self.backfill!r}; it is 'none', 'skip' or 'easy'")
        promises(self, complete=self.types == "fastest", separable=self.backfill == "skip")

    def decide(self, view: View) -> Order:
        """Return all jobs by submission; who runs keeps its place in the line, should its lease end."""
        rows, memory = candidates(view, np.arange(view.jobs), self.types)
        return Order(rows, _MISFIT[self.backfill], memory=memory)
