"""Our policies in the rounds of Shockwave's simulator, beside its own results and beside 32 real accelerators.

Many optima are equally good, and which of them a solver returns decides which jobs run a round earlier; so only means
are asked to be near. Where a policy offers the central point of its optima, which interior-point solvers such as theirs
return, both are shown. With the shares of that system's own solver (ECOS) every job of the runs of max-min, OSSP and
max-sum ends at the same hundredth of a second, so the rounds themselves differ in nothing.

Two of its policies, as in commit e07dd20, take no account of how many accelerators a job wants: Gandiva-Fair gives each
job the cluster divided by the number of jobs, and AlloX (with α = 0.2 where none is given) matches each job to a single
accelerator. What is equal here to all printed digits is the re-run of AlloX; the stored one was made with other ties.

Beside the real runs the data lack what decides how near a simulation can come: steps/s on those machines (the table
holds profiles, and jobs that hardly waited took 11 to 13 % longer), how long each restart took, when jobs really ran,
and which schedule was followed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.peers.job_comparison import JobComparison
from eunomia_reproduction.peers.peer_sheet import read
from eunomia_reproduction.peers.running import mean
from eunomia_reproduction.peers.shockwave.allocation import asking
from eunomia_reproduction.peers.shockwave.inputs import TYPE, read_rates, read_trace
from eunomia_reproduction.peers.shockwave.rounds import ShockwaveRounds
from eunomia_reproduction.peers.shockwave.training import BatchScalingJob
from eunomia_reproduction.table import FigureRow, Request


@dataclass(frozen=True, slots=True)
class Asked:
    """One of our policies in place of one of theirs."""

    run: str  # their name of it
    policy: str
    point: str = ""  # which of many optima; empty = whichever comes first
    near: float | None = 0.03  # of the simulated run; None = not asked
    real: bool = True  # compared with the real run too
    gangs_as_one: bool = False  # their policy takes no account of how many accelerators a job wants


POLICIES = (
    Asked("max_min_fairness", "max_min_fairness?types=agnostic"),
    Asked("max_min_fairness", "max_min_fairness?types=agnostic&point=central", "central", real=False),
    Asked("min_total_duration", "makespan?types=agnostic"),
    Asked("min_total_duration", "makespan?types=agnostic&point=central", "central", real=False),
    Asked("max_sum_throughput_perf", "max_throughput?normalised=false"),
    Asked("finish_time_fairness", "finish_time_fairness?types=agnostic", near=None),
    Asked("finish_time_fairness", "finish_time_fairness?types=agnostic&point=central", "central", real=False),
    Asked("allox", "allox?queues=machines&alpha=0.2", gangs_as_one=True),
    Asked("gandiva_fair", "isolated", real=False, gangs_as_one=True),  # it divides the cluster by the number of jobs
)
RATES = "tacc_isolated_throughputs.json"
SIMULATED = re.compile(r"upstream_sim_(\d+)gpu")  # a folder of results; its name says how many accelerators
PAIRED = "upstream_sim_vs_physical_{}gpu"  # real runs on as many
REAL_JCT, REAL_MAKESPAN = 0.087, 0.13  # what that system's own simulation was off by at worst


def is_here(folder: Path) -> bool:
    """Say whether this folder is laid out like data/peers/shockwave."""
    return (folder / RATES).is_file() and any(folder.glob("*.trace"))


def reproduce(folder: Path, request: Request) -> JobComparison:
    """Compare six policies with the simulated and the physical runs. Raises InvalidInput where none can be."""
    found, rates = JobComparison(), read_rates(folder / RATES)
    trace, *others = sorted(folder.glob("*.trace"))
    read_trace(trace, rates)
    sizes = _sizes(folder)
    for capacity in sizes:
        _compare(folder, trace, capacity, f"{capacity}gpu" if len(sizes) > 1 else "", request, found)
    names = ", ".join(dict.fromkeys(asked.run for asked in POLICIES))
    found.notes.append(
        f"shockwave: compared are {names}, in mean JCT and makespan; no other column of the summaries is"
    )
    found.notes += [
        f"shockwave: not compared: {other.name}; the results are taken to be of {trace.name}" for other in others
    ]
    return found.settled()


def _sizes(folder: Path) -> list[int]:
    """Return how many accelerators there are results for. Raises InvalidInput where there are none."""
    named = (SIMULATED.fullmatch(place.name) for place in folder.iterdir() if place.is_dir())
    sizes = sorted({int(match[1]) for match in named if match})
    if not sizes or sizes[0] < 1:
        rule = "it holds no results: no folder upstream_sim_<accelerators>gpu with at least 1 accelerator"
        fix = "name the folder of results so, for example upstream_sim_32gpu"
        raise InvalidInput([Problem(file=str(folder), rule=rule, fix=fix)])
    return sizes


def _compare(folder: Path, trace: Path, capacity: int, label: str, request: Request, found: JobComparison) -> None:
    """Add the rows and the figure of one cluster."""
    rates = read_rates(folder / RATES)
    simulation, paired = f"upstream_sim_{capacity}gpu", PAIRED.format(capacity)
    curves: list[FigureCurve] = []
    count = 0
    for asked in POLICIES:
        series = " ".join(filter(None, ("shockwave", label, asked.run, asked.point)))
        with found.trying(series):
            jobs = read_trace(trace, rates)
            _refuse_wide(trace, jobs, capacity)
            count = len(jobs)
            simulated = _simulated(folder / simulation / "summary.csv", asked.run)
            by_job = _by_job(folder / simulation / "jct_by_job.csv", asked.run, jobs)
            real = _real(folder / paired / "jct_by_job.csv", f"{asked.run}_phys", jobs)
            if simulated is None:
                found.notes.append(f"{series}: not compared: {simulation}/summary.csv says nothing of it")
            if real is None and asked.real:
                found.notes.append(f"{series} physical: not compared: {paired}/jct_by_job.csv says nothing of it")
            if simulated is None and real is None:
                continue
            request.tell(f"{series}: {asked.policy}")
            rounds = ShockwaveRounds(capacity, asking(asked.policy, TYPE, capacity, gangs_as_one=asked.gangs_as_one))
            makespan = rounds.run(jobs)
            jct = [rounds.completed[job.name] - job.submitted for job in jobs]
            measured, source = (mean(jct), makespan), f"shockwave/{simulation}/summary.csv"
            found.rows += _beside(series, source, simulated, measured, (asked.near, asked.near))
            if asked.real:
                near, source = (REAL_JCT, REAL_MAKESPAN), f"shockwave/{paired}/jct_by_job.csv"
                found.rows += _beside(f"{series} physical", source, real, measured, near)
                curves += _curves(asked.run, by_job, jct)
    if curves:
        found.figures.append(_figure(curves, label, count, capacity))


def _refuse_wide(trace: Path, jobs: Sequence[BatchScalingJob], capacity: int) -> None:
    """Raise InvalidInput for jobs that would never run."""
    wide = [row for row, job in enumerate(jobs, 1) if job.accelerators > capacity]
    if wide:
        size = jobs[wide[0] - 1].accelerators
        rule = f"a job of {size} accelerators never runs on {capacity}"
        fix = "give the trace of these results"
        raise InvalidInput([Problem(file=str(trace), row=wide[0], value=str(size), rule=rule, fix=fix)])


def _simulated(path: Path, run: str) -> tuple[float, float] | None:
    """Return mean JCT and makespan of a simulated run; None where it is not there."""
    if not path.is_file():
        return None
    summary = read(path, numbers=("avg_jct_s", "makespan_s"), texts=("run",))
    places = [place for place, name in enumerate(summary.texts["run"]) if name == run]
    if len(places) > 1:
        rule, fix = "a run has one line", "keep one of them"
        raise InvalidInput([Problem(file=str(path), row=places[1] + 2, column="run", value=run, rule=rule, fix=fix)])
    return next(((summary.numbers["avg_jct_s"][at], summary.numbers["makespan_s"][at]) for at in places), None)


def _by_job(path: Path, run: str, jobs: list[BatchScalingJob]) -> list[float] | None:
    """Return the JCT of each job in one run; None where it is not there. Raises InvalidInput for other jobs."""
    if not path.is_file():
        return None
    sheet = read(path, maybe=(run,), rest=True)
    jct = sheet.numbers.get(run)
    if jct is not None and len(jct) != len(jobs):
        rule = f"it has {len(jct)} jobs, the trace {len(jobs)}"
        raise InvalidInput([Problem(file=str(path), rule=rule, fix="give results of this trace")])
    return jct


def _real(path: Path, run: str, jobs: list[BatchScalingJob]) -> tuple[float, float] | None:
    """Return mean JCT and the last end of a real run, from its jobs; None where there is none.

    Its summary is not asked for the makespan: that of finish-time fairness ends before the last job of that run.
    """
    jct = _by_job(path, run, jobs)
    if jct is None:
        return None
    return mean(jct), max(job.submitted + seconds for job, seconds in zip(jobs, jct, strict=True))


def _beside(
    series: str,
    source: str,
    theirs: tuple[float, float] | None,
    measured: tuple[float, float],
    near: tuple[float | None, float | None],
) -> list[FigureRow]:
    """Return rows for the mean JCT and the makespan of one of their runs; none where it is not there."""
    if theirs is None:
        return []
    return [
        FigureRow(
            series=series,
            quantity=quantity,
            unit="s",
            published=published,
            measured=value,
            tolerance=tolerance,
            source=source,
        )
        for quantity, published, value, tolerance in zip(("jct_mean", "makespan"), theirs, measured, near, strict=True)
    ]


def _curves(name: str, theirs: list[float] | None, jct: list[float]) -> list[FigureCurve]:
    if theirs is None:
        return []
    part = [(k + 1) / len(jct) for k in range(len(jct))]
    return [
        FigureCurve(name=name, x=sorted(theirs), y=part, published=True),
        FigureCurve(name=name, x=sorted(jct), y=part),
    ]


def _figure(curves: list[FigureCurve], label: str, jobs: int, capacity: int) -> Figure:
    return Figure(
        name="-".join(filter(None, ("peers-shockwave", label))),
        title=f"Shockwave's {jobs} jobs on {capacity} accelerators: completion times",
        x_label="JCT (s)",
        y_label="part of the jobs",
        curves=tuple(curves),
        steps=True,
    )
