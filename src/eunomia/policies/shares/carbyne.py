"""Carbyne: altruism. A job claims only the share that it needs to end as promised; the rest goes to others.

    fair share     F[m,j] = min(1, α w_m) · C[j] / Σ C                            as in `proportional`
    promise        D[m] = t + r_m / Σ_j T[m,j] F[m,j]                             at the first ask with the job
    claim          n'[m] = the least fraction of F[m] with  r_m ≤ n'[m] Σ_j T[m,j] F[m,j] (D[m] - t),  1 if late
    share          X[m] = F[m] (1 - altruism · (1 - n'[m]))
    leftover       shortest remaining time first: on the fastest types with capacity left, up to all of a job's time

t now, r remaining steps (job,), T throughput (job, type), w weight (job,), C capacity (type,), X share of time (job,
type). Until another job is submitted fair shares only grow, so claims fit and every promise is kept, if estimates are
exact and shares are received as answered. A new job reduces fair shares: older promises may be broken then.

The paper postpones some tasks of a job; a gang is one task, postponed in part: it claims a smaller share of time. Fair
shares are of accelerators, the paper's of several resources. The paper's last step, packing, is not needed here:
leftover time goes to any job that can use it.

Example (examples/two_jobs.json). Three accelerators are enough for all of both jobs' time, a third of it on the v100:
text runs at (2 + 2 · 1) / 3 = 4/3 steps/s, image at (4 + 2 · 1) / 3 = 2. This is the promise, so neither job is ahead
of it: both claim all of their shares.

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
from eunomia.policies.shares.share_inputs import NEEDS, divide, speeds

NOT_YET = -1.0


def claims(remaining: Floats, rate: Floats, left: Floats) -> Floats:
    """Return the fraction of its fair rate (job,) that each job needs for `remaining` steps in the time left."""
    reachable = rate * left
    fraction = np.divide(remaining, reachable, out=np.ones(len(rate)), where=reachable > 0)
    return np.asarray(np.clip(fraction, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Carbyne:
    """Every job is promised its completion time under an equal part; shares not needed for that go to short jobs.

    `altruism` is the fraction of its unneeded share that a job gives away, from 0 (nothing: `proportional`) to 1.

    Use it when jobs may not be worse off than with an equal part of the cluster, and completion times should be as low
    as that allows. Remaining work must be known.

    The worst-off is a long job: it gives its surplus to shorter ones, and ends no earlier than promised. When many jobs
    are submitted after it, the promise may be broken.
    """

    altruism: float = 1.0

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="carbyne",
        answer_type="shares",
        objective="low completion times, no job later than with an equal part",
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
        memory_columns={"promise": NOT_YET},
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        if not 0 <= self.altruism <= 1:
            raise ValueError(f"altruism is {self.altruism}; it is between 0 (proportional shares) and 1")

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        T, F = speeds(view, "aware"), Proportional().decide(view).x
        rate = (T * F).sum(axis=1)
        new = (view.memory["promise"] == NOT_YET) & (rate > 0)  # a job that cannot run now gets its promise when it can
        promise = np.where(new, view.at + divide(view.remaining, rate), view.memory["promise"])
        if self.altruism == 0:
            return Shares(F, memory={"promise": promise})
        claim = claims(view.remaining, rate, promise - view.at)
        X = F * (1.0 - self.altruism * (1.0 - claim))[:, None]
        return Shares(_with_leftover(view, T, X), memory={"promise": promise})


def _with_leftover(view: View, T: Floats, X: Floats) -> Floats:
    """Return X (job, type) with spare capacity and time given to jobs by remaining time, shortest first."""
    X, size = X.copy(), view.scale_factor
    spare = np.maximum(view.capacity - dot(size, X), 0.0)
    time = np.maximum(1.0 - X.sum(axis=1), 0.0)
    best = T.max(axis=1, initial=0.0)
    soonest = rising(np.where(best > 0, divide(view.remaining, best), np.inf))
    for m in soonest[time[soonest] > 0].tolist():
        for j in np.argsort(-T[m], kind="stable").tolist():
            more = min(time[m], spare[j] / size[m]) if T[m, j] > 0 else 0.0
            X[m, j] += more
            time[m] -= more
            spare[j] -= more * size[m]
        if not spare.any():
            break
    return np.minimum(X, 1.0)
