"""Isolation: each job has an equal part of the cluster to itself, the baseline of fairness measures.

    X[m,j] = C[j] / (n z_m),   a row whose sum exceeds 1 scaled down to 1

X share of time (job, type), n jobs, z scale factor (job,), C capacity (type,).

Example (examples/two_jobs.json). Half of one v100 and half of two k80s are 1/2 and 1 of a job's time; the sum exceeds
1, so the row is scaled down to 1/3 and 2/3, the same for both.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 4.2 (the isolated allocation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.equal_share import equal_part
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares.share_inputs import NEEDS, speeds


@dataclass(frozen=True, slots=True)
class Isolated:
    """Every job gets an equal part of every type, and no spare time.

    Use it when parts must not depend on other jobs. Fair policies are compared with it: where a job is worse off than
    here, its user gains from a cluster of its own.

    The worst-off job gets the same part as all others. Time on types that cannot run it is lost, as is the unused time
    of others.
    """

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="isolated",
        answer_type="shares",
        objective="an equal part of every type for each job",
        technique="closed form",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.2",
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
        """Return X (job, type); time on a type that cannot run a job stays unused."""
        return Shares(
            np.where(speeds(view, "aware") > 0, equal_part(view.scale_factor, view.capacity), 0.0), fill=False
        )
