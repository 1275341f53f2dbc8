"""Mixes of job types: drawn by seed for a trace that names none, or as a typical job on which types are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.model.arrays import Floats, Ints
from eunomia.model.spelling_suggestions import nearest
from eunomia.throughputs import analytic
from eunomia.throughputs.catalogue import accelerators, find
from eunomia.throughputs.job_type_facts import JobFacts, gavel_job_types, job_types
from eunomia.throughputs.throughput_table import Throughputs

REFERENCE = "v100"
_refused = partial(refused, "workload", "job_types")
DIGITS = 3  # of a relative speed
MIXES: dict[str, Callable[[JobFacts], bool]] = {
    "mix:default": lambda job: job.name in gavel_job_types(),
    "mix:vision": lambda job: job.kind == "vision",
    "mix:language": lambda job: job.kind == "language",
}


@dataclass(frozen=True, slots=True)
class Mix:
    """Job types and their shares. In a built-in mix, gangs draw from the distributed families only, as in Gavel."""

    name: str
    share_by_job_type: tuple[tuple[str, float], ...]

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of MIXES."""
        return self.name in MIXES


def mix_of(mix: Mix | str | Mapping[str, float]) -> Mix:
    """Return the mix of a name, or of a mapping from job type to weight. Raises InvalidInput for anything else."""
    if isinstance(mix, Mix):
        return mix
    if isinstance(mix, str):
        if mix not in MIXES:
            raise _refused(mix, "this mix is not known", nearest(mix, MIXES))
        chosen = [job.name for job in job_types().values() if MIXES[mix](job)]
        return Mix(mix, tuple((name, 1 / len(chosen)) for name in chosen))
    for name, weight in mix.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < np.inf:
            rule = "a weight is a finite number above 0"
            raise _refused(f"{name} = {weight}", rule, "leave the job type out instead")
    if not mix:
        raise _refused("{}", "a mix has at least one job type", 'give { "job type" = weight }')
    total = sum(mix.values())
    return Mix("job_types", tuple((name, weight / total) for name, weight in mix.items()))


def assign(
    mix: Mix | str | Mapping[str, float], scale_factor: Ints, rng: np.random.Generator, throughputs: Throughputs
) -> tuple[str, ...]:
    """Return a job type for each job, one draw a job in their order; only types that some accelerator type can run.

    Raises InvalidInput if a given mix has a job type without throughputs, or no job type for a gang, and if it is not
    known whether a job type that may be drawn can run on a type.
    """
    chosen = mix_of(mix)
    sizes = np.asarray(scale_factor, dtype=np.int64)
    throughputs.refuse_unknown(
        {
            (name, size): 0
            for size in np.unique(sizes).tolist()
            for name, _ in chosen.share_by_job_type
            if _may_draw(chosen, name, size, throughputs)
        }
    )
    draws = rng.random(len(sizes))
    assigned = np.empty(len(sizes), dtype=object)
    for size in np.unique(sizes):
        names, shares = _eligible(chosen, int(size), throughputs)
        rows = sizes == size
        picks = np.searchsorted(np.cumsum(shares), draws[rows] * shares.sum(), side="right")
        assigned[rows] = np.array(names, dtype=object)[np.minimum(picks, len(names) - 1)]
    return tuple(assigned)


def describe(mix: Mix | str | Mapping[str, float]) -> str:
    """Return a sentence for the report: name, families and shares of the mix."""
    chosen = mix_of(mix)
    share_by_family: dict[str, float] = {}
    for name, share in chosen.share_by_job_type:
        family = job_types()[name].family if name in job_types() else name
        share_by_family[family] = share_by_family.get(family, 0.0) + share
    parts = ", ".join(f"{family} {share:.0%}" for family, share in share_by_family.items())
    rule = "; gangs only of distributed families" if chosen.is_built_in else ""
    return f"{chosen.name}: {len(chosen.share_by_job_type)} job types ({parts}){rule}"


def _eligible(mix: Mix, size: int, throughputs: Throughputs) -> tuple[list[str], Floats]:
    eligible = [
        (name, share)
        for name, share in mix.share_by_job_type
        if _may_draw(mix, name, size, throughputs) and throughputs.solo_throughput(name, size).max() > 0
    ]
    if not eligible:
        rule = f"no accelerator type can run any job type of the mix on {size} accelerators"
        raise _refused(mix.name, rule, "give another mix or other throughputs")
    return [name for name, _ in eligible], np.array([share for _, share in eligible])


def _may_draw(mix: Mix, name: str, size: int, throughputs: Throughputs) -> bool:
    """Say whether a built-in mix may draw a job type; any of a given mix (`alone` raises for unknown ones)."""
    if not mix.is_built_in:
        return True
    known = not throughputs.job_types or name in throughputs.job_types
    return known and (size == 1 or job_types()[name].distributed)


def relative_speeds(types: Iterable[str], mix: str = "mix:default") -> dict[str, float]:
    """Return the speed of each type that the catalogue has, relative to a v100: the median over the jobs of a mix.

    The analytic model's rates of one accelerator, as if memory always sufficed. Raises InvalidInput for an unknown mix.
    """
    jobs = [job_types()[name] for name, _ in mix_of(mix).share_by_job_type]
    reference = accelerators()[REFERENCE]
    base = np.array([analytic.unlimited_rate(job, reference, 1) for job in jobs])
    speeds = {}
    for name in types:
        accelerator = find(name)
        if accelerator is not None:
            rates = np.array([analytic.unlimited_rate(job, accelerator, 1) for job in jobs])
            speeds[name] = float(f"{float(np.median(rates / base)):.{DIGITS}g}")
    return speeds
