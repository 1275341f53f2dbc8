"""Strategy-proof proportional fairness: no user gains by misreporting the throughput of a job.

    X = the allocation of proportional fairness, u_m its effective throughputs
    f_m = Π_{k ≠ m} ( u_k / u_k without m )^(w_k / w_m),    X'[m,j] = f_m X[m,j]

X share of time (job, type), u effective throughput (job,), w priority weight (job,), f fraction kept (job,). Each job
keeps the fraction f_m ≤ 1 of its share that its presence leaves to the others; the rest, its payment, stays idle (spare
time is not given out, or the payment would be returned). n + 1 programs for n jobs. Agnostic: T[m,j] is the mean speed
of the job, on every type that can run it, so that a job can only misreport which types can run it.

Example (examples/two_jobs.json). Proportional fairness gives text 7/6 steps/s and image 7/2. Without image, text would
do 2, without text, image 4. So image keeps (7/6) / 2 = 7/12 of its share and text (7/2) / 4 = 7/8.

References: R. Cole, V. Gkatzelis and G. Goel, "Mechanism Design for Fair Division: Allocating Divisible Items without
Payments", EC 2013 (the partial allocation mechanism); D. Narayanan et al., OSDI 2020, artifact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.answers import Shares
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.policies.shares.options import Types
from eunomia.policies.shares.share_inputs import FAIR_AT_ONCE, NEEDS, clip_shares, speeds
from eunomia.solvers.proportional import strategy_proof


@dataclass(frozen=True, slots=True)
class StrategyProof:
    """Truthful reports are optimal, at the price of idle time.

    Use it when users report the throughputs of their jobs, and might misreport them to gain.

    The worst-off is the job whose presence costs the others the most; it pays the most. With equal weights every job
    keeps at least 1/e, 37 %, of its share under proportional fairness.
    """

    types: Types = "aware"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="strategy_proof",
        answer_type="shares",
        objective="largest product of throughputs under truthful reports",
        technique="partial allocation: one program per job",
        paper="Cole, Gkatzelis and Goel, EC 2013",
        taxonomy=FAIR_AT_ONCE,
        needs=NEEDS,
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def decide(self, view: View) -> Shares:
        """Return X (job, type); `why` gives the fraction of its share that each job keeps."""
        T, z = speeds(view, self.types), view.scale_factor.astype(float)
        x, kept = strategy_proof(T, z, view.capacity, view.weight)
        why = WaitReasons.of(view.jobs, kept < 1, Reason("share_kept", numbers=(1.0,)), kept)
        return Shares(clip_shares(x), fill=False, why=why)
