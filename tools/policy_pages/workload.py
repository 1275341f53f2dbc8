"""The small workload of the page "Which policy should I use?": eight jobs of two tenants, played under each policy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eunomia.model.decisions import Start, Stop
from eunomia.model.events import JobFinished
from eunomia.model.job import Job
from eunomia.model.topology import Node
from eunomia.policies import POLICIES, build
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, WorldRun, play

HOUR_S = 3600.0
ROUND_S = 360.0  # who aims at a deadline meets it to a round
PRICES: Mapping[str, float | None] = {"v100": 2.4, "k80": 0.4}  # US$ per accelerator-hour
SPELLINGS: Mapping[str, str] = {"pop": "pop?parts=2", "throughput_per_cost": "throughput_per_cost?deadlines=true"}
VARIANTS = (
    "max_min_fairness?types=agnostic",
    "max_min_fairness?space_sharing=true",
    "max_min_fairness?point=closest",
)
# steps/s of one accelerator: image models need the v100, text models gain from it, tables hardly do.
RATES = DrawnRates(
    types=("v100", "k80"),
    by_kind={"image": (4.0, 1.0), "text": (2.0, 1.0), "table": (1.25, 1.0)},
    scaling=1.0,
    shared=0.8,
)


def _job(name: str, kind: str, submitted_h: float, work_h: float, size: int = 1, due_h: float = math.inf) -> Job:
    """Return a job that runs for `work_h` hours on its fastest type."""
    return Job(
        job_id=name,
        sequence=ord(name),
        submitted=submitted_h * HOUR_S,
        job_type=kind,
        scale_factor=size,
        total_steps=work_h * HOUR_S * float(RATES.solo_throughput(kind, size).max()),
        tenant="shop" if kind == "table" else "lab",
        deadline=due_h * HOUR_S,
    )


JOBS = (
    _job("a", "image", 0.0, 5.0, size=2),
    _job("b", "text", 0.0, 3.0),
    _job("c", "table", 0.0, 2.0, size=2, due_h=6.0),
    _job("d", "image", 0.5, 2.0, size=2, due_h=4.5),
    _job("e", "text", 1.0, 0.5),
    _job("f", "table", 1.0, 4.0),
    _job("g", "image", 1.5, 0.5, due_h=3.5),
    _job("h", "text", 2.0, 2.0, size=2),
)
WORLD = SmallWorld(nodes=(Node(type="v100", accelerators=2), Node(type="k80", accelerators=4)), jobs=JOBS, speeds=RATES)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a job kept its kind of seats."""

    begin: float  # hours
    end: float
    type: int
    beside: bool  # another job sat on the same accelerators


@dataclass(frozen=True, kw_only=True)
class Story:
    """What became of the workload under one policy."""

    spelling: str
    stretches: Mapping[str, tuple[Stretch, ...]]  # by job
    finished: Mapping[str, float]  # hours
    jct: float  # mean, hours
    makespan: float  # hours
    slowdown: float  # worst: JCT / run time alone on its fastest type
    cost: float  # US$
    late: int  # deadlines missed by more than a round
    preemptions: int


def all_stories() -> dict[str, Story]:
    """Play the workload under every policy of ours."""
    return {name: story(SPELLINGS.get(name, name)) for name in POLICIES}


def story(spelling: str) -> Story:
    """Play the workload under one policy."""
    played = play(build(spelling), WORLD, prices=PRICES)
    summary, jobs = played.figures.summary, played.figures.jobs
    deadline = {job.job_id: job.deadline for job in JOBS}
    return Story(
        spelling=spelling,
        stretches={job.job_id: tuple(_joined(_held(played, job.job_id))) for job in JOBS},
        finished={name: at / HOUR_S for name, at in played.finished.items()},
        jct=float(summary["jct_mean_s"] or 0.0) / HOUR_S,
        makespan=float(summary["makespan_s"] or 0.0) / HOUR_S,
        slowdown=float((jobs["jct_s"] / played.figures.alone_s).max()),
        cost=float(summary["cost_usd"] or 0.0),
        late=sum(at > deadline[name] + ROUND_S for name, at in played.finished.items()),
        preemptions=int(jobs["preemptions"].sum()),
    )


def _held(played: WorldRun, name: str) -> Iterator[Stretch]:
    """Yield the times in which a job held seats, start by start."""
    type_of = WORLD.topology.type
    began, type, beside = math.nan, 0, False
    for moment, decisions in played.story:
        ends = any(isinstance(event, JobFinished) and event.job_id == name for event in moment.events)
        for order in decisions:
            ends = ends or (isinstance(order, Stop) and name in order.job_ids)
        if ends and not math.isnan(began):
            yield Stretch(began / HOUR_S, moment.at / HOUR_S, type, beside)
            began = math.nan
        for order in decisions:
            if isinstance(order, Start) and name in (order.job_id, order.partner_id):
                began, type = moment.at, int(type_of[order.seats[0]])
                beside = order.partner_id is not None


def _joined(stretches: Iterator[Stretch]) -> Iterator[Stretch]:
    """Yield stretches with those of one kind that touch made one."""
    last: Stretch | None = None
    for one in stretches:
        if last and (last.type, last.beside) == (one.type, one.beside) and one.begin - last.end < 1e-9:
            last = Stretch(last.begin, one.end, one.type, one.beside)
            continue
        if last:
            yield last
        last = one
    if last:
        yield last
