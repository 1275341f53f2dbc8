"""How long it takes until `eunomia --help` has answered, against Python alone."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.side_by_side import Comparison, compare


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def _children_s() -> float:
    """Return the CPU time of the processes that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cases() -> Iterator[Comparison]:
    """Yield the one comparison."""
    ours, other = partial(_run, "-m", "eunomia", "--help"), partial(_run, "-c", "pass")
    ours()
    other()  # files are in memory from now on
    yield compare("start-up: eunomia --help", 1, ours, other, "python -c pass", clock=_children_s, repeats=5)
