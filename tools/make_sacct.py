"""Writes a file as `sacct --parsable2` would, of any number of lines, from a trace that is scheduled by simulation.

    .venv/bin/python tools/make_sacct.py TRACE --to sacct.txt --lines 1000000

Jobs start and end as under first in, first out with backfilling on machines of two types; every job has the lines of
its steps, some are requeued, cancelled before they start, tasks of arrays, without accelerators, or cut short. Copies
of the trace follow one another in time until there are enough lines. The same arguments write the same file.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import numpy as np

from eunomia import read_trace, simulate

BEGAN = datetime(2024, 1, 1)
PER_NODE = 8
TYPES = ("v100", "nvidia_a100-sxm4-80gb")  # the first half of the machines, the others
HEADER = (
    "JobID|JobIDRaw|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|Suspended|Restarts|NNodes|"
    "NodeList|AllocTRES|ReqTRES|ExitCode|Timelimit"
)
STATE = {"finished": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELLED by 1001", "": "COMPLETED"}
GAP_S = 3 * 86_400.0  # between two copies of the trace


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("trace", type=Path, help="any trace that eunomia reads, or its folder")
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--nodes", type=int, default=133, help=f"machines of {PER_NODE} accelerators")
    parser.add_argument("--jobs", type=int, default=1_000_000_000, help="jobs of the trace that are used")
    given = parser.parse_args()
    written = 0
    with given.to.open("w", encoding="utf-8") as file:
        file.write(HEADER + "\n")
        for line in lines_of(given.trace, given.nodes, given.jobs):
            file.write(line + "\n")
            written += 1
            if written >= given.lines:
                return


def lines_of(trace: Path, nodes: int, most_jobs: int) -> Iterator[str]:
    """Yield lines without end."""
    jobs = read_trace(trace, "auto")
    keep = np.flatnonzero(jobs.scale_factor <= nodes * PER_NODE)[:most_jobs]
    cluster = {"accelerators": {"v100": nodes * PER_NODE}, "accelerators_per_node": PER_NODE}
    scenario = {
        "cluster": cluster,
        "workload": {"trace": str(trace.resolve()), "format": "auto", "max_jobs": int(min(most_jobs, len(jobs)))},
        "throughputs": {"source": "uniform"},
        "policy": {"name": "fifo", "backfill": "skip"},
    }
    done = simulate(scenario).jobs
    names = [jobs.job_id[m] for m in keep.tolist()]
    row_of = {name: m for m, name in enumerate(done["job_id"].tolist())}
    rows = np.array([row_of[name] for name in names if name in row_of])
    span_s = float(np.nanmax(done["finished_s"])) + GAP_S
    ids = count(1000)
    for copy in count():
        rng = np.random.default_rng(copy)
        yield from _copy(done, rows, nodes, copy * span_s, ids, rng)


def _copy(
    done: Mapping[str, np.ndarray],
    rows: np.ndarray,
    nodes: int,
    offset_s: float,
    ids: Iterator[int],
    rng: np.random.Generator,
) -> Iterator[str]:
    """Yield the lines of one copy of the trace, by start."""
    free = np.full(nodes, PER_NODE)
    ends: list[tuple[float, int, list[tuple[int, int]]]] = []
    started = done["first_started_s"][rows]
    for k in np.argsort(started, kind="stable").tolist():
        m = int(rows[k])
        start, end = float(started[k]), float(done["finished_s"][m])
        while ends and ends[0][0] <= start:
            for node, held in heapq.heappop(ends)[2]:
                free[node] += held
        width = int(done["scale_factor"][m])
        seats = _allocate(free, width)
        heapq.heappush(ends, (end, m, seats))
        tenant = str(done["tenant"][m]) or f"group{m % 12}"
        yield from _lines(next(ids), tenant, str(done["status"][m]), float(done["submitted_s"][m]) + offset_s,
                          start + offset_s, end + offset_s, width, [node for node, _ in seats], nodes, rng)  # fmt: skip


def _allocate(free: np.ndarray, width: int) -> list[tuple[int, int]]:
    """Return (machine, accelerators) for a gang, the fullest machine that holds it, else the emptiest ones."""
    fits = np.flatnonzero(free >= width)
    order = fits[np.argsort(free[fits], kind="stable")][:1] if len(fits) else np.argsort(-free, kind="stable")
    seats = []
    for node in order.tolist():
        held = min(width, int(free[node]))
        if held:
            free[node] -= held
            width -= held
            seats.append((node, held))
        if not width:
            break
    return seats


def _lines(
    number: int, tenant: str, status: str, submitted_s: float, start_s: float, end_s: float, width: int,
    places: list[int], nodes: int, rng: np.random.Generator,
) -> Iterator[str]:  # fmt: skip
    """Yield the lines of one job and of its steps, and now and then an irregular one."""
    kind = TYPES[places[0] >= nodes // 2]
    draw = rng.random()
    name = str(number) if draw > 0.05 else f"{number - number % 4}_{number % 4}"
    hosts, size, who = _compress(places), len(places), f"user{number % 97}|{tenant}|gpu"
    asked = f"billing={8 * width},cpu={8 * width},gres/gpu={width},mem={64 * width}G,node={size}"
    held = asked.replace("gres", f"gres/gpu:{kind}={width},gres")
    no_gpu = "cpu=4,mem=8G,node=1"
    if draw < 0.02:  # cancelled while it waited
        other = str(number + 5_000_000)
        times = f"{_date(submitted_s)}|{_date(submitted_s)}|None|{_date(start_s)}|0"
        yield _line(other, other, who, "CANCELLED by 1001", times, 0, 1, "None assigned", "", asked)
    if draw > 0.97:  # without accelerators
        other = str(number + 6_000_000)
        times = _times(submitted_s, start_s, end_s)
        yield _line(other, other, who, "COMPLETED", times, 0, 1, hosts, no_gpu, no_gpu)
    begin, restarts = submitted_s, 0
    if 0.10 < draw < 0.11 and end_s - start_s > 1200:  # a first run, which is requeued
        middle = start_s + (end_s - start_s) / 2
        times = _times(submitted_s, start_s, middle)
        yield _line(name, str(number), who, "REQUEUED", times, 0, size, hosts, held, asked)
        begin, start_s, restarts = middle, middle + 120, 1
    times = _times(begin, start_s, end_s)
    line = _line(name, str(number), who, STATE.get(status, "COMPLETED"), times, restarts, size, hosts, held, asked)
    yield line[: len(line) // 2] if draw > 0.9999 else line
    for step in ("batch", "extern", *("0",) * (size > 1)):
        tres = f"cpu=8,gres/gpu={width},mem=64G,node=1"
        ids = f"{name}.{step}", f"{number}.{step}"
        yield _line(*ids, f"|{tenant}|", "COMPLETED", times, 0, 1, f"gpu{places[0]:03d}", tres, "")


def _line(
    name: str, raw: str, who: str, state: str, times: str, restarts: int, size: int, hosts: str, held: str, asked: str
) -> str:
    """Return a line in the order of HEADER."""
    return f"{name}|{raw}|{who}|{state}|{times}|00:00:00|{restarts}|{size}|{hosts}|{held}|{asked}|0:0|1-00:00:00"


def _times(submitted_s: float, start_s: float, end_s: float) -> str:
    """Return Submit, Eligible, Start, End and ElapsedRaw."""
    at = _date(submitted_s)
    return f"{at}|{at}|{_date(start_s)}|{_date(end_s)}|{end_s - start_s:.0f}"


def _compress(places: list[int]) -> str:
    numbers = ",".join(f"{place:03d}" for place in sorted(places))
    return f"gpu[{numbers}]" if len(places) > 1 else f"gpu{numbers}"


def _date(at_s: float) -> str:
    return (BEGAN + timedelta(seconds=round(at_s))).isoformat()


if __name__ == "__main__":
    main()
