"""Runs of Slurm's accounting as jobs: lines that repeat a run, runs of one job, and what a job held of each type."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.traces.accelerator_hours import HOUR_S, AcceleratorHours
from eunomia.traces.import_findings import ImportFindings
from eunomia.traces.sacct_demands import by_type
from eunomia.traces.sacct_runs import RUNNING, WAITING, Runs

CONTINUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "RESIZING", "REQUEUE_HOLD")  # a further run may follow
Spans: TypeAlias = tuple[tuple[float, float], ...]
SAME_JOB_S = 86_400.0  # between the end of a run and the next submission; an id is given again only later
OVERLAP_S = 3_600.0  # by which the next run of a job may start before the last one ended: clocks are changed


@dataclass(frozen=True, kw_only=True, eq=False)
class SacctJobs:
    """The runs in order of (job id, submission, start), and the first run of each job."""

    runs: Runs
    first: Ints  # (job,) position of its first run
    size: Ints  # (job,) number of runs
    again: Ints  # (job,) how many earlier jobs had the same id

    @property
    def last(self) -> Ints:
        """Position of the last run of each job."""
        return self.first + self.size - 1

    @property
    def job(self) -> Ints:
        """Job of each run."""
        return np.repeat(np.arange(len(self.first)), self.size)


def group_runs(runs: Runs, findings: ImportFindings) -> SacctJobs:
    """Return the runs by job: those of one id and user, unless so far apart that the id was given again."""
    runs = _each_once(runs, findings)
    ended_s = runs.over_s
    near = np.nan_to_num(runs.submitted_s[1:] - ended_s[:-1], nan=np.inf) <= SAME_JOB_S
    apart = runs.started_s[1:] < ended_s[:-1] - OVERLAP_S  # of nan: False
    same = (runs.key[1:] == runs.key[:-1]) & (runs.user[1:] == runs.user[:-1]) & ~apart
    follows = np.zeros(len(runs), dtype=np.bool_)
    follows[1:] = same & (near | runs.is_in(CONTINUED)[:-1])
    first = np.flatnonzero(~follows)
    size = np.diff(np.append(first, len(runs)))
    key = runs.key[first]
    again = np.zeros(len(first), dtype=np.int64)
    for m in np.flatnonzero(key[1:] == key[:-1]).tolist():  # rare: ids that were given again
        again[m + 1] = again[m] + 1
    findings.add("repaired", "jobs have the id of an earlier job; #2, #3 … is added to it", runs.row[first[again > 0]])
    several = np.repeat(size > 1, size)
    findings.add(
        "assumed", "jobs were requeued: one job each, submitted with its first run", runs.row[first[size > 1]],
        held_by=runs.row[several],
    )  # fmt: skip
    return SacctJobs(runs=runs, first=first, size=size, again=again)


def _each_once(runs: Runs, findings: ImportFindings) -> Runs:
    """Return the runs in order of (job id, submission, start), one line for each: that which knows most of it.

    A line that says how the run ended counts before one that says RUNNING, and the longer one of two alike; that a job
    waits says nothing where another line has its start.
    """
    rank = np.where(runs.is_in(WAITING), 0, np.where(runs.is_in(RUNNING), 1, 2))
    start = np.nan_to_num(runs.started_s, nan=np.inf)
    elapsed_s = np.nan_to_num(runs.elapsed_s, nan=-1.0)
    order = np.lexsort((runs.row, elapsed_s, rank, start, runs.submitted_s, runs.key))
    runs, start = runs.take(order), start[order]
    same = (runs.key[1:] == runs.key[:-1]) & (runs.submitted_s[1:] == runs.submitted_s[:-1])
    block = np.flatnonzero(np.append(True, ~same))
    starts = np.repeat(np.isfinite(start[block]), np.diff(np.append(block, len(runs))))
    drop = np.isinf(start) & starts
    drop[:-1] |= same & (start[1:] == start[:-1])
    rows = runs.row[drop]
    hours = None if findings.hours is None else -findings.hours.of(rows)
    what = "lines repeat a run that another line has too; the one that says how it ended counts, else the longer one"
    findings.add("repaired", what, rows, change=hours)
    return runs.take(np.flatnonzero(~drop)) if drop.any() else runs


@dataclass(frozen=True, kw_only=True, eq=False)
class JobParts:
    """What jobs held of each accelerator type: one part for most jobs, several where they held several types.

    Axes: (part,), by job. A part has one width, that which it had longest, and lasts as long as its accelerator-hours
    say at that width.
    """

    job: Ints
    type: tuple[str, ...]
    width: Ints
    lasted_s: Floats
    first: Ints  # position of its first run with accelerators
    last: Ints  # of the last one
    size: Ints  # number of its runs
    is_broken: Bools  # whether it was suspended, or had several runs
    gaps: dict[tuple[int, str], Spans]  # by (job, type), between the runs of those that had several; since 1970
    is_first: Bools  # whether no part of the job began before
    is_main: Bools  # whether it is the part of the job with most accelerator-hours

    @property
    def of_several_types(self) -> Bools:
        """Whether the job has further parts, (part,)."""
        return np.asarray(np.bincount(self.job)[self.job] > 1) if len(self.job) else np.zeros(0, dtype=np.bool_)

    def pauses(self, started_s: Floats, ended_s: Floats) -> tuple[Spans, ...]:
        """Return the times between the runs of each part, (part,), in seconds from its start; none without an end."""
        found: list[Spans] = [()] * len(self.job)
        for m in np.flatnonzero(self.size > 1).tolist():
            start, end = float(started_s[m]), float(ended_s[m])
            spans: list[tuple[float, float]] = []
            for begin, over in self.gaps.get((int(self.job[m]), self.type[m]), ()):
                reached = spans[-1][1] if spans else 0.0
                if reached < begin - start < over - start < end - start:
                    spans.append((begin - start, over - start))
            found[m] = tuple(spans)
        return tuple(found)

    def joined(self, other: JobParts) -> JobParts:
        """Return the parts of both, by job."""
        order = np.argsort(np.concatenate([self.job, other.job]), kind="stable")
        types = (*self.type, *other.type)
        columns = {
            each.name: np.concatenate([getattr(self, each.name), getattr(other, each.name)])[order]
            for each in fields(self)
            if each.name not in ("type", "gaps")
        }
        return JobParts(type=tuple(types[k] for k in order.tolist()), gaps=self.gaps | other.gaps, **columns)


def parts_of(jobs: SacctJobs, requeues: str, findings: ImportFindings) -> JobParts:
    """Return the parts of all jobs that held accelerators. `requeues` is sum, of all runs, or last, of the last one."""
    runs = jobs.runs
    job, held_s = jobs.job, np.nan_to_num(runs.elapsed_s)
    run, types, code, width = by_type(runs.resources, runs.held)
    held = held_s[run] > 0
    run, code, width = run[held], code[held], width[held]
    if requeues == "last" and len(run):
        latest = np.zeros(len(jobs.first), dtype=np.int64)
        np.maximum.at(latest, job[run], run)
        earlier = run < latest[job[run]]
        dropped = runs.row[run[earlier]]
        findings.add("left out", "earlier runs of requeued jobs: only the last one counts", np.unique(dropped))
        run, code, width = run[~earlier], code[~earlier], width[~earlier]
    order = np.lexsort((run, code, job[run]))
    run, code, width = run[order], code[order], width[order]
    owner = job[run]
    begin = np.flatnonzero(np.append(True, (np.diff(owner) != 0) | (np.diff(code) != 0))[: len(run)])
    size = np.diff(np.append(begin, len(run)))
    work = np.add.reduceat(width * held_s[run], begin) if len(begin) else np.zeros(0)
    most = np.maximum.reduceat(width, begin) if len(begin) else width
    varies = most != (np.minimum.reduceat(width, begin) if len(begin) else width)
    for m in np.flatnonzero(varies).tolist():  # rare
        inside = slice(begin[m], begin[m] + size[m])
        most[m] = _longest(width[inside], held_s[run[inside]])
    what = "runs are of jobs whose width changed from run to run: the job has the width of most of its hours, and its "
    varied = np.unique(runs.row[run[np.repeat(varies, size)]])
    findings.add("assumed", f"{what}duration keeps its accelerator-hours", varied)
    _note_tenants(runs, run, np.repeat(run[begin + size - 1], size), [types[k] for k in code.tolist()], width, findings)
    part_job = owner[begin]
    broken = (size > 1) | (np.add.reduceat(runs.suspended_s[run], begin) > 0 if len(begin) else False)
    starts, over_s = runs.started_s, runs.over_s
    gaps: dict[tuple[int, str], Spans] = {}
    for m in np.flatnonzero(size > 1).tolist():
        own = run[begin[m] : begin[m] + size[m]]
        spans = zip(over_s[own[:-1]].tolist(), starts[own[1:]].tolist(), strict=True)
        gaps[int(part_job[m]), types[code[begin[m]]]] = tuple((end, start) for end, start in spans if start > end)
    return JobParts(
        job=part_job,
        type=tuple(types[k] for k in code[begin].tolist()),
        width=most,
        lasted_s=work / most,
        first=run[begin],
        last=run[begin + size - 1],
        size=size,
        is_broken=broken,
        gaps=gaps,
        is_first=_is_best(part_job, -run[begin].astype(np.float64)),
        is_main=_is_best(part_job, work - 1e-9 * np.arange(len(begin))),
    )


def _note_tenants(runs: Runs, run: Ints, last: Ints, types: list[str], width: Ints, findings: ImportFindings) -> None:
    """Add the runs that name another tenant than the last run of their job, with the hours that change owners.

    Axes: (entry,), a run and type. `last` are the last runs.
    """
    code = np.asarray(runs.tenant.indices, dtype=np.int64)
    moved = np.flatnonzero(code[run] != code[last])
    if not len(moved):
        return
    names = [name or "" for name in runs.tenant.dictionary.to_pylist()]
    kinds = [types[k] for k in moved.tolist()]
    hours = (width * runs.elapsed_s[run] / HOUR_S)[moved].tolist()
    owners = [[names[k] for k in code[side[moved]].tolist()] for side in (last, run)]
    change = AcceleratorHours.summed(kinds, owners[0], hours) - AcceleratorHours.summed(kinds, owners[1], hours)
    what = "runs name another tenant than the last run of their job, for which they count"
    findings.add("assumed", what, np.unique(runs.row[run[moved]]), change=change)


def _longest(width: Ints, held_s: Floats) -> int:
    """Return the width with most accelerator-hours, the widest of equals."""
    hours = {each: float((width * held_s)[width == each].sum()) for each in sorted(set(width.tolist()), reverse=True)}
    return int(max(hours, key=lambda each: hours[each]))


def _is_best(job: Ints, value: Floats) -> Bools:
    """Return (part,) whether no part of the same job has a larger value."""
    best = np.full(int(job.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(best, job, value)
    return np.asarray(value == best[job], dtype=np.bool_)
