"""The answer of a policy to an allocation problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from eunomia.allocation.problem import AllocationProblem
from eunomia.model.answers import Answer, Rows
from eunomia.model.arrays import Floats, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.products import row_dots
from eunomia.model.speeds import ESTIMATED, USED
from eunomia.model.wait_reason import Reason


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """One decision of a policy about one problem. Job rows are those of the problem."""

    policy: str  # with its parameters: fifo?backfill=skip
    problem: AllocationProblem
    answer: Answer
    rows: Rows | None  # candidates of `share`; None where `share` is (job, type)
    share: Floats  # (job, type) shares of time, or (row,) with `rows`
    seconds: float  # that the policy took
    compile_seconds: float = 0.0  # before that, to compile or load its code

    @property
    def certificate(self) -> Certificate | None:
        """Objective and bound of the answer; None for a policy that optimises nothing."""
        return self.answer.certificate

    @property
    def status(self) -> str:
        """optimal (gap within the tolerance), feasible (a larger gap), or decided (the policy optimises nothing)."""
        if self.certificate is None:
            return "decided"
        return "optimal" if self.certificate.gap <= self.certificate.tolerance else "feasible"

    @cached_property
    def x(self) -> Floats:
        """(job, type) share of time of each job on each type, alone or packed with a partner."""
        if self.rows is None:
            return self.share
        x = np.zeros(self.problem.throughput.shape)
        for job, _, at in self._sides():
            np.add.at(x, (job, self.rows.type[at]), self.share[at])
        return x

    @cached_property
    def effective_throughput(self) -> Floats:
        """(job,) steps/s averaged over the allocation."""
        if self.rows is None:
            return np.asarray(row_dots(self.problem.placed_throughput, self.share))
        speed = np.zeros(self.problem.jobs)
        for job, partner, at in self._sides():
            np.add.at(speed, job, self.share[at] * self._rate(job, partner, at))
        return speed

    def why(self) -> list[str]:
        """Return for each job what limits its share, (job,); "" where the policy gives no reason."""
        reasons = [""] * self.problem.jobs
        if self.certificate is not None:
            reasons = _reasons(self.certificate, self.problem)
        for job, reason in {**self.answer.refuse, **self.answer.why}.items():
            reasons[job] = str(Reason.of(reason))
        return reasons

    def as_dict(self) -> dict[str, Any]:
        """Return what `eunomia solve --json` prints. Unknown values are None, never nan."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in self.named.items()}

    @property
    def named(self) -> dict[str, Any]:
        """The same with the numbers of all jobs as arrays."""
        proof, problem = self.certificate, self.problem
        return {
            "status": self.status,
            "policy": self.policy,
            "objective": _number(proof.objective) if proof else None,
            "bound": _number(proof.bound) if proof else None,
            "gap": _number(proof.gap) if proof else None,
            "types": list(problem.types),
            "job_ids": None if problem.job_ids is None else problem.job_ids.tolist(),
            "x": self.x if self.rows is None else self.row_records(),
            "effective_throughput": self.effective_throughput,
            "prices": None if proof is None or proof.price is None else proof.price.tolist(),
            "point": proof.point if proof else "",
            "late": [problem.name(m) for m in self.answer.late],
            "why": self.why(),
            **self.origins,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
        }

    @property
    def origins(self) -> dict[str, int]:
        """How many throughputs are above 0, and how many of them estimates; nothing where the problem does not say."""
        runs, guessed = self.problem.throughput > 0, self.problem.throughput_estimated
        return {} if guessed is None else {USED: int(runs.sum()), ESTIMATED: int((runs & (guessed > 0)).sum())}

    def row_records(self) -> list[dict[str, Any]]:
        """Return the rows with a share above 0, jobs by name."""
        assert self.rows is not None  # called for answers with rows only
        name, partner = self.problem.name, self.rows.filled()[0]
        return [
            {
                "job": name(int(self.rows.job[row])),
                "partner": None if partner[row] < 0 else name(int(partner[row])),
                "type": self.problem.types[self.rows.type[row]],
                "share": float(self.share[row]),
            }
            for row in np.flatnonzero(self.share > 0).tolist()
        ]

    def partners(self, jobs: int) -> list[list[str | int]] | None:
        """Return the partners of each of the first jobs by name; None where no jobs are packed together."""
        if self.rows is None or not (self.rows.filled()[0] >= 0).any():
            return None
        name, partners = self.problem.name, [dict[str | int, None]() for _ in range(min(jobs, self.problem.jobs))]
        for job, partner, at in self._sides():
            shown = np.flatnonzero((job < len(partners)) & (partner >= 0) & (self.share[at] > 0))
            for row in shown.tolist():
                partners[job[row]][name(int(partner[row]))] = None
        return [list(names) for names in partners]

    def _sides(self) -> list[tuple[Ints, Ints, Ints]]:
        """Return (job, partner, row) of each row's job, then of each row's partner where it has one."""
        assert self.rows is not None
        partner = self.rows.filled()[0]
        every, pairs = np.arange(len(partner)), np.flatnonzero(partner >= 0)
        return [(self.rows.job, partner, every), (partner[pairs], self.rows.job[pairs], pairs)]

    def _rate(self, job: Ints, partner: Ints, at: Ints) -> Floats:
        """Return steps/s of jobs in the rows `at`, packed with `partner` where that is not -1."""
        assert self.rows is not None
        problem, type = self.problem, self.rows.type[at]
        rate = problem.placed_throughput[job, type].copy()
        paired = partner >= 0
        if paired.any():
            kinds, pairs = problem.kind, problem.placed_pairs
            assert kinds is not None and pairs is not None  # a policy that pairs jobs needs kinds and pairs
            rate[paired] = pairs[kinds[job[paired]], kinds[partner[paired]], type[paired]]
        return rate


def _reasons(proof: Certificate, problem: AllocationProblem) -> list[str]:
    """Return the reason of each job; jobs with the same reason share one text."""
    if proof.binding is None:
        return [""] * problem.jobs
    code = proof.binding
    first = {int(c): int(np.argmax(code == c)) for c in np.unique(code)}
    text = {c: proof.explain_share(m, problem.types) for c, m in first.items()}
    return [text[c] for c in code.tolist()]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
