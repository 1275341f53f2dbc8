"""Functions over arrays that run interpreted until compiling them pays, with the same bits either way.

`@kernel` marks a function that numba can compile. Its first calls are plain Python. It is compiled when the time that
it has taken reaches what compiling it is estimated to cost. So a small run never waits for a compiler, and a large one
soon runs compiled code. No option of the compiler that may change a value is in use, so both give the same bits
(decision note 0034).

`EUNOMIA_KERNELS=compiled` compiles each kernel at its first call, `EUNOMIA_KERNELS=interpreted` or
`NUMBA_DISABLE_JIT=1` none at all. Importing this module imports no compiler, sets no environment variable and makes no
file.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from time import perf_counter
from typing import Any, TypeVar, cast

import numpy as np

from eunomia.kernels.cache import file_name, folder, is_busy, is_kept, kept_in, one_at_a_time
from eunomia.kernels.reach import reach, stamp

Function = TypeVar("Function", bound=Callable[..., Any])

# Estimates of what a kernel costs; `python -m benchmarks.first_call --costs` measures them.
COMPILING_S_PER_BYTE = 8e-4  # of the instructions that it reaches
LOADING_S = 0.005  # from the cache
IMPORTING_S = 0.3  # numba
INTERPRETING_S_PER_ELEMENT = 1e-6  # least time of an interpreted call, per element of its arrays
INNER = 3.0  # a kernel called by an interpreted one is compiled so much later: its caller may be compiled whole
WORTH_A_LINE_S = 2.0  # compiling that takes longer is announced
VALUE_SAFE = frozenset({"nnan", "ninf", "nsz"})  # liberties of the compiler that leave finite values as they are

LOG = logging.getLogger(__name__)  # says once in a process when compiling takes long


class Process:
    """What this process has spent on kernels, in seconds."""

    def __init__(self) -> None:
        self.is_interpreting = False  # a kernel, which may call others
        self.interpreted_s = 0.0
        self.compiling_s = 0.0  # loading from the cache is counted, too
        self.is_announced = False


PROCESS = Process()
KERNELS: list[Kernel] = []


class Kernel:
    """A function that is interpreted or compiled, whichever is less work so far.

    Compiled code calls it like a function of numba's: `_numba_type_`, `py_func` and `targetoptions` are what numba asks
    for.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options
        self.spent_s = 0.0  # on interpreted calls, without the compiling in them
        self.compiling_s = 0.0  # with the first call
        self.mode = ""  # "compiled" or "interpreted" overrule the environment
        self._ready: Any = None
        self._patience_s = LOADING_S  # no estimate is made before so much is spent

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the compiled function, or the interpreted one if that is less work."""
        if named:
            args = signature(self.py_func).bind(*args, **named).args
        if self._ready is not None:
            return self._ready(*args)
        if PROCESS.is_interpreting:
            return self._call_from_kernel(args)
        if self._pays(self.spent_s + INTERPRETING_S_PER_ELEMENT * _elements(args)) and self._may_compile():
            return self._compile_and_call(args)
        PROCESS.is_interpreting = True
        try:
            with np.errstate(all="ignore"):
                before = self.spent_s
                result = _plain(self._interpret(args))
                PROCESS.interpreted_s += self.spent_s - before
                return result
        finally:
            PROCESS.is_interpreting = False

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def name(self) -> str:
        """Its module and name."""
        return f"{self.py_func.__module__}.{self.py_func.__qualname__}"

    @functools.cached_property
    def file_name(self) -> str:
        """The name of its files in the cache, which changes with anything that it reaches."""
        return file_name(self.name, stamp(self))

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The function as Python calls it, kept in the cache; asking for it imports numba."""
        made = self._made(no_cfunc_wrapper=True)
        made._cache = kept_in(folder(), self)
        return made

    @functools.cached_property
    def inner(self) -> Any:
        """The function as other kernels call it: without the way in from Python, which takes long to compile."""
        from numba.core import types

        made = self._made(no_cfunc_wrapper=True, no_cpython_wrapper=True)
        resolve, plain = made.get_call_template, cast(Any, types).unliteral

        def resolve_once(args: Any, named: Any) -> Any:  # not once more for each number that a caller writes out
            return resolve(tuple(map(plain, args)), {name: plain(value) for name, value in named.items()})

        made.get_call_template = resolve_once
        compile_alone = made.compile

        def compile_for_caller(arguments: Any) -> Any:
            with _optimised_by_caller():
                return compile_alone(arguments)

        made.compile = compile_for_caller
        return made

    @property
    def _numba_type_(self) -> Any:
        return self.inner._numba_type_

    @property
    def cost_s(self) -> float:
        """Estimated seconds until compiled code is at hand."""
        importing = 0.0 if "numba" in sys.modules else max(IMPORTING_S - PROCESS.interpreted_s, 0.0)
        if is_kept(self):
            return importing + LOADING_S
        size = sum(len(each.py_func.__code__.co_code) for each in reach(self) if each._ready is None)
        return importing + COMPILING_S_PER_BYTE * size

    def _made(self, **options: bool) -> Any:
        import numba

        njit: Any = numba.njit
        return njit(**self.targetoptions, **options)(self.py_func)

    def _call_from_kernel(self, args: tuple[Any, ...]) -> Any:
        """Answer a kernel that is interpreted."""
        is_due = self.spent_s > INNER * self._patience_s or self.mode
        if is_due and self._pays(self.spent_s / INNER) and self._may_compile():
            return self._compile_and_call(args)
        return self._interpret(args)

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        began, compiling = perf_counter(), PROCESS.compiling_s
        try:
            return self.py_func(*args)
        finally:
            self.spent_s += perf_counter() - began - (PROCESS.compiling_s - compiling)

    def _pays(self, spent: float) -> bool:
        """Tell whether it is time to compile, for interpreting has cost as much."""
        mode = self.mode or _mode()
        if mode != "auto":
            return mode == "compiled"
        if spent < self._patience_s:
            return False
        cost = self.cost_s
        self._patience_s = min(cost, 2 * spent)  # an estimate looks at the cache, which takes time, too
        return spent >= cost

    def _may_compile(self) -> bool:
        """Tell whether to compile now: not while another process does, unless interpreting takes far too long."""
        is_urgent = self.spent_s > 3 * self.cost_s or is_kept(self) or (self.mode or _mode()) == "compiled"
        if not is_urgent and is_busy():
            self._patience_s = 1.5 * max(self.spent_s, self._patience_s)
            return False
        return True

    def _compile_and_call(self, args: tuple[Any, ...]) -> Any:
        """Call the function compiled, or loaded from the cache, for these types of arguments."""
        began = perf_counter()
        if PROCESS.compiling_s + self.cost_s > WORTH_A_LINE_S:
            announce_compiling()
        with one_at_a_time():
            result = self.dispatcher(*args)
        self._ready = self.dispatcher
        self.compiling_s = perf_counter() - began
        PROCESS.compiling_s += self.compiling_s
        return result


def kernel(*, allocates: bool | None = None, **options: Any) -> Callable[[Function], Function]:
    """Mark a function for compiling.

    allocates: False for a step that makes no array: it is compiled without counting who holds one, which costs more
    than a small step does. numba refuses one that makes an array after all. One that returns an array may be called by
    its like alone. True for one that makes arrays and is called by such a step. By default it is as its caller is.
    options: options of `numba.njit`, of those that change no value.
    """
    if not _liberties(options.get("fastmath", False)) <= VALUE_SAFE:
        raise ValueError(
            f"fastmath is {options['fastmath']!r}, which may change values, so that results would depend on the "
            f"processor; of these only {', '.join(sorted(VALUE_SAFE))} are allowed: write out the order of sums instead"
        )
    if allocates is not None:
        options["_nrt"] = allocates
    options.setdefault("error_model", "numpy")

    def made(function: Function) -> Function:
        KERNELS.append(Kernel(function, options))
        return cast(Function, KERNELS[-1])

    return made


@contextmanager
def _optimised_by_caller() -> Iterator[None]:
    """Leave what is compiled meanwhile as it is: the kernel that calls it takes it in and is optimised as a whole.

    Else each step would be optimised once more for each caller between it and Python. Numba's lock is held.
    """
    from numba.core.codegen import CPUCodeLibrary

    library: Any = CPUCodeLibrary
    optimise = library._optimize_final_module
    library._optimize_final_module = lambda one: None
    try:
        yield
    finally:
        library._optimize_final_module = optimise


def _liberties(fastmath: Any) -> frozenset[str]:
    if isinstance(fastmath, bool):
        return frozenset({"fast"}) if fastmath else frozenset()
    return frozenset(fastmath)


def _mode() -> str:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "interpreted"
    return os.environ.get("EUNOMIA_KERNELS", "auto")


def _elements(args: tuple[Any, ...]) -> int:
    """Return the number of elements of the arrays among the arguments."""
    total = 0
    for each in args:
        if isinstance(each, np.ndarray):
            total += each.size
        elif isinstance(each, tuple):
            total += _elements(each)
    return total


def _plain(value: Any) -> Any:
    """Return numbers as compiled code returns them."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is tuple:
        return tuple([_plain(each) for each in value])
    return value


def announce_compiling() -> None:
    """Log one line that compiling takes a while, once in a process."""
    if not PROCESS.is_announced:
        PROCESS.is_announced = True
        LOG.warning("Compiling numerical code for this machine; it is kept for later runs.")
