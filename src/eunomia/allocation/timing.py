"""How long a policy takes by itself: what the first question of a process pays for compiled code is told apart."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

from eunomia.kernels import PROCESS

Answer = TypeVar("Answer")

BRIEF_S = 2.0  # what takes no longer is asked once more; of what does, loading compiled code is no part to speak of
_loaded: set[type] = set()  # policies whose code this process has loaded


def timed(policy: object, ask: Callable[[], Answer]) -> tuple[Answer, float, float]:
    """Return the answer, the seconds that it took, and those that compiling and loading code took before it.

    The first time that a policy is asked, and when anything was compiled, a brief question is asked twice.
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
