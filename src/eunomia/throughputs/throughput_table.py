"""Throughputs of gangs on the accelerator types of a cluster, from any source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.arrays import Floats
from eunomia.model.former_names import accepts_former_names
from eunomia.model.spelling_suggestions import nearest


class ThroughputSource(Protocol):
    """A source of throughputs. Callers pass only job types that it has and scale factors of at least 1."""

    @property
    def name(self) -> str: ...  # for messages: a file, "the catalogue"

    @property
    def job_types(self) -> tuple[str, ...]: ...  # () = any is accepted

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats: ...

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats: ...

    def spread_throughput(self, job_type: str, scale_factor: int) -> Floats: ...

    def extrapolated(self, job_type: str, scale_factor: int) -> bool: ...


@accepts_former_names({"alone": "solo_throughput", "beside": "packed_throughput", "apart": "spread_throughput"})
@dataclass(frozen=True, slots=True, eq=False)
class Throughputs:
    """Steps/s of whole gangs, counted over all their accelerators. The arrays returned are shared and read-only."""

    types: tuple[str, ...]  # accelerator types, in the cluster's order
    source: ThroughputSource
    _rates: dict[tuple[str, str | None, int], Floats] = field(default_factory=dict, init=False, repr=False)

    @property
    def job_types(self) -> tuple[str, ...]:
        """Job types with throughputs; () if any is accepted."""
        return self.source.job_types

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the gang on each type, shape (type,); 0 = cannot run there.

        Raises InvalidInput for a job type without throughputs, with the nearest that has some.
        """
        key = (job_type, None, int(scale_factor))
        rates = self._rates.get(key)
        if rates is None:
            self._refuse_unknown(int(scale_factor), job_type)
            rates = self._rates[key] = _read_only(self.source.solo_throughput(job_type, int(scale_factor)))
        return rates

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first gang while it shares its accelerators with the second, shape (type,).

        0 = they do not fit together, or the pair is unknown. Raises InvalidInput as `alone` does.
        """
        key = (job_type, partner, int(scale_factor))
        rates = self._rates.get(key)
        if rates is None:
            self._refuse_unknown(int(scale_factor), job_type, partner)
            rates = self._rates[key] = _read_only(self.source.packed_throughput(job_type, partner, int(scale_factor)))
        return rates

    def spread_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the gang when it is not on one machine, shape (type,).

        As on one machine for a single accelerator and where unknown. Raises InvalidInput as `alone` does.
        """
        self._refuse_unknown(int(scale_factor), job_type)
        if scale_factor == 1:
            return self.solo_throughput(job_type, 1)
        return self.source.spread_throughput(job_type, int(scale_factor))

    def extrapolated(self, job_type: str, scale_factor: int) -> bool:
        """Return whether any rate of `alone` was not measured but comes from the analytic model."""
        self._refuse_unknown(int(scale_factor), job_type)
        return self.source.extrapolated(job_type, int(scale_factor))

    def _refuse_unknown(self, scale_factor: int, *names: str) -> None:
        if scale_factor < 1:
            rule = "a gang has at least 1 accelerator"
            raise self._refused("scale_factor", str(scale_factor), rule, "give 1 or more")
        known = self.source.job_types
        for name in names:
            if known and name not in known:
                rule = "there are no throughputs for this job type"
                raise self._refused("job_type", name, rule, nearest(name, known))

    def _refused(self, column: str, value: str, rule: str, fix: str) -> InvalidInput:
        return InvalidInput([Problem(file=self.source.name, column=column, value=value, rule=rule, fix=fix)])


def _read_only(rates: Floats) -> Floats:
    rates.flags.writeable = False
    return rates
