"""How often gangs try and find no place, and why: Philly's scheduler with a tally beside it.

What Table 2 counts is not said, and it has more occurrences than there were jobs: 14,721 among gangs of 5 to 8, of
which the trace holds 3,584 up to 2017-11-14, three quarters of its jobs. Two readings are counted. A gang that finds no
place collects seats, lets go of them, pauses and tries again (section 2.3): each *try* that begins without a place is
one. Or each wait is one *delay*, as in the notebook beside the trace: from the submission, a failure or a preemption to
the next start, with the cause that it begins with.

The cause is what the policy says at that instant. Whether there would be enough accelerators, scattered as they are, is
counted beside it, as that does not hang on quotas; a try over the quota with enough of them idle is a third cause,
which the paper does not have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Grants
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import PolicyInfo, also_needs
from eunomia.model.view import View
from eunomia.policies.grants.philly import Philly
from eunomia.policies.grants.philly.philly import FRAGMENTATION

LARGEST = (1, 4, 8)  # accelerators of the first three classes of size; the last has no bound
FIGURE_4_ABOVE = 4  # accelerators of the gangs that Figure 4 leaves out


def by_cause() -> Floats:
    """Return a count of 0 for each class of size and cause, (class, cause)."""
    return np.zeros((len(LARGEST) + 1, 2))


def size_class(scale_factor: Ints) -> Ints:
    """Return the class of each gang's size: 0 = one accelerator, 1 = 2 to 4, 2 = 5 to 8, 3 = more."""
    return np.asarray(np.searchsorted(LARGEST, scale_factor), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FirstStart:
    """The first start of a gang."""

    size: int
    machines: int
    waited_s: float


@dataclass(slots=True)
class Tally:
    """Counts of tries and delays by size and cause: fair share, fragmentation; and of starts."""

    tries: Floats = field(default_factory=by_cause)  # (class, cause)
    scattered: Floats = field(default_factory=by_cause)  # (class, cause) of these, while enough accelerators were idle
    delays: Floats = field(default_factory=by_cause)  # (class, cause) tries that are the first of a wait
    delays_scattered: Floats = field(default_factory=by_cause)  # (class, cause)
    starts: int = 0
    overtaking: int = 0  # starts while a job of the same virtual cluster waits that was submitted before
    first_starts: list[FirstStart] = field(default_factory=list)  # of gangs of more than 4


class Tallied:
    """A policy that decides as `inner` does, with a tally of the jobs that were submitted after `after_s`."""

    info: ClassVar[PolicyInfo] = Philly.info

    def __init__(self, inner: Philly, after_s: float = 0.0):
        object.__setattr__(self, "info", inner.info)  # with what its parameters promise
        also_needs(self, {"submitted"})
        self.tally = Tally()
        self._inner, self._after_s = inner, after_s

    def decide(self, view: View) -> Grants:
        """Return what `inner` decides; note the jobs that began to try, or tried again, and those that start."""
        answer = self._inner.decide(view)
        before, after = view.memory, answer.memory
        counted = view.submitted > self._after_s
        begun = (after["holding"] > 0) & ((before["holding"] <= 0) | (after["tries"] > before["tries"])) & counted
        if begun.any():
            self._count(view, answer, np.flatnonzero(begun), after["tries"] == 0)
        started = answer.rows.job[view.on_type[answer.rows.job] < 0]
        if len(started):
            self._count_starts(view, answer, started, counted)
        return answer

    def _count(self, view: View, answer: Grants, rows: Ints, first: Bools) -> None:
        wanted = view.scale_factor[rows]
        cause = np.array([answer.why[m] == FRAGMENTATION for m in rows.tolist()], dtype=np.int64)
        idle = np.isin(view.holder, [-1, *answer.stop.tolist()])
        idle[answer.device] = False
        place, enough, first = (size_class(wanted), cause), wanted <= idle.sum(), first[rows]
        for counts, which in (
            (self.tally.tries, np.ones_like(enough)),
            (self.tally.scattered, enough),
            (self.tally.delays, first),
            (self.tally.delays_scattered, first & enough),
        ):
            np.add.at(counts, place, which)

    def _count_starts(self, view: View, answer: Grants, started: Ints, counted: Bools) -> None:
        waits = view.on_type < 0
        waits[started] = False
        oldest = np.full(len(view.tenants.names), view.jobs)  # (tenant,) row of the job that waits longest
        np.minimum.at(oldest, view.tenant[waits], np.flatnonzero(waits))
        overtakes = oldest[view.tenant[started]] < started
        self.tally.starts += int(counted[started].sum())
        self.tally.overtaking += int((overtakes & counted[started]).sum())
        first = counted & np.isinf(view.first_started) & (view.scale_factor > FIGURE_4_ABOVE)
        for place in np.flatnonzero(first[answer.rows.job] & (view.on_type[answer.rows.job] < 0)).tolist():
            job = int(answer.rows.job[place])
            machines = np.unique(view.topology.node[answer.device[answer.row == place]])
            waited_s = view.at - float(view.submitted[job])
            self.tally.first_starts.append(FirstStart(int(view.scale_factor[job]), len(machines), waited_s))
