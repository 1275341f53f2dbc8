"""Time in proportion to weight, over all types alike.

    X[m,j] = min(1, α w_m) · C[j] / Σ C,   α the largest number with Σ_m z_m X[m,j] ≤ C[j]

X share of time (job, type), w priority weight (job,), z scale factor (job,), C capacity (type,). A job's time is split
over types in proportion to capacity, so that every job gets the same mixture. Throughputs are ignored; time on a type
that cannot run a job stays unused.

Example (examples/two_jobs.json). One v100 for two jobs of weights 3 and 1: α (3 + 1) = 1, so they get 3/4 and 1/4 of
it.

Reference: C. A. Waldspurger and W. E. Weihl, "Lottery Scheduling: Flexible Proportional-Share Resource Management",
OSDI 1994, section 2; the split by capacity is the normaliser of D. Narayanan et al., OSDI 2020, section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares.share_inputs import NEEDS, equal_share, speeds


def proportional_shares(weight: Floats, size: Floats, capacity: float) -> Floats:
    """Return min(1, α w) (row,) with Σ size · share = capacity, or all 1 if that fits."""
    if size.sum() <= capacity:
        return np.ones(len(size))
    first = np.argsort(-weight, kind="stable")  # the heaviest reach 1 first
    w, z = weight[first], size[first]
    full = np.concatenate(([0.0], np.cumsum(z)))[:-1]  # accelerators of the preceding rows, all at 1
    rest = np.cumsum((w * z)[::-1])[::-1]
    alpha = (capacity - full) / rest
    place = int(np.argmax(alpha * w < 1.0))  # the first that does not reach 1
    return np.asarray(np.minimum(1.0, alpha[place] * weight))


@dataclass(frozen=True, slots=True)
class Proportional:
    """Twice the weight gives twice the time.

    Use it when weights are agreed, and throughputs are not known or should not matter.

    The worst-off is a job that some types cannot run: it loses its time there. All others get time by weight, however
    little they gain by it.
    """

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="proportional",
        answer_type="shares",
        objective="time in proportion to weight",
        technique="closed form",
        paper="Waldspurger and Weihl, OSDI 1994",
        taxonomy=Taxonomy(
            objectives=("fairness",),
            fairness=("job", "instant"),
            sharing=("temporal",),
            preemptive=True,
        ),
        needs=NEEDS,
        mechanism=ROUNDS,
    )

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        share = proportional_shares(view.weight, view.scale_factor.astype(float), float(view.capacity.sum()))
        return Shares(np.where(speeds(view, "aware") > 0, share[:, None] * equal_share(view), 0.0))
