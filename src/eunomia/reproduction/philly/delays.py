"""Table 2: for what gangs wait, from playing a synthetic workload under Philly's scheduler.

A quarter of Philly: 58 machines of 8 and 80 of 2 accelerators in racks of about 64, and 4 virtual clusters with equal
quotas, so that a quota is as many times a gang as there. Jobs are drawn as `philly-like` draws them, owners evenly.
They fail and are killed as Table 6 says. The cluster is BUSY at first, with jobs that are not counted: half of all work
is in jobs of more than five days, so an empty one would fill only when all have come. LOAD counts what jobs would do if
all of them passed; what they do is about a fifth less. What is modelled here and decides the outcome: racks, quotas,
who owns what, the load, and how soon a job within its quota stops those who have borrowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from eunomia.experiment.wiring import set_up
from eunomia.experiment.workload import Workload
from eunomia.experiment.worlds import simulated_world
from eunomia.metrics.waits import Waits
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.reproduction.philly.averages import told
from eunomia.reproduction.philly.filled import PREFIX, running_jobs
from eunomia.reproduction.table import Row
from eunomia.run import InlineAdviser, run
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia.traces.distributions import philly

NODES = [
    *({"type": "gpu", "count": 8, "accelerators": 8, "rack": f"a{rack}"} for rack in range(7)),
    {"type": "gpu", "count": 2, "accelerators": 8, "rack": "a7"},
    *({"type": "gpu", "count": 20, "accelerators": 2, "rack": f"b{rack}"} for rack in range(4)),
]
ACCELERATORS, CLUSTERS, JOBS, LOAD, BUSY = 624, 4, 4000, 1.4, 0.9
NEVER = 2.0  # of the cluster in use: nobody is preempted
CLASSES = {"2-4": (2, 4), "5-8": (5, 8), ">8": (9, 10**9)}
FRAGMENTATION = {"2-4": 7567 / 12735, "5-8": 10928 / 14721, ">8": 3117 / 3183}  # of the waits of a size
TABLE_2 = "Jeon et al., ATC 2019, Table 2"
OF_TIME = 0.80  # of all waiting, section 3.1


@dataclass(frozen=True, slots=True)
class Waited:
    """What the jobs of one seed waited for."""

    seconds: Floats  # (job, cause)
    size: Ints  # (job,)
    preempted: float  # part of the jobs

    def of(self, name: str) -> Bools:
        """Say which jobs are of a class, (job,)."""
        low, high = CLASSES[name]
        return np.asarray((self.size >= low) & (self.size <= high))


def scenario_of(seed: int, jobs: int = JOBS, preempt_above: float = 0.9) -> Scenario:
    """Return what is played with a seed, but for the jobs that run at first."""
    streams = np.random.default_rng(0).spawn(2)
    size, duration_s = philly(streams[0], streams[1], 400_000)
    rate_per_hour = LOAD * ACCELERATORS / float((size * duration_s).mean()) * 3600.0
    return scenario_from_dict(
        {
            "seed": seed,
            "cluster": {"nodes": NODES},
            "workload": {
                "generator": "philly-like",
                "distribution": "philly",
                "jobs": jobs,
                "rate_per_hour": rate_per_hour,
                "tenants": CLUSTERS,
            },
            "throughputs": {"source": "uniform"},
            "policy": {"name": "philly", "preempt_above": preempt_above},
            "physics": {"fates": "philly"},
        },
        Path(),
    )


def waited(seed: int, jobs: int = JOBS, preempt_above: float = 0.9) -> Waited:
    """Play the workload of a seed."""
    scenario = scenario_of(seed, jobs, preempt_above)
    setup = set_up(scenario, _with_running(scenario))
    metrics, waits = setup.metrics(), Waits()
    run(setup.scheduler(), simulated_world(setup), InlineAdviser(setup.policy), [metrics, waits])
    counted = np.array([not job.job_id.startswith(PREFIX) for job in waits.jobs])
    size = np.array([job.scale_factor for job in waits.jobs])
    figures = metrics.figures()
    preempted = figures.jobs["preemptions"] > 0
    return Waited(waits.seconds(metrics.end_s)[counted], size[counted], float(preempted[counted].mean()))


def _with_running(scenario: Scenario) -> Workload:
    """Return the scenario's jobs after those that run at first."""
    plain = set_up(scenario).jobs
    first = running_jobs(scenario.seed, BUSY * ACCELERATORS, sorted({job.tenant for job in plain}))
    later = (replace(job, sequence=job.sequence + len(first)) for job in plain)
    return Workload(jobs=(*first, *later), notes=())


def delays(found: Sequence[Waited], how: str = "") -> list[Row]:
    """Return by size how many waits are fragmentation's beside Table 2, how much of the time, and what must hold.

    `how` tells the series apart from another's.
    """
    shares = {name: [_of_waits(one.seconds[one.of(name)]) for one in found] for name in CLASSES}
    rows = [
        Row(
            series=f"Table 2{how}: waits for fragmentation",
            x=name,
            quantity="waits",
            unit="of the size's",
            published=FRAGMENTATION[name],
            measured=_mean(mine),
            source=TABLE_2,
            note=told(_known(mine)),
        )
        for name, mine in shares.items()
    ]
    time = [float(one.seconds[:, 1].sum() / max(one.seconds[:, :2].sum(), 1e-9)) for one in found]
    rows.append(_row(f"Table 2{how}: waiting for fragmentation", "seconds", "of all waiting", OF_TIME, time))
    for name in CLASSES:
        some = [float((one.seconds[one.of(name), :2].sum(axis=1) > 0).mean()) for one in found if one.of(name).any()]
        rows.append(_row(f"Table 2{how}: jobs of {name} that waited", "jobs", "of the size's", None, some))
    rows.append(_row(f"Table 2{how}: preempted", "jobs", "of all", None, [one.preempted for one in found]))
    return rows if how else rows + _orderings(shares)


def _row(series: str, quantity: str, unit: str, published: float | None, values: list[float]) -> Row:
    return Row(
        series=series,
        quantity=quantity,
        unit=unit,
        published=published,
        measured=_mean(values),
        source=TABLE_2,
        note=told(values),
    )


def _orderings(shares: dict[str, list[float]]) -> list[Row]:
    """Return the seeds under which wider gangs wait more for fragmentation; it should be every one."""
    names = list(CLASSES)
    found = []
    for narrow, wide in pairwise(names):
        both = [(a, b) for a, b in zip(shares[narrow], shares[wide], strict=True) if not np.isnan(a + b)]
        found.append(
            Row(
                series=f"Table 2: {wide} wait more for fragmentation than {narrow}",
                quantity="seeds",
                unit="",
                published=len(both),
                measured=sum(a < b for a, b in both),
                tolerance=0.0,
                source=TABLE_2,
            )
        )
    return found


def _of_waits(seconds: Floats) -> float:
    """Return which part of the jobs that waited did so mostly for fragmentation; nan = none waited."""
    fair_share, fragmentation = seconds[:, 0], seconds[:, 1]
    some = fair_share + fragmentation > 0
    return float((fragmentation > fair_share)[some].mean()) if some.any() else float("nan")


def _known(values: Sequence[float]) -> list[float]:
    return [value for value in values if not np.isnan(value)]


def _mean(values: Sequence[float]) -> float | None:
    known = _known(values)
    return float(np.mean(known)) if known else None
