"""Each workload at load 1.0 under the Tiresias and the Optimus of Pollux' simulator, job by job.

Three things the measurements do not say; they come from that simulator's code: a restart takes 30 s, yolov3 takes at
most 8 samples at once, and times of placements that were never measured are interpolated over a triangulation of those
that were. On a grid a triangulation is not unique: where ours is another one than theirs, so are some step times, and a
job that is not equal is then not a mistake (`scattered`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from eunomia.core.belief import Belief
from eunomia.core.mechanisms.leases import Leases
from eunomia.core.scheduler import Scheduler
from eunomia.model.job import Job
from eunomia.model.policy import Policy
from eunomia.model.topology import Node, Topology
from eunomia.reproduction.peers.comparing import Found, compared
from eunomia.reproduction.peers.pollux.inputs import MEASURED, WORKLOADS, profiles, trainings
from eunomia.reproduction.peers.pollux.scattered import INSTALL, has_qhull
from eunomia.reproduction.peers.pollux.schedulers import OracleOptimus, TwoQueues
from eunomia.reproduction.peers.pollux.training import Training
from eunomia.reproduction.peers.pollux.world import MinuteWorld
from eunomia.reproduction.peers.running import Life
from eunomia.reproduction.peers.sheet import read
from eunomia.reproduction.table import Request
from eunomia.run import InlineAdviser, run
from eunomia.throughputs import load

RESULTS = "upstream_jct_by_job_load1.0.csv"
NODES = [Node(type="t4", accelerators=4)] * 16
POLICIES = ("tiresias", "optimus")
NEAR = 0.02  # of a mean JCT, where step times are not quite the same
OTHER_TIMES = (
    "SciPy is not installed, so times of placements that nobody measured are interpolated otherwise than there"
)
ALONE = "ncf"  # runs on one accelerator only


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/pollux."""
    return (folder / RESULTS).is_file()


def reproduce(folder: Path, request: Request) -> Found:
    """Compare the two schedulers on every workload of the results."""
    found = Found()
    inputs = next((place for place in folder.resolve().parents if (place / WORKLOADS).is_file()), None)
    if inputs is None or not (inputs / MEASURED).is_dir():
        found.notes.append(f"pollux: {WORKLOADS} and {MEASURED} stand in no folder above {folder}: nothing was run")
        return found
    published = read(folder / RESULTS, numbers=POLICIES, texts=("workload", "name"))
    measured = profiles(inputs / MEASURED)
    for policy in POLICIES:
        for workload, jobs in trainings(inputs / WORKLOADS, measured).items():
            rows = [row for row, name in enumerate(published.texts["workload"]) if name == workload]
            theirs = {published.texts["name"][row]: published.numbers[policy][row] for row in rows}
            if theirs:
                series = f"pollux {workload} {policy}"
                request.tell(series)
                ends = completions(jobs, policy)
                submitted = {job.name: job.submitted for job in jobs}
                near = None if has_qhull() else NEAR
                source = f"pollux/{RESULTS}"
                found.rows += compared(series, _lives(theirs, submitted), ends, submitted, source, near=near)
    if not has_qhull():
        found.notes.append(f"pollux: {OTHER_TIMES}; {INSTALL} to take theirs")
    return found


def _lives(jct: Mapping[str, float], submitted: Mapping[str, float]) -> dict[str, Life]:
    return {name: Life(float("nan"), submitted[name] + seconds) for name, seconds in jct.items()}


def completions(trainings: list[Training], policy: str) -> dict[str, Life]:
    """Run the jobs to their ends under `tiresias` or `optimus`."""
    widest: Callable[[Training], int] = _asked if policy == "tiresias" else _most
    topology = Topology.of(NODES)
    jobs = [
        Job(
            job_id=job.name,
            sequence=row,
            submitted=job.submitted,
            total_steps=1.0,  # its progress is the world's own affair
            scale_factor=job.accelerators if policy == "tiresias" else 1,
            other_shapes=() if policy == "tiresias" else tuple(range(2, min(widest(job), topology.devices) + 1)),
        )
        for row, job in enumerate(trainings)
    ]
    world = MinuteWorld(trainings, jobs, topology)
    asked: Policy = TwoQueues() if policy == "tiresias" else OracleOptimus(world.present, widest)
    scheduler = Scheduler(topology, asked.info, Leases(), Belief(load("uniform", topology.types)))
    run(scheduler, world, InlineAdviser(asked))
    return {job.name: Life(float("nan"), float("nan") if job.completed is None else job.completed) for job in trainings}


def _asked(job: Training) -> int:
    return job.accelerators


def _most(job: Training) -> int:
    return 1 if job.profile.name == ALONE else job.batch // job.profile.min_local_batch
