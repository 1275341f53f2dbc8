"""Three weeks of the trace itself under Philly's scheduler: jobs as they were submitted, on all of Philly.

552 machines with 2,490 accelerators, in racks of about 64 and 40; quotas by the weights of ASTRAEA's artifact; each job
runs as long as it did. Counted are those of the three weeks from 2017-10-03: of earlier ones the log holds only jobs
that still ran, so by then the cluster is about as full as it was. What the trace does not tell is drawn by the seed:
the owners of a fifth of the jobs, none of which passed. They cannot be of the four virtual clusters whose failed jobs
it names, and are spread over the others in proportion to the passed jobs of their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from eunomia import traces
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.job import Job
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.setup.tenants import PHILLY as WEIGHT
from eunomia.setup.workload import Workload
from eunomia.traces import Trace
from eunomia_reproduction.philly.played import DESCRIBED, Waited, watched
from eunomia_reproduction.philly.tries import size_class

NODES = [
    *({"type": "gpu", "count": 8, "accelerators": 8, "rack": f"a{rack}"} for rack in range(28)),
    {"type": "gpu", "count": 7, "accelerators": 8, "rack": "a28"},
    *({"type": "gpu", "count": 20, "accelerators": 2, "rack": f"b{rack}"} for rack in range(16)),
    {"type": "gpu", "count": 1, "accelerators": 2, "rack": "b16"},
]
SINCE_S = 4_235_580.0  # 2017-10-03
UNTIL_S = SINCE_S + 21 * 86_400.0
FULLY_NAMED = ("0e4a51", "2869ce", "7f04ca", "ee9e8c")  # whose jobs the trace names whether they passed or not
RELAX_AFTER = 3  # tries
LIKE = "data/traces/philly"


def file_in(folder: Path) -> Path:
    """Return the file of the trace in a folder. Raises InvalidInput when it is not there."""
    path = folder / "philly_jobs.csv.gz"
    if not path.is_file():
        rule, fix = f"there is no {path.name}", f"give a folder laid out like {LIKE}"
        raise InvalidInput([Problem(file=str(folder), column="--reference", rule=rule, fix=fix)])
    return path


def read(folder: Path) -> Trace:
    """Return the trace of a folder. Raises InvalidInput when it is not there."""
    return traces.read(file_in(folder), "philly")


@cache
def weeks_in(folder: Path) -> Trace:
    """Return the three weeks of the trace of a folder; it is read once."""
    return three_weeks(read(folder))


def three_weeks(trace: Trace) -> Trace:
    """Return the trace up to the end of the three weeks."""
    return traces.window(trace, end_s=UNTIL_S)


def owned(trace: Trace, seed: int) -> Trace:
    """Return the trace with an owner for every job."""
    rng, tenant, size = np.random.default_rng(seed), np.array(trace.tenant), size_class(trace.scale_factor)
    passed = np.array([status == "finished" for status in trace.status])
    known = passed & (tenant != "") & ~np.isin(tenant, FULLY_NAMED)
    if (tenant == "").any() and not known.any():
        rule = f"no job that passed names a virtual cluster other than {', '.join(sorted(FULLY_NAMED))}"
        raise InvalidInput([Problem(file="the trace", column="vc", rule=rule, fix="give the whole trace")])
    for one in np.unique(size[tenant == ""]).tolist():
        nameless = np.flatnonzero((tenant == "") & (size == one))
        alike = known & (size == one)
        names, jobs = np.unique(tenant[alike if alike.any() else known], return_counts=True)
        tenant[nameless] = rng.choice(names, len(nameless), p=jobs / jobs.sum())
    return replace(trace, tenant=tuple(map(str, tenant.tolist())))


def waited(
    trace: Trace,
    seed: int,
    preempt_above: float = DESCRIBED,
    quotas: Mapping[str, int] | None = None,
    relax_after: int = RELAX_AFTER,
) -> Waited:
    """Play the trace with the owners that a seed draws; quotas are by weight if left out."""
    mine = owned(trace, seed)
    scenario = scenario_from_dict(
        {
            "cluster": {"nodes": NODES},
            "workload": {"generator": "poisson"},
            "tenants": {
                name: {"weight": weight} if quotas is None else {"quota": quotas[name]}
                for name, weight in WEIGHT.items()
            },
            "throughputs": {"source": "uniform"},
            "policy": {"name": "philly", "preempt_above": preempt_above, "relax_after": relax_after},
        },
        Path(),
    )
    setup = set_up(scenario, Workload(jobs=_jobs(mine), notes=()))
    return watched(setup, mine.submitted_s >= SINCE_S, np.nextafter(SINCE_S, 0.0))


def _jobs(trace: Trace) -> tuple[Job, ...]:
    """Return the jobs, as many steps long as they ran seconds."""
    columns = zip(
        trace.job_id,
        trace.submitted_s.tolist(),
        trace.duration_s.tolist(),
        trace.scale_factor.tolist(),
        trace.tenant,
        strict=True,
    )
    return tuple(
        Job(job_id=name, sequence=m, submitted=submitted, total_steps=seconds, scale_factor=size, tenant=tenant)
        for m, (name, submitted, seconds, size, tenant) in enumerate(columns)
    )
