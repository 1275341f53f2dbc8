"""Pairs on one accelerator by a trained correction of the believed rates, for the most total throughput.

    kept'[a, j, b] = kept[a, j, b] + f(x[a, j, b])
    maximise_X  Σ_m v_m Σ_j ( T[m,j] X[m,j] + Σ_n kept'[m,j,n] T[m,j] X[(m,n),j] ),   v_m = w_m z_m / max_j T[m,j]
    subject to  Σ over rows with m of X ≤ 1 for each job m,   Σ_rows z X ≤ C[j] for each type j,   X ≥ 0

X share of time (row, type), a row being a job or two; T believed throughput alone (job, type), z scale factor, w weight
(job,), C capacity (type,). kept is the believed rate of a beside b over that of a alone, by kinds a, b of jobs, x what
is believed of the pair and of both jobs' other pairs, and f a perceptron that has learnt from tables of measured pairs
how such beliefs err. The program is that of `max_throughput?space_sharing=true`.

Example (examples/two_jobs.json). The shipped model corrects nothing. Beside each other on the v100 text keeps 1.6 / 2
and image 3 / 4 of its best speed, together 1.55. Image alone there and text on a k80 keep 1 + 1/2, so they share.

Reference: our own; D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI 2020, sections 3.1 and 6, for the program and the estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eunomia.learning.pairs.features import FEATURES, corrected
from eunomia.learning.perceptron import Perceptron
from eunomia.learning.shipped import load_model, tell_training
from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares import pair_programs
from eunomia.policies.shares.options import PAIRS
from eunomia.policies.shares.share_inputs import NEEDS, divide, speeds

ARCHITECTURE = {"correction": [len(FEATURES), 16, 16, 1]}


@dataclass(frozen=True)
class LearnedPairs:
    """Jobs share accelerators in the pairs that a trained model expects to keep the most of their speeds.

    `model` is a file of `eunomia train pairs`; without it the shipped one plays.

    Use it when throughputs of pairs are estimates from few measured ones, and completed work is what counts.

    The worst-off job gets no share while others do more on the same accelerators. Give it a weight.
    """

    model: str = ""

    network: ClassVar[Perceptron]  # that of the model, set for each instance
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="learned_pairs",
        answer_type="shares",
        objective="most total throughput, two jobs to an accelerator where that pays",
        technique="learnt: corrected rates of pairs",
        paper="",
        taxonomy=Taxonomy(
            objectives=("utilisation",), heterogeneity="yes", sharing=("temporal", "spatial"), preemptive=True
        ),
        needs=NEEDS | PAIRS,
        mechanism=ROUNDS,
        fallback="max_throughput",
    )

    def __post_init__(self) -> None:
        model = load_model(self.model, "pairs")
        model.check_features(FEATURES)
        object.__setattr__(self, "network", Perceptron.of(model, "correction"))
        tell_training(self, model)

    def decide(self, view: View) -> Shares:
        """Return rows with partners."""
        T = speeds(view, "aware")
        columns = {**view.columns, "packed_throughput": self.rates(view, T)}
        v = divide(view.weight * view.scale_factor, T.max(axis=1, initial=0.0))
        return pair_programs.best_total(replace(view, columns=columns), T, v)

    def rates(self, view: View, T: Floats) -> Floats:
        """Return the corrected steps/s of jobs beside each other, (class, class, type); T (job, type) of jobs alone."""
        alone = np.zeros((len(view.packed_throughput), len(view.types)))  # 0 of classes without a job
        alone[view.job_class] = T
        pair = np.where(alone > 0, alone[:, None], 0.0)
        kept = np.minimum(divide(view.packed_throughput, pair), 1.0)
        return np.asarray(corrected(self.network, kept.swapaxes(1, 2)).swapaxes(1, 2) * pair)
