"""Functions over arrays that are interpreted until compiling them pays, with bit-identical results.

`@kernel` marks a function that numba can compile. It is compiled when the time spent on interpreted calls reaches the
estimated cost of compiling, so small runs never wait for a compiler. No compiler option that may change a value is
used, so that both give the same bits (decision note 0034).

`EUNOMIA_KERNELS=compiled` compiles each kernel at its first call, `EUNOMIA_KERNELS=interpreted` or
`NUMBA_DISABLE_JIT=1` none. Importing this module imports no compiler, sets no environment variable and creates no file.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from inspect import signature
from time import perf_counter
from typing import Any, TypeVar, cast

import numpy as np

from eunomia.kernels.cache import compile_lock, file_name, folder, is_cached, is_compiling, numba_cache
from eunomia.kernels.call_graph import kept_as_ir, reached_kernels, set_environments, source_hash

Function = TypeVar("Function", bound=Callable[..., Any])

# Estimates of what a kernel costs; `python -m benchmarks.first_call --costs` measures them.
COMPILING_S_PER_BYTE = 8e-4  # of the bytecode of all kernels that it reaches
LOADING_S = 0.005  # from the cache
IMPORTING_S = 0.3  # numba
INTERPRETING_S_PER_ELEMENT = 1e-6  # lower bound for an interpreted call, per element of its arrays
INNER_DELAY = 3.0  # factor for kernels called by an interpreted kernel, as compiling the caller includes them
ANNOUNCE_S = 2.0  # longer compiling is announced
VALUE_SAFE = frozenset({"nnan", "ninf", "nsz"})  # fastmath flags that do not change finite values

LOG = logging.getLogger(__name__)  # announces long compiling once in a process


class Process:
    """Seconds that this process has spent on kernels."""

    def __init__(self) -> None:
        self.is_interpreting = False  # inside an interpreted kernel
        self.interpreted_s = 0.0
        self.compiling_s = 0.0  # including loading from the cache
        self.is_announced = False
        self.is_background = False  # compiles ahead for others at a low priority, so they never wait for it


PROCESS = Process()
KERNELS: list[Kernel] = []


class Kernel:
    """A function that is interpreted or compiled, whichever has cost less so far.

    `_numba_type_`, `py_func` and `targetoptions` are the interface that numba needs to call it from compiled code.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], *, reads_all: bool = True) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options
        self._reads_all = reads_all  # of the arrays that it is given
        self.spent_s = 0.0  # on interpreted calls, without compiling during them
        self.expected_s = 0.0  # of interpreted calls that will follow, see `WorkLeft`
        self.compiling_s = 0.0  # including the first call
        self.mode = ""  # "compiled" or "interpreted" overrides the environment
        self._compiled: Any = None
        self._next_estimate_s = LOADING_S  # time spent at which the cost is estimated next

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the compiled or the interpreted function."""
        if named:
            args = signature(self.py_func).bind(*args, **named).args
        if self._compiled is not None:
            return self._compiled(*args)
        if PROCESS.is_interpreting:
            return self._call_from_kernel(args)
        more_s = INTERPRETING_S_PER_ELEMENT * _elements(args) if self._reads_all else 0.0
        due = max(self.spent_s + more_s, self.expected_s)
        if self._pays(due) and self._may_compile():
            return self._compile_and_call(args)
        PROCESS.is_interpreting = True
        try:
            with np.errstate(all="ignore"):
                before = self.spent_s
                result = _to_plain(self._interpret(args))
                PROCESS.interpreted_s += self.spent_s - before
                return result
        finally:
            PROCESS.is_interpreting = False

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def name(self) -> str:
        """Module and name."""
        return f"{self.py_func.__module__}.{self.py_func.__qualname__}"

    @functools.cached_property
    def file_name(self) -> str:
        """Name of its files in the cache, with the hash of everything that it reaches."""
        return file_name(self.name, source_hash(self))

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The numba function for calls from Python, with the cache; imports numba."""
        function = self._jit(no_cfunc_wrapper=True)
        function._cache = numba_cache(folder(), self)
        compile_alone = function.compile

        def compile_with_callees(arguments: Any) -> Any:
            result = compile_alone(arguments)
            set_environments(function)
            return result

        function.compile = compile_with_callees
        return function

    @functools.cached_property
    def inner(self) -> Any:
        """The numba function for calls from kernels, without the wrapper for Python, which is slow to compile."""
        from numba.core import types

        function = self._jit(no_cfunc_wrapper=True, no_cpython_wrapper=True)
        resolve, plain = function.get_call_template, cast(Any, types).unliteral

        def resolve_plain(args: Any, named: Any) -> Any:  # without literal types, which would be compiled separately
            return resolve(tuple(map(plain, args)), {name: plain(value) for name, value in named.items()})

        function.get_call_template = resolve_plain
        compile_alone = function.compile

        def compile_for_caller(arguments: Any) -> Any:
            with kept_as_ir():
                return compile_alone(arguments)

        function.compile = compile_for_caller
        return function

    @property
    def _numba_type_(self) -> Any:
        return self.inner._numba_type_

    @property
    def cost_s(self) -> float:
        """Estimated seconds to load or compile it."""
        importing = 0.0 if "numba" in sys.modules else max(IMPORTING_S - PROCESS.interpreted_s, 0.0)
        if is_cached(self):
            return importing + LOADING_S
        kernels = (each for each in reached_kernels(self) if each._compiled is None)
        size = sum(len(each.py_func.__code__.co_code) for each in kernels)
        return importing + COMPILING_S_PER_BYTE * size

    def _jit(self, **options: bool) -> Any:
        import numba

        njit: Any = numba.njit
        return njit(**self.targetoptions, **options)(self.py_func)

    def _call_from_kernel(self, args: tuple[Any, ...]) -> Any:
        """Return the result for an interpreted kernel."""
        is_due = self.spent_s > INNER_DELAY * self._next_estimate_s or self.mode
        if is_due and self._pays(self.spent_s / INNER_DELAY) and self._may_compile():
            return self._compile_and_call(args)
        return self._interpret(args)

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        started, compiling = perf_counter(), PROCESS.compiling_s
        try:
            return self.py_func(*args)
        finally:
            self.spent_s += perf_counter() - started - (PROCESS.compiling_s - compiling)

    def _pays(self, spent: float) -> bool:
        """Whether interpreting has cost as much as compiling would."""
        mode = self.mode or _mode()
        if mode != "auto":
            return mode == "compiled"
        if spent < self._next_estimate_s:
            return False
        cost = self.cost_s
        self._next_estimate_s = min(cost, 2 * spent)  # an estimate reads the cache folder, which takes time
        return spent >= cost

    def _may_compile(self) -> bool:
        """Whether to compile now: not while another process compiles, unless interpreting takes far longer."""
        is_urgent = self.spent_s > 3 * self.cost_s or is_cached(self) or (self.mode or _mode()) == "compiled"
        if not is_urgent and is_compiling():
            self._next_estimate_s = 1.5 * max(self.spent_s, self._next_estimate_s)
            return False
        return True

    def _compile_and_call(self, args: tuple[Any, ...]) -> Any:
        """Compile the function, or load it from the cache, and call it."""
        started = perf_counter()
        if PROCESS.compiling_s + self.cost_s > ANNOUNCE_S:
            announce_compiling()
        collects = gc.isenabled()
        gc.disable()  # numba makes many objects and little garbage: looking for it takes a tenth of the time
        try:
            with nullcontext() if PROCESS.is_background else compile_lock():
                result = self.dispatcher(*args)
        finally:
            if collects:
                gc.enable()
        self._compiled = self.dispatcher
        self.compiling_s = perf_counter() - started
        PROCESS.compiling_s += self.compiling_s
        return result


class WorkLeft:
    """What a loop still has to do that calls a kernel again and again; a kernel with much left is compiled at once."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._kernel = cast(Kernel, function)
        self._before_s = self._kernel.spent_s
        self._kernel.expected_s = 0.0

    def update(self, done: float) -> None:
        """Say what part of the work is done, above 0 and at most 1."""
        self._kernel.expected_s = (self._kernel.spent_s - self._before_s) * (1 / done - 1)


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
    if _mode() != "interpreted":
        import numba  # noqa: F401


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


def _to_plain(value: Any) -> Any:
    """Return a value with Python numbers, as compiled code returns them."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is tuple:
        return tuple([_to_plain(each) for each in value])
    return value


def announce_compiling() -> None:
    """Log that compiling takes a while, once in a process."""
    if not PROCESS.is_announced:
        PROCESS.is_announced = True
        LOG.warning("Compiling numerical code for this machine; it is kept for later runs.")
