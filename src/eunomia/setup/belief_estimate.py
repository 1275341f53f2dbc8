"""Believed throughputs whose pairs are estimated: few pairs are measured, the others follow from like jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from eunomia.inputs.problems import InvalidInput
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.model.speeds import Speeds, by_level, consolidated_throughput, spread_throughput
from eunomia.records.learnt_rates import PairEstimateSummary
from eunomia.scenario import Scenario
from eunomia.scenario.section_rules import measured_findings
from eunomia.throughputs.estimators.judging import JudgeSettings, judge
from eunomia.throughputs.estimators.pair_table import PairTable
from eunomia.throughputs.measuring_jobs import measuring_on

PROFILER = "profiler"  # tenant of the jobs that measure


class EstimatedSpeeds:
    """Speeds alone are known, and which pairs fit into memory; how fast the members of a pair are is estimated.

    `kept` is the estimate for gangs of one accelerator, (job type, type, job type), and holds for wider ones. `pairs`
    are the true ones; those of `references`, rows of it, are known. `ends` are those of the 80 % intervals,
    (2, job type, type, job type), and `measurements` the measured pairs.
    """

    def __init__(
        self, truth: Speeds, kept: Floats, pairs: PairTable, references: Ints, ends: Floats, measurements: int
    ):
        self._ends, self._measurements = ends, measurements
        self._truth, self.kept, self.pairs, self.references = truth, kept, pairs, references
        self._row = {name: m for m, name in enumerate(pairs.job_types)}
        self.types = truth.types

    @property
    def measured(self) -> frozenset[str]:
        """The job types that are no references."""
        return frozenset(np.delete(np.array(self.pairs.job_types, dtype=object), self.references).tolist())

    def summaries(self) -> dict[str, PairEstimateSummary]:
        """Return what is believed of each job type beside others that fit, by job type; references are left out."""
        found = {}
        for name in sorted(self.measured):
            m = self._row[name]
            fits = self.pairs.kept[m] > 0
            if fits.any():
                kept, low, high = (
                    round(float(np.median(each[m][fits])), 4) for each in (self.kept, self._ends[0], self._ends[1])
                )
                found[name] = PairEstimateSummary(kept, low, high, self._measurements)
        return found

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s on each type, (type,)."""
        return self._truth.solo_throughput(job_type, scale_factor)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return believed steps/s of the first beside the second, (type,); the true ones of jobs without estimates."""
        return self._beside(consolidated_throughput, job_type, partner, scale_factor)

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return steps/s of a gang spread over machines, (type,); a pair keeps of them what it keeps on one."""
        if partner is None:
            return spread_throughput(self._truth, job_type, scale_factor)
        return self._beside(spread_throughput, job_type, partner, scale_factor)

    def _beside(self, rates_of: Callable[..., Floats], job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return believed steps/s in a pair, (type,), where `rates_of` are those of one machine or of several."""
        true = rates_of(self._truth, job_type, scale_factor, partner)
        one, other = self._row.get(job_type), self._row.get(partner)
        if one is None or other is None:
            return true
        return np.where(true > 0, self.kept[one, :, other] * rates_of(self._truth, job_type, scale_factor), 0.0)

    def by_level(self, job_type: str, scale_factor: int) -> Floats:
        """Return the slowdown at each level, (level,)."""
        return by_level(self._truth, job_type, scale_factor)


def profiling_s(scenario: Scenario, types: int) -> float:
    """Return the seconds that measuring the pairs of a job type takes, with accelerators held, on average."""
    belief = scenario.belief
    pairs = belief.profiled * belief.references * types
    if belief.choose == "telling":
        pairs = max(1, round(pairs))
    return belief.profile_s * pairs if belief.kind == "estimated" else 0.0


def with_measuring(scenario: Scenario, jobs: Sequence[Job], believed: Speeds) -> Sequence[Job]:
    """Return the jobs, the first of each measured job type with the work of measuring its pairs added."""
    if scenario.belief.charge != "job_type" or not isinstance(believed, EstimatedSpeeds):
        return jobs
    seconds, left = profiling_s(scenario, len(believed.types)), set(believed.measured)
    charged = list(jobs)
    for place, job in enumerate(jobs):
        if job.job_type in left:
            left.remove(job.job_type)
            rate = float(believed.solo_throughput(job.job_type, job.scale_factor).max())
            charged[place] = replace(job, total_steps=job.total_steps + seconds * rate)
    return tuple(charged)


def measuring_jobs(scenario: Scenario, believed: Speeds) -> dict[tuple[int, int, int], Job]:
    """Return a job for every pair that may be measured during the run, by (job type, type, partner).

    One of the pair is no reference, and the two fit; for the published estimator the other is one. They are submitted
    when they are wanted.
    """
    if scenario.belief.charge != "slices" or not isinstance(believed, EstimatedSpeeds):
        return {}
    pairs, is_new = believed.pairs, np.ones(len(believed.pairs.job_types), dtype=np.bool_)
    is_new[believed.references] = False
    cells = [
        (int(i), int(w), int(k)) for i, w, k in zip(*np.nonzero(pairs.kept > 0), strict=True)
        if is_new[i] and not (is_new[k] and (k < i or scenario.belief.method == "match"))
    ]  # fmt: skip
    return {
        cell: Job(
            job_id=f"{PROFILER}-{number:04d}",
            total_steps=scenario.belief.profile_s,
            sequence=number,
            job_type=measuring_on(pairs.types[cell[1]]),
            tenant=PROFILER,
        )
        for number, cell in enumerate(cells)
    }


def check_backend(scenario: Scenario, *, real_time: bool) -> None:
    """Refuse what would be measured during a run on real accelerators, of backends of packages as well."""
    if real_time and scenario.belief.kind == "estimated":
        found = [
            scenario.problem(each.path, each.rule, each.fix, each.value)
            for each in measured_findings(scenario.belief.model_dump())
        ]
        if found:
            raise InvalidInput(found)


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
        fix = 'name a source with pairs, or write kind = "oracle"'
        raise scenario.refused(("belief", "kind"), rule, fix, belief.kind)
    if belief.references > len(everywhere):
        missing = ", ".join(sorted(set(job_types) - set(everywhere))) or "none is left out"
        rule = f"only {len(everywhere)} job types run on every accelerator type of the cluster (not: {missing})"
        fix = f"give at most {len(everywhere)}"
        raise scenario.refused(("belief", "references"), rule, fix, belief.references)
    kept = np.minimum(kept / alone[:, :, None], 1.0)
    table = PairTable(scenario.throughputs.source, truth.types, everywhere, alone, kept)
    later = belief.charge == "slices"
    settings = JudgeSettings(
        references=belief.references, profiled=0.0 if later else belief.profiled, method=belief.method,
        solver=belief.solver, seed=scenario.seed, choose="random" if later else belief.choose,
    )  # fmt: skip
    found = judge(table, settings)
    known = np.isin(np.arange(len(everywhere)), found.references)
    both = known[:, None, None] & known[None, None, :]
    believed = found.raw - belief.caution * (found.raw - found.raw_low)
    kept_of_all = np.where(both, kept, np.clip(believed, 1e-3, 1.0))
    among = len(found.references)
    count = found.measurements + among * (among + 1) // 2 * len(truth.types)
    return EstimatedSpeeds(
        truth, kept_of_all, table, found.references, np.stack((found.raw_low, found.raw_high)), count
    )
