"""Features of waiting and running jobs that need no declared duration, and the history of tenants.

The history of a tenant is the mean logarithm of the service of its finished jobs. A policy sees which jobs are present,
not which have finished: from one ask to the next, those that are missing have finished, and their service is the sum of
their tenant less that of the jobs that remain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eunomia.learning.model_file import Feature
from eunomia.model import elementary
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.view import View

FEATURES = (
    Feature(name="log_run_time", unit="ln(1 + s)", mean=5.0, scale=4.0),
    Feature(name="log_scale_factor", unit="ln accelerators", mean=0.5, scale=1.0),
    Feature(name="tenant_log_service", unit="ln(1 + accelerator-seconds)", mean=7.0, scale=2.0),
    Feature(name="tenant_log_jobs", unit="ln(1 + finished jobs)", mean=3.0, scale=2.0),
    Feature(name="log_age", unit="ln(1 + s)", mean=6.0, scale=4.0),
    Feature(name="hours_from_midnight", unit="h, of the run's clock, at most 12", mean=6.0, scale=6.0),
)
DAY_S = 86_400.0
PRIOR_LOG, PRIOR_JOBS = 7.0, 1.0  # a new tenant's jobs take 1,100 accelerator-seconds; how many jobs that counts for
SEEN_SERVICE, SEEN_RATE = "seen_service", "seen_rate"  # of a job, at the last ask
_TENANT = ("finished", "log_service", "present", "service", "rate")  # memory of each tenant, (tenant,)


def job_features(run_time: Floats, size: Ints, past: Floats, jobs: Floats, age: Floats, at: Floats | float) -> Floats:
    """Return the normalised features, (job, feature); past and jobs are the history of each job's tenant."""
    hour = np.remainder(at, DAY_S) / 3600.0
    columns = (
        elementary.log1p(run_time), elementary.log(size.astype(float)), past, elementary.log1p(jobs),
        elementary.log1p(np.maximum(age, 0.0)), np.broadcast_to(np.minimum(hour, 24.0 - hour), run_time.shape),
    )  # fmt: skip
    return np.stack([(x - one.mean) / one.scale for x, one in zip(columns, FEATURES, strict=True)], axis=1)


def prior_mean(finished: Floats, log_service: Floats) -> Floats:
    """Return the mean logarithm of a tenant's service, (tenant,), with the prior for tenants that are new."""
    return np.asarray((log_service + PRIOR_JOBS * PRIOR_LOG) / (finished + PRIOR_JOBS))


@dataclass(frozen=True)
class TenantHistory:
    """What is remembered between two asks, by tenant."""

    finished: Floats  # (tenant,) jobs
    log_service: Floats  # (tenant,) sum of ln(1 + service)

    @classmethod
    def at(cls, view: View) -> TenantHistory:
        """Return the history with what has finished since the last ask."""
        count = len(view.tenants.names)
        finished, log_service, present, service, rate = (_grown(view.memory.get(f"tenant_{n}"), count) for n in _TENANT)
        seen = view.memory[SEEN_SERVICE] >= 0
        owner = view.tenant[seen]

        def total(values: Floats) -> Floats:
            return np.bincount(owner, weights=values[seen], minlength=count).astype(np.float64)

        gone = np.maximum(present - total(np.ones(view.jobs)), 0.0)
        since = view.at - float(view.memory.get("asked_at", np.array(view.at)))
        served = service - total(view.memory[SEEN_SERVICE]) + since * (rate - total(view.memory[SEEN_RATE]))
        each = np.divide(np.maximum(served, 0.0), gone, out=np.zeros(count), where=gone > 0)
        return cls(finished + gone, log_service + gone * elementary.log1p(each))

    def memory(self, view: View) -> Mapping[str, Array]:
        """Return what the next ask needs."""
        count = len(view.tenants.names)
        rate = np.where(view.running, view.scale_factor, 0).astype(float)
        sums = [np.bincount(view.tenant, weights=x, minlength=count) for x in (np.ones(view.jobs), view.service, rate)]
        values = (self.finished, self.log_service, *sums)
        return {
            SEEN_SERVICE: view.service, SEEN_RATE: rate, "asked_at": np.array(view.at),
            **{f"tenant_{name}": value for name, value in zip(_TENANT, values, strict=True)},
        }  # fmt: skip


def _grown(values: Array | None, count: int) -> Floats:
    """Return remembered values with zeros for new tenants."""
    known = np.zeros(0) if values is None else np.atleast_1d(np.asarray(values, dtype=float))[:count]
    return np.concatenate((known, np.zeros(count - len(known))))
