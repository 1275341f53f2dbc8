"""A synthetic workload under Philly's scheduler, on a quarter of Philly.

58 machines of 8 and 80 of 2 accelerators in racks of about 64, and 4 virtual clusters, so that a quota is as many times
a gang as there. Which of Philly's they are is drawn by the seed, and so are the owners of jobs, in proportion to what
these run there (`owners`). Jobs run for as long as Philly's ran until they passed, failed for good or were killed, and
do LOAD of what the cluster can: so much did the jobs that were submitted to Philly from 2017-10-03 to 2017-11-14, of
2,490 accelerators. The cluster is as busy at first, with jobs that are not counted: half of all work is in jobs of more
than five days, so an empty one would fill only when all have come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from eunomia.metrics.waits import WaitCauses
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.policies.grants.philly import Philly
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig, virtual_backend
from eunomia.setup.workload import Workload
from eunomia_reproduction.philly.filled import PREFIX, ended, running_jobs
from eunomia_reproduction.philly.owners import DrawnOwners
from eunomia_reproduction.philly.tries import Tallied, Tally

NODES = [
    *({"type": "gpu", "count": 8, "accelerators": 8, "rack": f"a{rack}"} for rack in range(7)),
    {"type": "gpu", "count": 2, "accelerators": 8, "rack": "a7"},
    *({"type": "gpu", "count": 20, "accelerators": 2, "rack": f"b{rack}"} for rack in range(4)),
]
ACCELERATORS, CLUSTERS, JOBS, LOAD = 624, 4, 4000, 0.78
DESCRIBED, NEVER = 0.9, 2.0  # part of the cluster in use from which on jobs are preempted
OWNERS, RUN_TIMES = 2, 3  # numbers of the seed's streams


@dataclass(frozen=True, slots=True)
class Waited:
    """What the jobs that count waited for."""

    seconds: Floats  # (job, cause)
    size: Ints  # (job,)
    preempted: float  # part of the jobs
    tally: Tally


def waited(seed: int, jobs: int = JOBS, preempt_above: float = DESCRIBED, load: float = LOAD) -> Waited:
    """Play the workload of a seed."""
    setup = set_up_of(seed, jobs, preempt_above, load)
    return watched(setup, np.array([not job.job_id.startswith(PREFIX) for job in setup.jobs]))


def set_up_of(seed: int, jobs: int, preempt_above: float, load: float) -> RunConfig:
    """Return what is played with a seed: jobs that run at first, and after them those that come."""
    rng = np.random.default_rng((seed, OWNERS))
    owners = DrawnOwners.drawn(CLUSTERS, rng)
    scenario = scenario_from_dict(
        {
            "seed": seed,
            "cluster": {"nodes": NODES},
            "workload": {
                "generator": "philly-like",
                "jobs": jobs,
                "rate_per_hour": _rate_per_hour(load),
            },
            "tenants": {name: {"weight": weight} for name, weight in owners.weights.items()},
            "throughputs": {"source": "uniform"},
            "policy": {"name": "philly", "preempt_above": preempt_above},
        },
        Path(),
    )
    plain = set_up(scenario).jobs
    first = running_jobs(seed, LOAD * ACCELERATORS, owners)
    size, ran_s = ended(np.random.default_rng((seed, RUN_TIMES)), jobs)
    drawn = zip(plain, size.tolist(), ran_s.tolist(), owners.of(size, rng), strict=True)
    later = (
        replace(job, sequence=len(first) + m, scale_factor=wide, total_steps=seconds, tenant=mine)
        for m, (job, wide, seconds, mine) in enumerate(drawn)
    )
    return set_up(scenario, Workload(jobs=(*first, *later), notes=()))


def watched(setup: RunConfig, counted: Bools, after_s: float = 0.0) -> Waited:
    """Play what is set up under Philly's scheduler; of its jobs, (job,), the counted ones are submitted after then."""
    assert isinstance(setup.policy, Philly)
    policy = Tallied(setup.policy, after_s)
    metrics, waits = setup.metrics(), WaitCauses()
    run(replace(setup, policy=policy).scheduler(), virtual_backend(setup), InlinePolicyRunner(policy), [metrics, waits])
    size = np.array([job.scale_factor for job in waits.jobs])
    preempted = metrics.figures().jobs["preemptions"] > 0
    seconds, part = waits.seconds(metrics.end_s)[counted], float(preempted[counted].mean())
    return Waited(seconds, size[counted], part, policy.tally)


def _rate_per_hour(load: float) -> float:
    """Return how many jobs come in an hour."""
    return load * ACCELERATORS / _mean_work() * 3600.0


@cache
def _mean_work() -> float:
    """Return the accelerator-seconds of a job on average, of many."""
    size, ran_s = ended(np.random.default_rng(0), 400_000)
    return float((size * ran_s).mean())
