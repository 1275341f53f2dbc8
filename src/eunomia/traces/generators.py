"""Generators of synthetic traces. Each draws every column from its own stream, so that another rate or number of
tenants does not change the sizes and durations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from eunomia.inputs.field_rules import SCALE_FACTOR, Rule
from eunomia.inputs.options import flag, known, number
from eunomia.inputs.problems import refused
from eunomia.model.arrays import Floats
from eunomia.model.rounding import drawn
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.distributions import DISTRIBUTIONS
from eunomia.traces.gavel_streams import DURATIONS, JOB_TABLES, GavelStreams
from eunomia.traces.searches import GANGS, Searches
from eunomia.traces.table import Trace, trace_of

MOST_JOBS = 10_000_000
JOBS = Rule(
    what=f"a whole number from 1 to {MOST_JOBS:,}",
    least=1,
    most=MOST_JOBS,
    whole=True,
    fix="write how many jobs to draw",
)
RATE = Rule(
    what="a number of jobs per hour, at least 0.000001",
    least=1e-6,
    endless=True,
    fix="write how many jobs arrive in an hour, or inf for all at time 0",
)
NETWORK_BOUND = Rule(what="a number from 0 to 1", least=0.0, most=1.0, fix="write 0.5 for a half of the apps")
MEAN_DURATION = Rule(
    what="a number of seconds above 0, at most 1e10",  # among many jobs some are far longer
    above=0.0,
    most=1e10,
    fix="write how long a job runs on average",
)
TENANTS = Rule(
    what="a whole number, at least 0", least=0, most=MOST_JOBS, whole=True, fix="write 0 for jobs without tenants"
)
SEED = Rule(what="a whole number, at least 0", least=0, whole=True, fix="write 0, or any other whole number")


@dataclass(frozen=True, kw_only=True)
class PhillyLike:
    """Poisson arrivals; sizes and durations from a published distribution; tenants drawn uniformly."""

    jobs: int = 1000
    rate_per_hour: float = 3.0  # with the gavel distribution, the work of about 96 accelerators
    distribution: str = "gavel"
    multi_accelerator: bool = True  # False: every gang has 1 accelerator
    tenants: int = 0
    job_type: str = ""  # "" = the trace names none

    def draw(self, seed: int) -> Trace:
        """Return the trace; the same seed draws the same one."""
        arrivals, sizes, durations, owners = np.random.default_rng(seed).spawn(4)
        scale_factor, duration_s = DISTRIBUTIONS[self.distribution](sizes, durations, self.jobs)
        tenant_row = owners.integers(max(self.tenants, 1), size=self.jobs).tolist()
        tenant = tuple(f"tenant-{k}" for k in tenant_row) if self.tenants else ("",) * self.jobs
        return trace_of(
            "philly-like",
            tuple(map(str, range(self.jobs))),
            _draw_arrivals(arrivals, self.rate_per_hour, self.jobs),
            scale_factor if self.multi_accelerator else np.ones_like(scale_factor),
            duration_s=duration_s,
            tenant=tenant,
            job_type=_repeat_type(self.job_type, self.jobs),
        )


@dataclass(frozen=True, kw_only=True)
class Poisson:
    """Poisson arrivals, exponential durations, gangs of one size."""

    jobs: int = 1000
    rate_per_hour: float = 3.0
    mean_duration_s: float = 3600.0
    scale_factor: int = 1
    job_type: str = ""  # "" = the trace names none

    def draw(self, seed: int) -> Trace:
        """Return the trace; the same seed draws the same one."""
        arrivals, durations = np.random.default_rng(seed).spawn(2)
        duration_s = np.maximum(drawn(durations.exponential(self.mean_duration_s, self.jobs)), np.finfo(float).tiny)
        return trace_of(
            "poisson",
            tuple(map(str, range(self.jobs))),
            _draw_arrivals(arrivals, self.rate_per_hour, self.jobs),
            np.full(self.jobs, self.scale_factor, dtype=np.int64),
            duration_s=duration_s,
            job_type=_repeat_type(self.job_type, self.jobs),
        )


GENERATORS: Mapping[str, type[PhillyLike] | type[Poisson] | type[GavelStreams] | type[Searches]] = {
    "philly-like": PhillyLike,
    "poisson": Poisson,
    "gavel": GavelStreams,
    "searches": Searches,
}
RULES = {
    "jobs": JOBS,
    "rate_per_hour": RATE,
    "mean_duration_s": MEAN_DURATION,
    "scale_factor": SCALE_FACTOR,
    "tenants": TENANTS,
    "most_per_app": JOBS,
    "network_bound": NETWORK_BOUND,
}


def generate(name: str, seed: int, **parameters: object) -> Trace:
    """Return the trace that the named generator draws. Raises InvalidInput for a wrong name, parameter or value."""
    if name not in GENERATORS:
        raise refused("workload", "generator", name, "this generator is not known", nearest(name, GENERATORS))
    generator = GENERATORS[name]
    known(name, parameters, [field.name for field in fields(generator)])
    number(name, "seed", seed, SEED)
    for parameter, value in parameters.items():
        _check_parameter(name, parameter, value)
    return generator(**parameters).draw(seed)  # type: ignore[arg-type]


def _check_parameter(generator: str, parameter: str, value: object) -> None:
    if parameter in RULES:
        number(generator, parameter, value, RULES[parameter])
    elif parameter in ("multi_accelerator", "priorities", "deadlines"):
        flag(generator, parameter, value)
    elif not isinstance(value, str):
        raise refused(generator, parameter, value, "must be text", "write it in quotes")
    elif parameter == "table" and value not in JOB_TABLES:
        raise refused(generator, parameter, value, "this order of job types is not known", nearest(value, JOB_TABLES))
    elif parameter == "durations" and value not in DURATIONS:
        raise refused(generator, parameter, value, "these durations are not known", nearest(value, DURATIONS))
    elif parameter == "gangs" and value not in GANGS:
        raise refused(generator, parameter, value, "these gangs are not known", nearest(value, GANGS))
    elif parameter == "distribution" and value not in DISTRIBUTIONS:
        raise refused(generator, parameter, value, "this distribution is not known", nearest(value, DISTRIBUTIONS))


def _draw_arrivals(rng: np.random.Generator, rate_per_hour: float, jobs: int) -> Floats:
    """Return the event times in seconds of a Poisson process that starts at 0, (job,)."""
    arrivals: Floats = np.cumsum(drawn(rng.exponential(1.0, jobs)) * (3600 / rate_per_hour))
    return arrivals


def _repeat_type(job_type: str, jobs: int) -> tuple[str, ...] | None:
    return (job_type,) * jobs if job_type else None
