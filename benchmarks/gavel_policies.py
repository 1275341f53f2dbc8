"""Gavel's policies, solved by our engines beside cvxpy with Clarabel and with HiGHS, and beside one read of the matrix.

`python -m benchmarks.gavel_policies` prints the table; --all lets general solvers try what takes them minutes. A time
is that of one draw, the median of three runs after a warm-up; of many draws the middle one is shown, and the worst.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.questions import Question, questions
from benchmarks.side_by_side import Comparison, Disagreement, demand_equal, on_one_thread
from eunomia.solvers.program import NoOptimum

DRAWS, RUNS = 3, 3
ALIKE = 1e-4  # relative: objectives further apart answer different questions
_ONCE = 2.0  # seconds from which one run of a general solver is enough
INSTALL = ".venv/bin/python -m pip install --no-deps --only-binary=:all: --require-hashes -r requirements-bench.lock"


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A general solver's answer: its time, and how far its objective is from ours; or why there is none."""

    name: str
    seconds: float = float("nan")
    apart: float = float("nan")  # relative; of several levels the largest
    failure: str = ""

    def __str__(self) -> str:
        found = f"{self.seconds:.2g} s, {self.apart:.0e} apart"
        return f"{self.name} {self.failure or found}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table, in seconds of CPU time."""

    question: Question
    middle_s: float
    worst_s: float
    draws: int
    read_s: float | None
    rivals: tuple[Rival, ...]

    @property
    def best(self) -> Rival | None:
        """Return the fastest general solver, if one has an answer."""
        able = [rival for rival in self.rivals if not rival.failure]
        return min(able, key=lambda rival: rival.seconds, default=None)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield ours beside the best general solver, beside one read of the matrix, and beside the worst draw."""
        name, n = f"{self.question.problem}, {self.question.types} types", self.question.jobs
        if self.best:
            what = f"cvxpy, {self.best.name}: objectives {self.best.apart:.0e} apart"
            yield Comparison(name=name, n=n, ours_s=self.middle_s, other_s=self.best.seconds, other=what)
        if self.read_s:
            what = "one read of the throughput matrix"
            yield Comparison(name=name, n=n, ours_s=self.middle_s, other_s=self.read_s, other=what)
        what = f"the slowest of {self.draws} draws, the middle one being ours"
        yield Comparison(name=name, n=n, ours_s=self.middle_s, other_s=self.worst_s, other=what)


def timed(way: Callable[[], Any], once: float = float("inf")) -> tuple[float, Any]:
    """Return the median CPU time of some runs, of one alone where it takes longer than `once`, and the answer."""
    spent: list[float] = []
    while len(spent) < RUNS:
        before = time.process_time()
        answer = way()
        spent.append(time.process_time() - before)
        if spent[0] > once:
            break
    return statistics.median(spent), answer


def measure(question: Question, draws: int, general: Any) -> Row:
    """Time one question on some draws; the general solvers on the first."""
    ours, reads = [], []
    rivals: tuple[Rival, ...] = ()
    for seed in range(-1, draws):  # −1: the warm-up
        problem = question.draw(max(seed, 0))
        try:
            seconds, answer = timed(partial(question.ours, problem))
        except NoOptimum as error:
            raise Unproven(f"{question.problem}, {question.jobs} × {question.types}, draw {seed}: {error}") from error
        if seed < 0:
            continue
        ours.append(seconds)
        if question.matrix:
            reads.append(timed(question.matrix(problem).T.sum)[0])
        if seed == 0 and general:
            rivals = _rivals(question, problem, question.value(problem, answer), general)
    return Row(
        question=question,
        middle_s=statistics.median(ours),
        worst_s=max(ours),
        draws=draws,
        read_s=statistics.median(reads) if reads else None,
        rivals=rivals,
    )


def _rivals(question: Question, problem: Any, value: Any, general: Any) -> tuple[Rival, ...]:
    found = []
    for name, other in question.others.items():
        try:
            seconds, theirs = timed(partial(other, general, problem), _ONCE)
        except general.Unsolved as unsolved:
            found.append(Rival(name=name, failure=str(unsolved)))
            continue
        apart = float(np.max(np.abs(np.asarray(theirs) / value - 1)))
        demand_equal(apart <= ALIKE, f"{question.problem}, {name}", question.jobs)
        found.append(Rival(name=name, seconds=seconds, apart=apart))
    return tuple(found)


class Unproven(RuntimeError):
    """One of our engines gave no optimum."""


def _general() -> Any:
    """Return the module of general solvers, or None where they are not installed."""
    if find_spec("cvxpy") is None or find_spec("clarabel") is None:
        print(f"No general solver is measured, cvxpy and clarabel are missing; type: {INSTALL}", file=sys.stderr)
        return None
    return import_module("benchmarks.general")


def cases() -> Iterator[Comparison]:
    """Yield the comparisons of `make bench`."""
    general = _general()
    for question in questions():
        yield from measure(question, DRAWS, None if question.patient else general).comparisons()


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f}" if seconds >= 0.1 else f"{seconds * 1e3:.3g}"


def _cells(row: Row) -> Iterator[str]:
    """Return the cells of a row of the printed table."""
    question = row.question
    yield from (question.problem, f"{question.jobs:,}", str(question.types))
    yield from (_milliseconds(row.middle_s), _milliseconds(row.worst_s))
    yield f"{row.middle_s / row.read_s:,.0f}" if row.read_s else "–"
    yield "; ".join(map(str, row.rivals)) or "–"
    yield f"{row.best.seconds / row.middle_s:,.0f}" if row.best else "–"


def main() -> int:
    """Print the table, in Markdown; return 1 when an engine failed or answers disagree."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gavel_policies", description=__doc__)
    parser.add_argument("problem", nargs="?", default="", help="only problems that start so, such as max-min; all")
    parser.add_argument("--all", action="store_true", help="let general solvers try the larger sizes too")
    parser.add_argument("--alone", action="store_true", help="leave the general solvers out")
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"random draws of each question; {DRAWS}")
    parser.add_argument("--jobs", type=int, help="only tables of so many jobs; all")
    asked = parser.parse_args()
    print(f"| problem | jobs | types | ours, ms | worst of {asked.draws}, ms | reads | cvxpy with … | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |")
    general, failed = None if asked.alone else _general(), False
    for question in questions():
        if not question.problem.startswith(asked.problem) or asked.jobs not in (None, question.jobs):
            continue
        try:
            row = measure(question, asked.draws, general if asked.all or not question.patient else None)
        except (Unproven, Disagreement) as defect:
            print(defect, file=sys.stderr)
            failed = True
            continue
        print("|", " | ".join(_cells(row)), "|", flush=True)
    return int(failed)


if __name__ == "__main__":
    on_one_thread()
    sys.exit(main())
