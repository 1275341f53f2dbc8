"""Believed throughputs whose pairs are estimated: few pairs are measured, the others follow from like jobs."""

from __future__ import annotations

import numpy as np

from eunomia.inputs.problems import InvalidInput
from eunomia.model.arrays import Floats
from eunomia.model.speeds import Speeds, by_level, spread_throughput
from eunomia.scenario import Scenario
from eunomia.throughputs.estimators.judging import JudgeSettings, judge
from eunomia.throughputs.estimators.pair_table import PairTable


class EstimatedSpeeds:
    """Speeds alone are known, and which pairs fit into memory; how fast the members of a pair are is estimated.

    `kept` is the estimate for gangs of one accelerator, (job type, type, job type), and holds for wider ones.
    """

    def __init__(self, truth: Speeds, job_types: tuple[str, ...], kept: Floats):
        self._truth, self._kept = truth, kept
        self._row = {name: m for m, name in enumerate(job_types)}
        self.types = truth.types

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s on each type, (type,)."""
        return self._truth.solo_throughput(job_type, scale_factor)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return believed steps/s of the first beside the second, (type,); the true ones of jobs without estimates."""
        true = self._truth.packed_throughput(job_type, partner, scale_factor)
        one, other = self._row.get(job_type), self._row.get(partner)
        if one is None or other is None:
            return true
        return np.where(true > 0, self._kept[one, :, other] * self.solo_throughput(job_type, scale_factor), 0.0)

    def spread_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of a gang spread over machines, (type,)."""
        return spread_throughput(self._truth, job_type, scale_factor)

    def by_level(self, job_type: str, scale_factor: int) -> Floats:
        """Return the slowdown at each level, (level,)."""
        return by_level(self._truth, job_type, scale_factor)


def estimated_throughputs(scenario: Scenario, truth: Speeds, job_types: tuple[str, ...]) -> EstimatedSpeeds:
    """Draw references and profiled pairs by the scenario's seed, and estimate the other pairs.

    Raises InvalidInput where no pair is known, or where fewer job types run everywhere than references are wanted.
    """
    belief = scenario.belief
    everywhere = tuple(name for name in job_types if (truth.solo_throughput(name, 1) > 0).all())
    alone = np.array([truth.solo_throughput(name, 1) for name in everywhere]).reshape(-1, len(truth.types))
    beside = [[truth.packed_throughput(name, other, 1) for other in everywhere] for name in everywhere]
    kept = np.array(beside).reshape(len(everywhere), len(everywhere), len(truth.types)).swapaxes(1, 2)
    if not kept.any():
        rule = "the throughputs hold no two jobs that can share an accelerator, so there is no pair to estimate"
        raise _refusal(scenario, "kind", rule, 'name a source with pairs, or write kind = "oracle"', belief.kind)
    if belief.references > len(everywhere):
        missing = ", ".join(sorted(set(job_types) - set(everywhere))) or "none is left out"
        rule = f"only {len(everywhere)} job types run on every accelerator type of the cluster (not: {missing})"
        raise _refusal(scenario, "references", rule, f"give at most {len(everywhere)}", belief.references)
    kept = np.minimum(kept / alone[:, :, None], 1.0)
    table = PairTable(scenario.throughputs.source, truth.types, everywhere, alone, kept)
    settings = JudgeSettings(
        references=belief.references, profiled=belief.profiled, method=belief.method, solver=belief.solver,
        seed=scenario.seed,
    )  # fmt: skip
    found = judge(table, settings)
    known = np.isin(np.arange(len(everywhere)), found.references)
    both = known[:, None, None] & known[None, None, :]
    return EstimatedSpeeds(truth, everywhere, np.where(both, kept, np.clip(found.raw, 1e-3, 1.0)))


def _refusal(scenario: Scenario, key: str, rule: str, fix: str, value: object) -> InvalidInput:
    return InvalidInput([scenario.problem(("belief", key), rule, fix, str(value))])
