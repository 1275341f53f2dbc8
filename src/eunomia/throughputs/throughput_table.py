"""Throughputs of gangs on the accelerator types of a cluster, from any source."""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem, refused
from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats
from eunomia.model.rounding import drawn
from eunomia.model.speeds import consolidated_throughput
from eunomia.model.spelling_suggestions import nearest
from eunomia.throughputs.catalogue import find
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80

STREAM = 2  # of the seed: others are those of workloads and beliefs
NAMED = 20  # job types that one message lists
WITHOUT_JOB_TYPES = 'write [throughputs] source = "uniform" (or "linear"): every job at one speed on all types'


class ThroughputSource(Protocol):
    """A source of throughputs. Callers pass only job types that it has and scale factors of at least 1."""

    @property
    def name(self) -> str: ...  # for messages: a file, "the catalogue"

    @property
    def path(self) -> Path | None: ...  # of the file; None = built in

    @property
    def job_types(self) -> tuple[str, ...]: ...  # () = any is accepted

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats: ...  # nan = not known

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats: ...

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats: ...

    def estimated(self, job_type: str, scale_factor: int) -> Bools: ...

    def interval(self, job_type: str, scale_factor: int) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class Throughputs:
    """Steps/s of whole gangs, counted over all their accelerators. The arrays returned are shared and read-only.

    A rate is measured, estimated with an interval, or 0: cannot run. What a source does not say is none of the three:
    it raises InvalidInput, but where the gang is wider than all the `capacity` of the type it is 0.
    With `drawn_by` estimates are drawn from their intervals by this seed.
    """

    types: tuple[str, ...]  # accelerator types, in the cluster's order
    source: ThroughputSource
    capacity: tuple[int, ...] = ()  # accelerators of each type; () = not limited
    drawn_by: int | None = None
    takes_any: bool = False  # the source answers for job types that it does not list, too
    _rates: dict[tuple[str, str | None, int], Floats] = field(default_factory=dict, init=False, repr=False)

    @property
    def job_types(self) -> tuple[str, ...]:
        """Job types with throughputs; () if any is accepted."""
        return self.source.job_types

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the gang on each type, shape (type,); 0 = cannot run there.

        Raises InvalidInput for a job type without throughputs, with the nearest that has some, and for types on which
        the gang would fit and its throughput is not known.
        """
        key = (job_type, None, int(scale_factor))
        rates = self._rates.get(key)
        if rates is None:
            rates = self._stated(job_type, int(scale_factor))
            unknown = self._not_known(job_type, int(scale_factor), rates)
            if unknown:
                raise missing_throughputs(self.source, {(job_type, name): 0 for name in unknown}, self.types)
            rates = np.nan_to_num(rates) * self._factor(job_type, int(scale_factor))
            self._rates[key] = _read_only(rates)
        return rates

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first gang while it shares its accelerators with the second, shape (type,).

        0 = they do not fit together, or may not: the pair is not in the table. Raises InvalidInput as
        `solo_throughput` does.
        """
        key = (job_type, partner, int(scale_factor))
        rates = self._rates.get(key)
        if rates is None:
            self._refuse_unknown(int(scale_factor), job_type, partner)
            rates = self.source.packed_throughput(job_type, partner, int(scale_factor))
            rates = self._rates[key] = _read_only(rates * self._factor(job_type, int(scale_factor)))
        return rates

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return steps/s of the gang when it is not on one machine, shape (type,), alone or beside a partner.

        As on one machine for a single accelerator and where unknown. Raises InvalidInput as `solo_throughput` does.
        """
        together = consolidated_throughput(self, job_type, int(scale_factor), partner)
        if scale_factor == 1:
            return together
        rates = np.nan_to_num(self.source.spread_throughput(job_type, int(scale_factor), partner))
        return np.asarray(rates * self._factor(job_type, int(scale_factor)))

    def extrapolated(self, job_type: str, scale_factor: int) -> bool:
        """Return whether any rate of `solo_throughput` was not measured but estimated."""
        return bool(self.estimated(job_type, scale_factor).any())

    def estimated(self, job_type: str, scale_factor: int) -> Bools:
        """Return (type,): True where the rate is an estimate; False where it was measured, or is 0."""
        rates = self.solo_throughput(job_type, int(scale_factor))
        return np.asarray(self.source.estimated(job_type, int(scale_factor)) & (rates > 0))

    def interval(self, job_type: str, scale_factor: int) -> Floats:
        """Return the ends of the 80 % interval of the rate on each type, steps/s, (2, type); equal where it is certain.

        With `drawn_by` the rate that was drawn need not be within it.
        """
        self.solo_throughput(job_type, int(scale_factor))
        return np.nan_to_num(self.source.interval(job_type, int(scale_factor)))

    def not_known(self, job_type: str, scale_factor: int = 1) -> tuple[str, ...]:
        """Return the types on which such a gang would fit and of which the source has no throughput of it."""
        return self._not_known(job_type, int(scale_factor), self._stated(job_type, int(scale_factor)))

    def refuse_unknown(self, jobs: Mapping[tuple[str, int], int]) -> None:
        """Raise InvalidInput with all throughputs that are not known; `jobs` are counted by job type and size."""
        known, strange = set(() if self.takes_any else self.source.job_types), dict[str, int]()
        missing: dict[tuple[str, str], int] = {}
        for (job_type, scale_factor), count in jobs.items():
            if known and job_type not in known:
                strange[job_type] = strange.get(job_type, 0) + count
                continue
            for name in self.not_known(job_type, scale_factor):
                missing[job_type, name] = missing.get((job_type, name), 0) + count
        problems = [*self._strange(strange), *missing_throughputs(self.source, missing, self.types).problems]
        if problems:
            raise InvalidInput(problems)

    def _strange(self, jobs: Mapping[str, int]) -> list[Problem]:
        """Return the problem of job types without throughputs, by how many jobs have each."""
        if not jobs:
            return []
        name, count = next(iter(jobs)), sum(jobs.values())
        rule = "there are no throughputs for this job type"
        if len(jobs) > 1:
            rule = f"there are no throughputs for {len(jobs):,} job types: {listed(jobs)}"
        rule += f" ({count:,} jobs)" if count > 1 else ""
        fix = f"{nearest(name, self.source.job_types)}; or {WITHOUT_JOB_TYPES}"
        return [Problem(file=self.source.name, column="job_type", value=name, rule=rule, fix=fix)]

    def _stated(self, job_type: str, scale_factor: int) -> Floats:
        self._refuse_unknown(scale_factor, job_type)
        return self.source.solo_throughput(job_type, scale_factor)

    def _not_known(self, job_type: str, scale_factor: int, rates: Floats) -> tuple[str, ...]:
        unknown = np.isnan(rates)
        if not unknown.any():
            return ()
        if self.capacity:
            unknown &= np.array(self.capacity) >= scale_factor
        return tuple(name for name, is_unknown in zip(self.types, unknown.tolist(), strict=True) if is_unknown)

    def _factor(self, job_type: str, scale_factor: int) -> Floats | float:
        """Return the true rate over the stated one on each type, (type,): 1 unless it is drawn."""
        if self.drawn_by is None:
            return 1.0
        return _drawn_factor(self.source, self.types, job_type, scale_factor, self.drawn_by)

    def _refuse_unknown(self, scale_factor: int, *names: str) -> None:
        if scale_factor < 1:
            rule = "a gang has at least 1 accelerator"
            raise refused(self.source.name, "scale_factor", scale_factor, rule, "give 1 or more")
        known = () if self.takes_any else self.source.job_types
        for name in names:
            if known and name not in known:
                rule = "there are no throughputs for this job type"
                raise refused(self.source.name, "job_type", name, rule, nearest(name, known))


def _read_only(rates: Floats) -> Floats:
    rates.flags.writeable = False
    return rates


def _drawn_factor(
    source: ThroughputSource, types: tuple[str, ...], job_type: str, scale_factor: int, seed: int
) -> Floats:
    """Return the drawn rate over the stated one on each type, (type,); 1 where the rate is no estimate.

        true rate = rate · (p90 / rate)^(z / q)   for z ≥ 0,   rate · (p10 / rate)^(−z / q) else

    z a normal draw of the seed, job type and accelerator type; q the 90 % point of the normal distribution. So one draw
    in ten is below p10 and one above p90. Gangs of all sizes of a job type on a type share their z: what makes an
    estimate wrong at one size makes it wrong at the next.
    """
    rates, ends = source.solo_throughput(job_type, scale_factor), source.interval(job_type, scale_factor)
    factor = np.ones(len(types))
    for j in np.flatnonzero(source.estimated(job_type, scale_factor) & (rates > 0)).tolist():
        key = zlib.crc32(f"{types[j]}\0{job_type}".encode())  # hash() differs between processes
        z = drawn(float(np.random.default_rng((seed, STREAM, key)).normal()))
        end = float(ends[1 if z >= 0 else 0, j])
        factor[j] = elementary.power(end / float(rates[j]), abs(z) / GAUSSIAN_80)
    return factor


def missing_throughputs(
    table: ThroughputSource, jobs: Mapping[tuple[str, str], int], types: Sequence[str]
) -> InvalidInput:
    """Return the error for pairs of job type and accelerator type that are not in the table, one problem a type.

    `jobs` counts those that need each pair; 0 = unknown. `types` are all that the cluster has.
    """
    fix = ways_out(table.path, types)
    problems = []
    for type_name in types:
        of = {job_type: count for (job_type, needed), count in jobs.items() if needed == type_name}
        if of:
            count = sum(of.values())
            who = f" (of {count:,} job{'s' * (count > 1)})" if count else ""
            which = f"{len(of):,} job types{who}" if len(of) > 1 else f"1 job type{who}"
            rule = f"the table has no throughput on it of {which}, and none that is 0 for cannot run: {listed(of)}"
            problems.append(Problem(file=table.name, column="type", value=type_name, rule=rule, fix=fix))
    return InvalidInput(problems)


def ways_out(path: Path | None, types: Sequence[str]) -> str:
    """Return what to do about throughputs that are not in a table; `path` is its file, if it has one."""
    if path is not None and all(map(find, types)):
        command = f"eunomia calibrate {shlex.quote(str(path))} --types {','.join(types)} --out calibrated.csv"
        estimate = f'`{command}`, or [throughputs] missing = "estimate"'
    else:
        estimate = "`eunomia calibrate`, which needs types of the catalogue (`eunomia calibrate --help`)"
    return (
        'add rows with a throughput of 0 where they cannot run ([throughputs] missing = "cannot_run" says so of all), '
        f"or estimate them: {estimate}"
    )


def listed(names: Iterable[str]) -> str:
    """Return names for a message, the first `NAMED` of many."""
    first, *more = [list(names)[:NAMED], *list(names)[NAMED:]]
    return ", ".join(map(repr, first)) + (f" and {len(more):,} more" if more else "")
