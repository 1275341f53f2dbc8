"""Generators of synthetic traces. Each draws every column from its own stream, so that another rate or number of
tenants does not change the sizes and durations.

A workload of searches has apps of many trials, as in the production trace used by Themis: jobs of an app and
accelerator-time of a job after the figures of K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling",
NSDI 2020, section 8: one app in twenty has one job, half of them have 79 or more; half of the jobs take 230
accelerator-minutes or more. Between the points read off the figures the logarithm is linear. A tenth of the models are
of vision, 60 % of language and 30 % of speech. The model of each app is not published: it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import repeat

import numpy as np

from eunomia.inputs.field_rules import SCALE_FACTOR, Rule
from eunomia.inputs.options import flag, known, number
from eunomia.inputs.problems import refused
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import drawn, interpolate
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.distributions import DISTRIBUTIONS
from eunomia.traces.gavel_streams import DURATIONS, JOB_TABLES, GavelStreams
from eunomia.traces.table import Trace, trace_of

# Points of the published distributions: (value, share of values up to it).
JOBS_PER_APP = ((1, 0.05), (5, 0.2), (21, 0.37), (60, 0.45), (79, 0.5), (90, 0.8), (100, 1.0))
JOB_MINUTES = ((15, 0.0), (150, 0.3), (230, 0.5), (340, 0.8), (500, 0.95), (1600, 1.0))  # of one accelerator
Mix = tuple[tuple[float, tuple[str, ...]], ...]
MODELS: Mix = (
    (0.1, ("inceptionv3", "alexnet", "resnet50", "vgg16", "vgg19")),
    (0.6, ("biattflow", "lm", "gnmt", "transformer")),
    (0.3, ("wavenet", "deepspeech")),
)

COMPUTE_BOUND = ("inceptionv3", "resnet50")
GANGS = {"small": (2, 4), "network": (4, 8)}
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
RULES = {
    "jobs": JOBS,
    "rate_per_hour": RATE,
    "mean_duration_s": MEAN_DURATION,
    "scale_factor": SCALE_FACTOR,
    "tenants": TENANTS,
    "most_per_app": JOBS,
    "network_bound": NETWORK_BOUND,
}


@dataclass(frozen=True, kw_only=True)
class Searches:
    """Poisson arrivals of apps whose jobs have one model and gang size; the accelerator-time of each job is drawn.

    `jobs` counts the jobs of all apps, `rate_per_hour` apps. The gangs of an app have 2 accelerators or 4, with
    `gangs=network` 4 or 8. The jobs of an app are submitted together, and each app is a tenant. `network_bound` is the
    share of apps whose model is of language or speech, which suffer most from being spread; the others have
    Inception-v3 or ResNet-50. None = the published mix of models.
    """

    jobs: int = 1000
    rate_per_hour: float = 0.5
    gangs: str = "small"
    most_per_app: int = 100
    network_bound: float | None = None

    def draw(self, seed: int) -> Trace:
        """Return the trace; the same seed draws the same one."""
        arrivals, sizes, times, kinds = np.random.default_rng(seed).spawn(4)
        counts = self._draw_counts(sizes)
        app = np.repeat(np.arange(len(counts)), counts)[: self.jobs]
        apps = int(app[-1]) + 1
        gang = kinds.choice(np.array(GANGS[self.gangs]), apps)
        submitted_s = np.cumsum(drawn(arrivals.exponential(3600 / self.rate_per_hour, len(counts))))[app]
        accelerator_s = 60 * _interpolate(times.random(self.jobs), JOB_MINUTES)
        names, models = tuple(f"app-{k}" for k in app.tolist()), _draw_models(kinds, apps, _mix(self.network_bound))
        return trace_of(
            "searches",
            tuple(map(str, range(self.jobs))),
            submitted_s,
            gang[app],
            duration_s=accelerator_s / gang[app],
            app=names,
            tenant=names,
            job_type=tuple(models[k] for k in app.tolist()),
        )

    def _draw_counts(self, rng: np.random.Generator) -> Ints:
        """Return the number of jobs of each app, (app,), for enough apps to hold all jobs."""
        level = rng.random(self.jobs)
        counts = np.round(_interpolate(level, JOBS_PER_APP)).astype(np.int64)
        counts = np.clip(counts, 1, self.most_per_app)
        return counts[: int(np.searchsorted(np.cumsum(counts), self.jobs)) + 1]


def _interpolate(level: Floats, points: tuple[tuple[float, float], ...]) -> Floats:
    """Return the values at the shares in `level`, (share,); the logarithm of the value is linear between points."""
    value, share = np.array(points).T
    return np.asarray(elementary.exp(interpolate(level, share, elementary.log(value))))


def _mix(network_bound: float | None) -> Mix:
    """Return the shares of groups of models."""
    if network_bound is None:
        return MODELS
    (_, language), (_, speech) = MODELS[1:]
    return (1 - network_bound, COMPUTE_BOUND), (network_bound, language + speech)


def _draw_models(rng: np.random.Generator, apps: int, mix: Mix) -> list[str]:
    """Return the model of each app."""
    names = [name for _, group in mix for name in group]
    share = [weight / len(group) for weight, group in mix for _ in repeat(None, len(group))]
    return [str(name) for name in rng.choice(names, apps, p=share)]


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
