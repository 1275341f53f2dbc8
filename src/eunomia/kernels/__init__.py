"""Functions over arrays that are interpreted until compiling them pays, with bit-identical results.

`@kernel` marks a function that numba can compile. When the processes of this machine have interpreted it for half as
long as compiling takes, a process beside the run compiles it (`kernels.ahead`); a run that has interpreted it for as
long by itself compiles it. So small runs never wait for a compiler. No compiler option that may change a value is used,
so that both give the same bits (decision notes 0034 and 0093).

`EUNOMIA_KERNELS=compiled` compiles each kernel at its first call, `EUNOMIA_KERNELS=interpreted` or
`NUMBA_DISABLE_JIT=1` none. Importing this module imports no compiler, sets no environment variable and creates no file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from eunomia.kernels.dispatch import KERNELS, PROCESS, Kernel, announce_compiling, environment_mode

__all__ = ["KERNELS", "PROCESS", "VALUE_SAFE", "Kernel", "WorkLeft", "announce_compiling", "kernel", "load_compiler"]

Function = TypeVar("Function", bound=Callable[..., Any])

VALUE_SAFE = frozenset({"nnan", "ninf", "nsz"})  # fastmath flags that do not change finite values


def kernel(*, allocates: bool | None = None, reads_all: bool = True, **options: Any) -> Callable[[Function], Function]:
    """Mark a function for compiling.

    allocates: False for a kernel that creates no array; it is compiled without reference counting, which costs more
    than a small kernel does. numba refuses it if it creates an array, and if it returns one only such kernels may call
    it. True for a kernel that creates arrays and is called by such a kernel. The default is that of its caller.
    reads_all: False for a kernel that is given whole tables and reads a few rows, so that an interpreted call is short.
    options: options of `numba.njit`. Raises ValueError for fastmath flags that may change values.
    """
    if not _fastmath_flags(options.get("fastmath", False)) <= VALUE_SAFE:
        raise ValueError(
            f"fastmath is {options['fastmath']!r}, which may change values, so that results would depend on the "
            f"processor; of these only {', '.join(sorted(VALUE_SAFE))} are allowed: write out the order of sums instead"
        )
    if allocates is not None:
        options["_nrt"] = allocates
    options.setdefault("error_model", "numpy")

    def decorate(function: Function) -> Function:
        KERNELS.append(Kernel(function, options, reads_all=reads_all))
        return cast(Function, KERNELS[-1])

    return decorate


def _fastmath_flags(fastmath: Any) -> frozenset[str]:
    if isinstance(fastmath, bool):
        return frozenset({"fast"}) if fastmath else frozenset()
    return frozenset(fastmath)


def load_compiler() -> None:
    """Import numba now, which the first compiled call would do; nothing where kernels are interpreted."""
    if environment_mode() != "interpreted":
        import numba  # noqa: F401


class WorkLeft:
    """What a loop still has to do that calls a kernel again and again; a kernel with much left is compiled at once."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._kernel = cast(Kernel, function)
        self._before_s = self._kernel.spent_s
        self._kernel.expected_s = 0.0

    def update(self, done: float) -> None:
        """Say what part of the work is done, above 0 and at most 1."""
        self._kernel.expected_s = (self._kernel.spent_s - self._before_s) * (1 / done - 1)
