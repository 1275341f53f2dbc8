"""A workload of hyperparameter searches: apps of many trials, as in the production trace used by Themis.

Jobs of an app and accelerator-time of a job after the figures of K. Mahajan et al., "Themis: Fair and Efficient GPU
Cluster Scheduling", NSDI 2020, section 8: one app in twenty has one job, half of them have 79 or more; half of the jobs
take 230 accelerator-minutes or more. Between the points read off the figures the logarithm is linear. A tenth of the
models are of vision, 60 % of language and 30 % of speech. The model of each app is not published: it is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import drawn, interpolate
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


GANGS = {"small": (2, 4), "network": (4, 8)}


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
