"""How time grows with the number of jobs: each policy at n, 4 n and 16 n jobs, and the exponent of n.

    python -m benchmarks growth [--against CHECKOUT] [--policy NAME …] [--jobs N]

Orders play a whole run on 256 accelerators at an offered load of 4, so that three quarters of the jobs come to wait;
jobs hold one accelerator, as in the heaps of `benchmarks.heap_loop`, which are beside them. Shares are one decision
about jobs that all differ. Auctions and grants play a run on a quarter as many accelerators as jobs, at a load of 1.2,
with gangs. Each time is that of a process of its own, on one thread, after a warm-up with few jobs; versions take
turns.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import heap_loop
from benchmarks.side_by_side import REPEATS, demand_equal
from eunomia.model.arrays import Floats

ROOT = Path(__file__).parents[1]
STEPS = (1, 4, 16)
WARM = 40  # jobs
NODE = 8  # accelerators


@dataclass(frozen=True, kw_only=True)
class Family:
    """Policies that are measured in one way; `write` makes the files of a warm-up and of a measurement."""

    name: str
    policies: tuple[str, ...]
    jobs: int  # the least number
    write: Callable[[Path, str, int], Path]  # folder, policy, jobs


@dataclass(frozen=True, kw_only=True)
class Growth:
    """One policy at one size: medians in CPU seconds; None where there is nothing to compare with."""

    family: str
    policy: str
    jobs: int
    ours_s: float
    against_s: float | None
    plain_s: float | None


def _jobs(count: int, accelerators: int, load: float, sizes: Sequence[int]) -> tuple[Floats, Floats, Floats]:
    """Return submission, duration and size of each job, (job,), in order of submission."""
    rng = np.random.default_rng(count)
    size, duration = rng.choice(sizes, count).astype(float), rng.lognormal(8.0, 1.5, count)
    until = float((size * duration).sum()) / (load * accelerators)
    return np.sort(rng.uniform(0.0, until, count)), duration, size


def _deep_queue(count: int) -> tuple[Floats, Floats, Floats]:
    return _jobs(count, 256, 4.0, (1,))


def _run(folder: Path, policy: str, jobs: tuple[Floats, Floats, Floats], accelerators: int) -> Path:
    trace, scenario = folder / f"{len(jobs[0])}.csv", folder / f"{len(jobs[0])}.toml"
    rows = zip(*(column.tolist() for column in jobs), strict=True)
    lines = [f"{row},{at!r},{size:.0f},any,{duration!r}" for row, (at, duration, size) in enumerate(rows)]
    trace.write_text("\n".join(["job_id,submitted_s,scale_factor,job_type,duration_s", *lines, ""]))
    scenario.write_text(
        f'[cluster]\naccelerators = {{ v100 = {accelerators} }}\naccelerators_per_node = {NODE}\n'
        f'[workload]\ntrace = "{trace}"\n[throughputs]\nsource = "uniform"\n[policy]\nname = "{policy}"\n'
    )  # fmt: skip
    return scenario


def _order(folder: Path, policy: str, count: int) -> Path:
    return _run(folder, policy, _deep_queue(count), 256)


def _grants(folder: Path, policy: str, count: int) -> Path:
    accelerators = -(-count // (4 * NODE)) * NODE
    return _run(folder, policy, _jobs(count, accelerators, 1.2, (1, 1, 2, 4, 8)), accelerators)


def _shares(folder: Path, policy: str, count: int) -> Path:
    rng, path = np.random.default_rng(count), folder / f"{count}.npz"
    np.savez(
        path,
        types=np.array(["v100", "p100", "k80"]),
        capacity=np.full(3, max(count // 4, 8)),
        throughput=np.asfortranarray(rng.lognormal(size=(count, 3))),
        scale_factor=rng.choice((1, 1, 2, 4, 8), count),
    )
    return path


FAMILIES = (
    Family(name="order", policies=("fifo", "srtf", "las", "tiresias"), jobs=2_000, write=_order),
    Family(
        name="shares",
        policies=("max_min_fairness", "water_filling", "max_throughput", "proportional_fairness"),
        jobs=8_000,
        write=_shares,
    ),
    Family(name="grants", policies=("themis", "consolidated", "philly", "quincy"), jobs=64, write=_grants),
)
PLAIN = {"fifo": heap_loop.fifo, "srtf": heap_loop.srtf}


def _in_new_process(checkout: Path, policy: str, warm: Path, measured: Path) -> tuple[float, float]:
    """Return CPU seconds and the answer of the version in a checkout."""
    command = [sys.executable, str(ROOT / "benchmarks" / "growth_run.py"), policy, str(warm), str(measured)]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    found = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return float(found["cpu_s"]), float(found["answer"])


def measured(family: Family, policy: str, jobs: int, against: Path | None, folder: Path) -> Growth:
    """Return the times of a policy at one size. Raises Disagreement where two ways give different answers."""
    warm, file = family.write(folder, policy, WARM), family.write(folder, policy, jobs)
    versions = [ROOT] if against is None else [ROOT, against]
    found = [[_in_new_process(version, policy, warm, file) for version in versions] for _ in range(REPEATS)]
    answers = [answer for one in found for _, answer in one]
    plain_s = None
    if family.name == "order" and policy in PLAIN:
        submitted, duration, _ = (column.tolist() for column in _deep_queue(jobs))
        before = time.process_time()
        ends = PLAIN[policy](submitted, duration, 256)
        plain_s = time.process_time() - before
        answers.append(float(np.mean(np.array(ends) - np.array(submitted))))
    demand_equal(np.allclose(answers, answers[0], rtol=1e-6), policy, jobs)
    ours_s, *others_s = (statistics.median(one[place][0] for one in found) for place in range(len(versions)))
    return Growth(
        family=family.name,
        policy=policy,
        jobs=jobs,
        ours_s=ours_s,
        against_s=others_s[0] if others_s else None,
        plain_s=plain_s,
    )


def exponent(jobs: Sequence[int], seconds: Sequence[float | None]) -> float | None:
    """Return b of the least-squares fit seconds = a · jobs^b; None where a time is missing."""
    known = [value for value in seconds if value is not None and value > 0]
    if len(known) < len(jobs):
        return None
    x, y = np.log(np.array(jobs, dtype=float)), np.array([math.log(value) for value in known])
    x -= x.mean()
    return float((x * y).sum() / (x * x).sum())


def table(rows: Sequence[Growth]) -> Iterator[str]:
    """Yield the lines of one policy: its sizes, then the exponents."""
    columns = [[getattr(row, name) for row in rows] for name in ("ours_s", "against_s", "plain_s")]
    for place, row in enumerate(rows):
        cells = ["–" if column[place] is None else f"{column[place]:.3g} s" for column in columns]
        yield f"| {row.family} | `{row.policy}` | {row.jobs:,} | {' | '.join(cells)} |"
    powers = [exponent([row.jobs for row in rows], column) for column in columns]
    cells = ["–" if power is None else f"**{power:.2f}**" for power in powers]
    yield f"| | exponent | | {' | '.join(cells)} |"


def main(policies: Sequence[str], jobs: int | None, against: Path | None, out: Path) -> None:
    """Measure, print a Markdown table, write the numbers as JSON."""
    print("| family | policy | jobs | ours | against | heaps |")
    print("| --- | --- | ---: | ---: | ---: | ---: |", flush=True)
    every: list[Growth] = []
    for family in FAMILIES:
        for policy in family.policies:
            if policies and policy not in policies:
                continue
            with TemporaryDirectory() as folder:
                sizes = [(jobs or family.jobs) * step for step in STEPS]
                rows = [measured(family, policy, size, against, Path(folder)) for size in sizes]
            print("\n".join(table(rows)), flush=True)
            every += rows
    out.write_text(json.dumps([asdict(row) for row in every], indent=2) + "\n", encoding="utf-8")
