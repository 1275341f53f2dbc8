"""First in, first out.

    order jobs by submission; a gang that does not fit
      backfill = none    stops the queue until it fits (head of line)
      backfill = skip    is passed over
      backfill = easy    gets a reservation: the earliest time at which enough accelerators are expected to be free;
                         a later job runs now only if it ends by then, or uses accelerators that are spare then

A job runs on the type with the largest T[m, j] that has z[m] accelerators left; T throughput (job, type), z scale
factor (job,). Agnostic: on a type that is drawn once by capacity.

Example (examples/two_jobs.json). Text was submitted first and gets its fastest type, the v100. Image gets a k80,
although the v100 is four times as fast for image and only twice for text.

Reference for easy: D. A. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; D. G. Feitelson and A. M. Weil,
"Utilization and Predictability in Scheduling the IBM SP2 with Backfilling", IPPS 1998, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from eunomia.model.answers import Misfit
from eunomia.model.policy import ENDLESS, PolicyInfo
from eunomia.model.rank import Rank
from eunomia.model.taxonomy import Taxonomy
from eunomia.policies.order.ranked_order import RankedOrder
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types

_MISFIT: dict[str, Misfit] = {"none": "stop", "skip": "skip", "easy": "reserve"}


@dataclass(frozen=True)
class Fifo(RankedOrder):
    """Jobs run in submission order, without preemption.

    Use it when jobs should run undisturbed in submission order. It needs no durations (only reservations of `easy` are
    as exact as they are), stops no job, and has nothing to tune.

    The worst-off is a short job behind long ones: it waits for all jobs submitted before it. With `backfill=skip` it is
    the wide gang, which may be passed over while narrower ones are submitted; `easy` reserves seats for it.
    """

    backfill: Literal["none", "skip", "easy"] = "none"
    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="fifo",
        answer_type="order",
        objective="serve in order of arrival",
        technique="queue, with or without backfilling",
        paper="folklore; EASY: Lifka, JSSPP 1995",
        taxonomy=Taxonomy(objectives=(), heterogeneity="partial"),
        needs=NEEDS,
        memory_columns=REMEMBERS,
        mechanism=ENDLESS,
        backfills=False,
    )

    @property
    def rank(self) -> Rank:
        """The submission."""
        return Rank("submission")

    @property
    def misfit(self) -> Misfit:
        """As `backfill` says."""
        return _MISFIT[self.backfill]
