"""The results of a case: what each file of them tells of its jobs, and which files are not compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem, Problems
from eunomia_reproduction.peers.job_comparison import JobComparison
from eunomia_reproduction.peers.peer_sheet import PeerSheet, read
from eunomia_reproduction.peers.running import Life
from eunomia_reproduction.rounding import half_a_digit

PREFIX = "jobs_"  # of the files that hold the results of one run each
Held = Callable[[float, float, float], float]  # of work in seconds, accelerators, and stops: seconds that it holds them


@dataclass(frozen=True, slots=True)
class Results:
    """What a peer reports of the jobs of one run."""

    lives: dict[str, Life]
    odd: dict[str, str]  # jobs of which another column is not what follows from these, and how


def published(
    path: Path, trace: PeerSheet, *, stops: str = "", begun: bool = True, waits: str = "", held: Held | None = None
) -> Results:
    """Return what a peer reports of each job: when it ended and, with the column `stops`, how often it was stopped.

    With `stops` it has to say when each job began too, unless `begun` is false. `waits` names a column of seconds that
    a job waited, which are those in which it was not `held`. Raises InvalidInput for jobs with two results.
    """
    columns = [name for name in ("start_time" if begun and stops else "", stops) if name]
    maybe = [name for name in (*trace.numbers, "jct", waits) if name]
    sheet = read(path, numbers=("end_time", *columns), texts=("job_id",), maybe=maybe)
    names, rows = sheet.texts["job_id"], range(len(sheet.texts["job_id"]))
    check_once(path, names)
    nan = [math.nan] * len(names)
    start, end, stopped = (sheet.numbers.get(name, nan) for name in ("start_time", "end_time", stops))
    lives = {names[row]: Life(start[row], end[row], stopped[row]) for row in rows}
    row_of = {name: row for row, name in enumerate(trace.texts["job_id"])}
    odd: dict[str, str] = {}
    for row in rows:
        if names[row] not in row_of:
            continue
        follows = {column: values[row_of[names[row]]] for column, values in trace.numbers.items()}
        size, submitted, work = follows.values()
        follows["jct"] = end[row] - submitted
        if waits:
            follows[waits] = follows["jct"] - (work if held is None else held(work, size, stopped[row]))
        for column, value in follows.items():
            reported = sheet.numbers[column][row] if column in sheet.numbers else value
            if abs(reported - value) > half_a_digit(repr(reported)):
                odd[names[row]] = (
                    f"{column} {reported:.10g} there, where {value:.10g} follows from its times and the trace"
                )
    return Results(lives, odd)


def check_once(path: Path, names: Collection[str]) -> None:
    """Raise InvalidInput with every job that has a second result."""
    problems, seen = Problems(str(path)), set[str]()
    for row, name in enumerate(names, 2):
        if name in seen:
            problems.add("a job has one result", "keep one of its rows", row=row, column="job_id", value=name)
        seen.add(name)
    problems.raise_if_any()


def tell_others(
    found: JobComparison, system: str, case: Path, compared: Collection[str], known: Collection[str] = ()
) -> None:
    """Note which results of a case are `known` and not compared; those of no known name are runs that failed."""
    names = sorted(path.stem.removeprefix(PREFIX) for path in case.glob(f"{PREFIX}*.csv"))
    left = [f"{PREFIX}{name}.csv" for name in names if name in known]
    if left:
        found.notes.append(f"{system} {case.name}: not compared: {', '.join(left)}")
    for name in names:
        if name not in compared and name not in known:
            rule, fix = f"{name!r} is none of {', '.join(compared)}", "give it one of these names, or leave it out"
            problem = Problem(file=str(case / f"{PREFIX}{name}.csv"), rule=rule, fix=fix)
            found.failed[f"{system} {case.name} {name}"] = InvalidInput([problem])
