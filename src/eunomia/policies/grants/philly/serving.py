"""Who of the waiting jobs gets what is free: those within their quotas first, whatever that takes."""

from __future__ import annotations

from dataclasses import dataclass

from eunomia.model.arrays import Ints
from eunomia.policies.grants.philly.deciding import Deciding
from eunomia.policies.grants.philly.turns import Turns


@dataclass(frozen=True, slots=True)
class Serving:
    """One decision's line. `relax_after` tries make a level; `preempt_above` is a part of the cluster."""

    deciding: Deciding
    turns: Turns
    relax_after: int
    preempt_above: float

    def serve(self, due: Ints) -> None:
        """Seat whom it can of those whose turn it is, ascending: first who is within its quota, then who may borrow."""
        clusters, levels = self.deciding.clusters, self.turns.levels(self.relax_after)
        within = clusters.all_within()[due]
        for m in due[within].tolist():
            level = int(levels[m])
            if clusters.within(m):
                self._within_quota(m, level)
            elif clusters.borrows[clusters.of[m]]:
                self.deciding.place(m, level, float(self.turns.ticket[m]))
        borrowing = due[~within]
        borrowing = borrowing[clusters.borrows[clusters.of[borrowing]]]
        if len(borrowing):
            self.deciding.place_all(borrowing, levels[borrowing], self.turns.ticket[borrowing])

    def _within_quota(self, job: int, level: int) -> None:
        """Seat a job within its quota, by all means; or let it hold what it could use."""
        deciding = self.deciding
        if deciding.place(job, level, float(self.turns.ticket[job])) or deciding.defragment(job):
            return
        if not deciding.preempt(job, level, self.preempt_above) and deciding.clusters.size[job] > 1:
            deciding.hold(job, level, self.turns.take_ticket(job))
