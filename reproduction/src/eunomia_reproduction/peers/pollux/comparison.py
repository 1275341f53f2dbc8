"""Each workload at load 1.0 under the Tiresias and the Optimus of Pollux' simulator, job by job.

Three things the measurements do not say; they come from that simulator's code: a restart takes 30 s, yolov3 takes at
most 8 samples at once, and times of placements that were never measured are interpolated over a triangulation of those
that were. On a grid a triangulation is not unique: where ours is another one than theirs, so are some step times, and a
job that is not equal is then not a mistake (`scattered`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import InvalidInput, Problem, Problems
from eunomia.mechanisms.leases import Leases
from eunomia.model.job import Job
from eunomia.model.policy import Policy
from eunomia.model.topology import Node, Topology
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.throughputs import load
from eunomia_reproduction.peers.job_comparison import JobComparison, compared
from eunomia_reproduction.peers.peer_sheet import PeerSheet, read
from eunomia_reproduction.peers.pollux.inputs import MEASURED, WORKLOADS, profiles, trainings
from eunomia_reproduction.peers.pollux.scattered import has_qhull
from eunomia_reproduction.peers.pollux.schedulers import OracleOptimus, TwoQueues
from eunomia_reproduction.peers.pollux.training import PolluxJob
from eunomia_reproduction.peers.pollux.world import MinuteWorld
from eunomia_reproduction.peers.running import Life, mean
from eunomia_reproduction.peers.summary import Summary
from eunomia_reproduction.table import Request

RESULTS, MEANS, LOAD = "upstream_jct_by_job_load1.0.csv", "upstream_avg_jct.csv", "1.0"
NODES = [Node(type="t4", accelerators=4)] * 16
POLICIES = ("tiresias", "optimus")
NEAR = 0.02  # of a mean JCT, where step times are not quite the same
OTHER_TIMES = (
    "SciPy is not installed, so times of placements that were not measured are interpolated otherwise than there"
)
ALONE = "ncf"  # runs on one accelerator only


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/pollux."""
    return (folder / RESULTS).is_file()


def reproduce(folder: Path, request: Request) -> JobComparison:
    """Compare the two schedulers on every workload. Raises InvalidInput where nothing can be compared."""
    found = JobComparison()
    inputs = next((place for place in folder.resolve().parents if (place / WORKLOADS).is_file()), None)
    if inputs is None or not (inputs / MEASURED).is_dir():
        found.notes.append(f"pollux: {WORKLOADS} and {MEASURED} stand in no folder above {folder}: nothing was run")
        return found
    path, summary = folder / RESULTS, Summary.of(folder / MEANS, ("load", "policy"))
    published = read(path, maybe=POLICIES, texts=("workload", "name"), rest=True)
    there = set(published.texts["workload"])
    found.notes += [
        f"pollux {name}: not compared: {RESULTS} has no such column"
        for name in POLICIES
        if name not in published.numbers
    ]
    measured = profiles(inputs / MEASURED)
    near = None if has_qhull() else NEAR
    for policy in (name for name in POLICIES if name in published.numbers):
        means: dict[str, float] = {}
        workloads = trainings(inputs / WORKLOADS, measured)
        for workload, jobs in workloads.items():
            if workload not in there:
                found.notes.append(f"pollux {workload} {policy}: not compared: {RESULTS} says nothing of it")
                continue
            series, submitted = f"pollux {workload} {policy}", {job.name: job.submitted for job in jobs}
            with found.trying(series):
                theirs = _lives(_jct(path, published, workload, policy), submitted)
                request.tell(series)
                ends = completions(jobs, policy)
                means[workload] = mean([ends[job.name].end - job.submitted for job in jobs])
                found.rows += compared(series, theirs, ends, submitted, f"pollux/{RESULTS}", near=near)
        series = f"pollux {policy}"
        with found.trying(series):
            if len(means) == len(workloads):
                means["mean_avg_jct_s"] = mean(list(means.values()))
            source, checked = f"pollux/{MEANS}", has_qhull()
            found.rows += summary.beside(series, (LOAD, policy), means, source, checked=checked)
    found.failed |= _strangers(path, published, trainings(inputs / WORKLOADS, measured))
    others = sorted(published.texts.keys() - {"workload", "name"})
    if others:
        found.notes.append(f"pollux: {RESULTS}: not compared: columns {', '.join(others)}")
    found.notes += summary.notes("pollux")
    if not has_qhull():
        found.notes.append(f"pollux: {OTHER_TIMES}; {install_command('reproduce')} to take theirs")
    return found.settled()


def _jct(path: Path, published: PeerSheet, workload: str, policy: str) -> dict[str, float]:
    """Return the JCT of each job of a workload. Raises InvalidInput for jobs that have two."""
    rows = [row for row, name in enumerate(published.texts["workload"]) if name == workload]
    names = [published.texts["name"][row] for row in rows]
    problems = Problems(str(path))
    for place, name in enumerate(names):
        if name in names[:place]:
            problems.add("a job has one result", "keep one of its rows", row=rows[place] + 2, column="name", value=name)
    problems.raise_if_any()
    return {name: published.numbers[policy][row] for name, row in zip(names, rows, strict=True)}


def _strangers(path: Path, published: PeerSheet, known: Collection[str]) -> dict[str, InvalidInput]:
    """Return, by their names, the workloads of the results that cannot be run."""
    rule, fix = "there is no such workload", f"it is one of {', '.join(known)}"
    return {
        f"pollux {name}": InvalidInput([Problem(file=str(path), column="workload", value=name, rule=rule, fix=fix)])
        for name in dict.fromkeys(published.texts["workload"])
        if name not in known
    }


def _lives(jct: Mapping[str, float], submitted: Mapping[str, float]) -> dict[str, Life]:
    """Return when each job ended; one that was never submitted here is left for `compared` to find."""
    return {name: Life(float("nan"), submitted.get(name, 0.0) + seconds) for name, seconds in jct.items()}


def completions(trainings: list[PolluxJob], policy: str) -> dict[str, Life]:
    """Run the jobs to their ends under `tiresias` or `optimus`."""
    widest: Callable[[PolluxJob], int] = _asked if policy == "tiresias" else _most
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
    run(scheduler, world, InlinePolicyRunner(asked))
    return {job.name: Life(float("nan"), float("nan") if job.completed is None else job.completed) for job in trainings}


def _asked(job: PolluxJob) -> int:
    return job.accelerators


def _most(job: PolluxJob) -> int:
    return 1 if job.profile.name == ALONE else job.batch // job.profile.min_local_batch
