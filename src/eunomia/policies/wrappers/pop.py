"""POP: the problem is partitioned into k similar small ones, each solved by itself.

    jobs split into k parts of equal demand, C / k accelerators for each;  X = the inner policy's answers together

C capacity (type,), X share of time (job, type), k the parameter `parts`.

An approximation: fast for policies whose cost grows faster than the number of jobs, and no worse than the part with the
worst mixture of jobs. A job stays in its part; a new one joins the part with the least demand.

Example (examples/two_jobs.json). With two texts and two images, two v100s and four k80s, all can reach the level 7/6
that one of each reaches on half of that. The draw puts the texts together in one part and the images in the other.
Each text has half of a v100 and does 3/2 steps/s, a level of (3/2) / (4/3) = 9/8; each image does 5/2, a level of 5/4.
The worst-off loses 1/28 of its level.

Reference: D. Narayanan et al., "Solving Large-Scale Granular Resource Allocation Problems Efficiently with POP", SOSP
2021, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Shares
from eunomia.model.arrays import Array, Ints
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.view import View
from eunomia.policies.shares.share_inputs import FAIR_AT_ONCE
from eunomia.policies.wrappers.inner import ask, inherit, inner_policy, join


@dataclass(frozen=True)
class Pop:
    """Divide and conquer: `parts` independent problems under the policy `inner`.

    Use it when the inner policy takes too long for the number of jobs. The built-in share policies without space
    sharing are fast enough unpartitioned.

    The worst-off is a job in the part with the worst mixture, without compensation. A wide gang gets at most the
    accelerators of its part, C / (k z) of its time on a type: keep `parts` below capacity / widest gang.
    """

    inner: str = "max_min_fairness"
    parts: Annotated[int, Rule(least=1, what="at least 1: the problem is cut into so many parts")] = 4

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="pop",
        answer_type="shares",
        objective="the inner policy's, approximately",
        technique="random partition into equal sub-problems",
        paper="Narayanan et al., POP, SOSP 2021",
        taxonomy=FAIR_AT_ONCE,
        needs=frozenset({"scale_factor", "capacity"}),
        memory_columns={"part": -1.0},
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        inherit(self, inner_policy(self.inner, "shares"))

    def decide(self, view: View) -> Shares:
        """Return the parts' answers together."""
        inner, part = inner_policy(self.inner, "shares"), self._parts(view)
        capacity = view.capacity / self.parts
        answers = []
        for k in range(self.parts):
            jobs = np.flatnonzero(part == k)
            if len(jobs):
                answers.append((jobs, ask(inner, view.part(jobs, capacity), Shares)))
        memory: dict[str, Array] = {"part": part.astype(float)}
        return join(view, answers, memory, inner.info.memory_columns)

    def _parts(self, view: View) -> Ints:
        """Return the part of each job, (job,)."""
        part = view.memory["part"].astype(np.int64)
        part[part >= self.parts] = -1
        demand = np.bincount(part[part >= 0], weights=view.scale_factor[part >= 0], minlength=self.parts)
        for m in view.rng().permutation(np.flatnonzero(part < 0)).tolist():
            part[m] = int(np.argmin(demand))
            demand[part[m]] += view.scale_factor[m]
        return part
