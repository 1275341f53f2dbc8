"""How often gangs try and find no place, and why: Philly's scheduler with a tally beside it.

Table 2 counts occurrences, and has more of them than there were jobs: 14,721 among gangs of 5 to 8, of which the trace
holds 3,584 up to 2017-11-14, three quarters of its jobs. So a wait is not one occurrence. A gang that finds no place
collects seats, lets go of them, pauses and tries again (section 2.3); here each try that begins without a place is one.
Its cause is what the policy says at that instant; whether there would be enough accelerators, scattered as they are, is
counted beside it, as that does not hang on quotas.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from eunomia.model.answers import Grants
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import PolicyInfo, also_needs
from eunomia.model.view import View
from eunomia.policies.grants.philly import Philly
from eunomia.policies.grants.philly.philly import FRAGMENTATION

LARGEST = (1, 4, 8)  # accelerators of the first three classes of size; the last has no bound


def size_class(scale_factor: Ints) -> Ints:
    """Return the class of each gang's size: 0 = one accelerator, 1 = 2 to 4, 2 = 5 to 8, 3 = more."""
    return np.asarray(np.searchsorted(LARGEST, scale_factor), dtype=np.int64)


class Tallied:
    """A policy that decides as `inner` does, with a tally of the tries of jobs that were submitted after `after_s`.

    `tries` (class, cause) are those for fair share and for fragmentation, `scattered` (class,) those of both that began
    while as many accelerators were idle as the gang wants.
    """

    info: ClassVar[PolicyInfo] = Philly.info

    def __init__(self, inner: Philly, after_s: float = 0.0):
        object.__setattr__(self, "info", inner.info)  # with what its parameters promise
        also_needs(self, {"submitted"})
        self.tries: Floats = np.zeros((len(LARGEST) + 1, 2))
        self.scattered: Floats = np.zeros(len(LARGEST) + 1)
        self._inner, self._after_s = inner, after_s

    def decide(self, view: View) -> Grants:
        """Return what `inner` decides; note the jobs that began to try, or tried again, and have no place."""
        answer = self._inner.decide(view)
        before, after = view.memory, answer.memory
        begun = (after["holding"] > 0) & ((before["holding"] <= 0) | (after["tries"] > before["tries"]))
        begun &= view.submitted > self._after_s
        if begun.any():
            self._count(view, answer, np.flatnonzero(begun))
        return answer

    def _count(self, view: View, answer: Grants, rows: Ints) -> None:
        wanted = view.scale_factor[rows]
        cause = np.array([answer.why[m] == FRAGMENTATION for m in rows.tolist()], dtype=np.int64)
        np.add.at(self.tries, (size_class(wanted), cause), 1)
        idle = np.isin(view.holder, [-1, *answer.stop.tolist()])
        idle[answer.device] = False
        np.add.at(self.scattered, size_class(wanted), wanted <= idle.sum())
