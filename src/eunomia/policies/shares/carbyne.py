"""Carbyne: altruism. A job claims only what it needs to end no later than with its fair share; others get the rest.

    fair share     F[m,j] = min(1, α w_m) · C[j] / Σ C                            as in `proportional`
    fair rest      V[m]   the steps that would be left if m had always had F: r_m at its first ask, and from ask to ask
                          less the time between them · Σ_j T[m,j] F[m,j]
    promise        D[m] = t + V[m] / Σ_j T[m,j] F[m,j]                            anew at each ask, by the present share
    claim          n'[m] = the least fraction of F[m] with  r_m ≤ n'[m] Σ_j T[m,j] F[m,j] (D[m] - t) = n'[m] V[m],  at
                          most 1
    share          X[m] = F[m] (1 - altruism · (1 - n'[m]))
    leftover       shortest remaining time first: on the fastest types with capacity left, up to all of a job's time

t now, r remaining steps (job,), T throughput (job, type), w weight (job,), C capacity (type,), X share of time (job,
type). A job is never behind its fair rest, whatever jobs are submitted, if estimates are exact and shares are received
as answered: at n'[m] of its rate both end together. It is ahead of it, and has something to give, after it got leftover
time. Without altruism the shares are fair ones with leftovers.

In the paper a job has something to give because its tasks wait for each other: of a share it postpones the tasks that
need not run yet. A gang is one task that always can run, so with a promise from r instead of V, as the paper's jobs
make it, no job could give anything. Fair shares are of accelerators, the paper's of several resources. The paper's last
step, packing, is not needed here: leftover time goes to any job that can use it.

Example (examples/two_jobs.json). Three accelerators are enough for all of both jobs' time, a third of it on the v100:
text runs at (2 + 2 · 1) / 3 = 4/3 steps/s, image at (4 + 2 · 1) / 3 = 2. Neither job is ahead of its fair share: both
claim all of it, and no time is left over.

Reference: R. Grandl et al., "Altruistic Scheduling in Multi-Resource Clusters", OSDI 2016, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.products import dot
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tolerance import is_at_least
from eunomia.model.view import View
from eunomia.policies.shares.proportional import Proportional
from eunomia.policies.shares.share_inputs import NEEDS, divide, speeds

NOT_YET = -1.0


def claims(remaining: Floats, fair: Floats) -> Floats:
    """Return the fraction of its fair share, (job,), with which each job ends when `fair` steps at all of it would."""
    ahead = ~is_at_least(remaining, fair)
    return np.divide(remaining, fair, out=np.ones(len(fair)), where=ahead)


@dataclass(frozen=True, slots=True)
class Carbyne:
    """No job ends later than with an equal part of the cluster; shares not needed for that go to short jobs.

    `altruism` is the fraction of its unneeded share that a job gives away, from 0 (nothing: equal parts, and time that
    is left over) to 1.

    Use it when jobs may not be worse off than with an equal part of the cluster, and completion times should be as low
    as that allows. Remaining work must be known.

    The worst-off is a long job: what it got beyond its equal part it gives to shorter ones, and ends no earlier than
    with that part.
    """

    altruism: Annotated[float, Rule(least=0.0, most=1.0, what="between 0 (fair shares with leftovers) and 1")] = 1.0

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
        memory_columns={"fair_rest": NOT_YET, "fair_rate": 0.0, "asked_at": 0.0},
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        T, F = speeds(view, "aware"), Proportional().decide(view).x
        rate, known = (T * F).sum(axis=1), view.memory["fair_rest"]
        fair = np.maximum(known - view.memory["fair_rate"] * (view.at - view.memory["asked_at"]), 0.0)
        # A job that cannot run now has a fair rest from when it can.
        fair = np.where(known == NOT_YET, np.where(rate > 0, view.remaining, NOT_YET), fair)
        X = F * (1.0 - self.altruism * (1.0 - claims(view.remaining, fair)))[:, None]
        memory = {"fair_rest": fair, "fair_rate": rate, "asked_at": np.full(view.jobs, view.at)}
        return Shares(_with_leftover(view, T, X), memory=memory)


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
