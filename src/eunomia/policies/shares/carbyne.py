"""Carbyne: altruism. A job claims only what it needs now to end when it was promised to; the rest goes to others.

    fair share     F[m,j] = min(1, α w_m) · C[j] / Σ C                            as in `proportional`
    promise        D[m] = t + r_m / Σ_j T[m,j] F[m,j]                             when the job is first seen
    claim          n'[m] = the least part of F[m] with  r_m ≤ n'[m] Σ_j T[m,j] F[m,j] (D[m] - t),   all of it if late
    keeps          X[m] = F[m] (1 - altruism · (1 - n'[m]))
    leftover       shortest remaining time first: on the fastest types that are left, up to all of a job's time

t now, r remaining steps (job,), T throughput (job, type), w weight (job,), C capacity (type,), X share of time
(job, type). While nobody comes fair shares only grow, so that claims fit and every promise is kept, if estimates are
exact and shares are received as answered. Who comes later makes fair shares smaller: older promises may be broken then.

The paper postpones the tasks of a job that can be postponed; a gang has one task, which is postponed in part: it claims
a smaller share of time. Fair shares are of accelerators, the paper's of several resources. Packing, the paper's last
step, has nothing to do here: leftover time is given to whoever can use it.

Example (examples/two_jobs.json). Three accelerators are enough for all of both jobs' time, a third of it on the v100:
text runs at (2 + 2 · 1) / 3 = 4/3 steps/s, image at (4 + 2 · 1) / 3 = 2. That is promised now, so that neither is
ahead: both claim all of their shares.

Reference: R. Grandl et al., "Altruistic Scheduling in Multi-Resource Clusters", OSDI 2016, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.products import dot
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares.proportional import Proportional
from eunomia.policies.shares.share_inputs import NEEDS, per, speeds

NOT_YET = -1.0


def claims(remaining: Floats, rate: Floats, left: Floats) -> Floats:
    """Return which part of its fair rate (job,) each job needs to do `remaining` steps in the time left, 0 to 1."""
    can = rate * left
    part = np.divide(remaining, can, out=np.ones(len(rate)), where=can > 0)
    return np.asarray(np.clip(part, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Carbyne:
    """Everybody is promised the end that an equal part would bring; what is not needed for that helps short jobs.

    `altruism` is how much of what it does not need a job gives away, from 0 (nothing: `proportional`) to 1.

    Use it when jobs may not be worse off than with an equal part of the cluster, and completion times should be as low
    as that allows. It must be known how much work is left.

    The worst-off is a long job: it gives what it is ahead to shorter ones, and ends no earlier than promised. Where
    many come after it, the promise may be broken.
    """

    altruism: float = 1.0

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="carbyne",
        door="shares",
        objective="low completion times, nobody later than with an equal part",
        technique="claims by promised ends, leftover time to the shortest",
        paper="Grandl et al., Carbyne, OSDI 2016",
        taxonomy=Taxonomy(
            objectives=("fairness", "jct"),
            fairness=("job", "long-term"),
            heterogeneity="partial",
            sharing=("temporal",),
            preemptive=True,
        ),
        needs=NEEDS | {"remaining"},
        oracle=True,
        remembers={"promise": NOT_YET},
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        if not 0 <= self.altruism <= 1:
            raise ValueError(f"altruism is {self.altruism}; it is between 0 (proportional shares) and 1")

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        T, F = speeds(view, "aware"), Proportional().decide(view).x
        rate = (T * F).sum(axis=1)
        new = (view.memory["promise"] == NOT_YET) & (rate > 0)  # who cannot run now is promised an end when it can
        promise = np.where(new, view.at + per(view.remaining, rate), view.memory["promise"])
        if self.altruism == 0:
            return Shares(F, memory={"promise": promise})
        part = claims(view.remaining, rate, promise - view.at)
        X = F * (1.0 - self.altruism * (1.0 - part))[:, None]
        return Shares(_with_leftover(view, T, X), memory={"promise": promise})


def _with_leftover(view: View, T: Floats, X: Floats) -> Floats:
    """Give what is left of each type and of each job's time to the jobs that would be done first."""
    X, size = X.copy(), view.scale_factor
    spare = np.maximum(view.capacity - dot(size, X), 0.0)
    time = np.maximum(1.0 - X.sum(axis=1), 0.0)
    best = T.max(axis=1, initial=0.0)
    soonest = rising(np.where(best > 0, per(view.remaining, best), np.inf))
    for m in soonest[time[soonest] > 0].tolist():
        for j in np.argsort(-T[m], kind="stable").tolist():
            more = min(time[m], spare[j] / size[m]) if T[m, j] > 0 else 0.0
            X[m, j] += more
            time[m] -= more
            spare[j] -= more * size[m]
        if not spare.any():
            break
    return np.minimum(X, 1.0)
