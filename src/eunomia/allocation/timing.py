"""Measures how long a policy takes, apart from compiling and loading its code on the first ask of a process."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

from eunomia.kernels import PROCESS

Answer = TypeVar("Answer")

BRIEF_S = 2.0  # an ask that takes longer is not repeated: loading code is a small part of it
_loaded: set[type] = set()  # policies whose code this process has loaded


def timed(policy: object, ask: Callable[[], Answer]) -> tuple[Answer, float, float]:
    """Return the answer, the seconds that it took, and the seconds of compiling and loading code.

    A brief ask is repeated on the first ask of a policy, and when anything was compiled.
    """
    before, began = PROCESS.compiling_s, perf_counter()
    answer = ask()
    took = perf_counter() - began
    compiled = PROCESS.compiling_s - before
    first, own = type(policy) not in _loaded, took - compiled
    _loaded.add(type(policy))
    if own > BRIEF_S or not (first or compiled):
        return answer, own, compiled
    began = perf_counter()
    answer = ask()
    own = perf_counter() - began
    return answer, own, max(took - own, 0.0)
