"""What compilation costs: the first call of each family of engines in a new process, with and without its cache.

`python -m benchmarks.first_call PROBLEM` prints the CPU seconds of one first call, `python -m benchmarks.first_call
--costs` what compiling costs by the size of a kernel, which `eunomia.kernels` estimates.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.questions import LARGE, Question, questions
from benchmarks.side_by_side import Comparison
from eunomia.kernels import KERNELS
from eunomia.kernels.call_graph import reached_kernels

FAMILIES = (
    "max-min",
    "finish-time fairness",
    "water filling, load 8",
    "proportional fairness",
    "max throughput",
    "least cost with floors",
    "space sharing, 26 classes, all shares",
    "AlloX",
)


def question_of(problem: str) -> Question:
    """Return the question of that problem for three types and 100,000 jobs or the next number that there is."""
    able = [question for question in questions() if question.problem == problem and question.types == 3]
    return next((question for question in able if question.jobs >= LARGE), able[-1])


def first_call(question: Question) -> float:
    """Return the CPU seconds of one call."""
    problem = question.draw(0)
    before = time.process_time()
    question.ours(problem)
    return time.process_time() - before


def cases() -> Iterator[Comparison]:
    """Yield a comparison for each family."""
    for problem in FAMILIES:
        with TemporaryDirectory() as folder:
            compiled, cached = _in_new_process(problem, folder), _in_new_process(problem, folder)
        name, n = f"first call: {problem}", question_of(problem).jobs
        yield Comparison(name=name, n=n, ours_s=cached, other_s=compiled, other="nothing compiled before")


def _in_new_process(problem: str, cache: str) -> float:
    command = [sys.executable, "-m", "benchmarks.first_call", problem]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "EUNOMIA_KERNELS": "compiled"}
    return float(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)


def costs() -> None:
    """Print what compiling each kernel that the families call took, and the median by byte of its instructions."""
    for problem in FAMILIES:
        first_call(question_of(problem))
    found = []
    for one in (each for each in KERNELS if each.compiling_s > 0):
        size = sum(len(each.py_func.__code__.co_code) for each in reached_kernels(one))
        found.append(one.compiling_s / size)
        print(f"{one.compiling_s:7.2f} s  {size:6d} bytes  {1e3 * found[-1]:5.2f} ms/byte  {one.name}")
    print(f"median {1e3 * median(found):.2f} ms a byte")


if __name__ == "__main__":
    if sys.argv[1] == "--costs":
        with TemporaryDirectory() as folder:
            os.environ.update(NUMBA_CACHE_DIR=folder, EUNOMIA_KERNELS="compiled")
            costs()
    else:
        print(first_call(question_of(sys.argv[1])))
