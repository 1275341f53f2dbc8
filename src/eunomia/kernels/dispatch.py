"""When a kernel is interpreted, compiled or loaded: the time that it has taken against what compiling it takes."""

from __future__ import annotations

import atexit
import functools
import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from inspect import signature
from time import perf_counter, thread_time
from typing import Any, cast

import numpy as np

from eunomia.kernels.arguments import count_elements, to_plain
from eunomia.kernels.cache import AHEAD, compile_lock, file_name, folder, is_cached, is_compiling, numba_cache
from eunomia.kernels.call_graph import kept_as_ir, reached_kernels, set_environments, source_hash
from eunomia.kernels.costs import add_costs, read_costs

# Estimates of what a kernel costs; `python -m benchmarks.first_call --costs` measures them.
COMPILING_S_PER_BYTE = 8e-4  # of the bytecode of all kernels that it reaches
LOADING_S = 0.005  # from the cache
IMPORTING_S = 0.3  # numba
INTERPRETING_S_PER_ELEMENT = 1e-6  # lower bound for an interpreted call, per element of its arrays
INNER_DELAY = 3.0  # factor for kernels called by an interpreted kernel, as compiling the caller includes them
AHEAD_PART = 0.5  # of the cost of compiling: so much interpreting by all processes has a kernel compiled ahead
PATIENCE = 2.0  # times the cost of compiling: so much interpreting by one process waits for what is compiled ahead
SHARED_FIRST_S = 0.25  # of interpreting, that a process adds to the shared costs before its end
SAMPLED_CALLS = 16  # of one the processor time is read, which takes a short call too long
ANNOUNCE_S = 2.0  # longer compiling is announced

LOG = logging.getLogger("eunomia.kernels")  # announces long compiling once in a process


class Process:
    """Seconds that this process has spent on kernels, of processor time, so that a busy machine changes no choice."""

    def __init__(self) -> None:
        self.is_interpreting = False  # inside an interpreted kernel
        self.interpreted_s = 0.0
        self.calls = 0  # of interpreted kernels by what is not one
        self.processor_share = 1.0  # processor time / time by the clock, as far as it was sampled
        self._sampled_s = [0.0, 0.0]  # both
        self.compiling_s = 0.0  # by the clock, including loading from the cache and waits for other processes
        self.compiling_cpu_s = 0.0  # processor time of that
        self.is_announced = False
        self.is_background = False  # compiles ahead for others at a low priority, so they never wait for it
        self._earlier_s: dict[str, float] | None = None  # of other processes, by kernel
        self._next_sharing_s = SHARED_FIRST_S  # of interpreting

    def earlier_s(self, kernel: Kernel) -> float:
        """Return for how long other processes had interpreted a kernel when this one first asked."""
        if self._earlier_s is None:
            place = folder()
            self._earlier_s = {} if place is None else read_costs(place)
            atexit.register(share_costs)
        return self._earlier_s.get(kernel.file_name, 0.0)

    def sample(self, processor_s: float, elapsed_s: float) -> None:
        """Take in how long a call took."""
        self._sampled_s[0] += processor_s
        self._sampled_s[1] += elapsed_s
        self.processor_share = min(self._sampled_s[0] / max(self._sampled_s[1], 1e-9), 1.0)

    def count(self, seconds: float) -> None:
        """Count time spent on interpreting, and add it to the shared costs when it has doubled."""
        self.interpreted_s += seconds
        if self.interpreted_s >= self._next_sharing_s:
            self._next_sharing_s = 2 * self.interpreted_s
            share_costs()


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
        self.shared_s = 0.0  # of `spent_s`: what has been added to the shared costs
        self.compiling_s = 0.0  # including the first call
        self.mode = ""  # "compiled" or "interpreted" overrides the environment
        self._compiled: Any = None
        self._next_estimate_s = LOADING_S  # time spent at which the cost is estimated next
        self._is_requested = False  # to be compiled ahead

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the compiled or the interpreted function."""
        if named:
            args = signature(self.py_func).bind(*args, **named).args
        if self._compiled is not None:
            return self._compiled(*args)
        if PROCESS.is_interpreting:
            return self._call_from_kernel(args)
        more_s = INTERPRETING_S_PER_ELEMENT * count_elements(args) if self._reads_all else 0.0
        due = max(self.spent_s + more_s, self.expected_s)
        if self._is_due(due, args):
            return self._compile_and_call(args)
        PROCESS.is_interpreting = True
        PROCESS.calls += 1
        is_sampled, before = PROCESS.calls % SAMPLED_CALLS == 1, self.spent_s
        elapsed, processor = (perf_counter(), thread_time()) if is_sampled else (0.0, 0.0)
        try:
            with np.errstate(all="ignore"):
                return to_plain(self._interpret(args))
        finally:
            PROCESS.is_interpreting = False
            if is_sampled:
                PROCESS.sample(thread_time() - processor, perf_counter() - elapsed)
            PROCESS.count(self.spent_s - before)

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
        if is_due and self._is_due(self.spent_s / INNER_DELAY, args):
            return self._compile_and_call(args)
        return self._interpret(args)

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        started, compiling = perf_counter(), PROCESS.compiling_s
        try:
            return self.py_func(*args)
        finally:
            elapsed = perf_counter() - started - (PROCESS.compiling_s - compiling)
            self.spent_s += elapsed * PROCESS.processor_share

    def _is_due(self, spent: float, args: tuple[Any, ...]) -> bool:
        """Whether to compile or load it now, as interpreting has cost as much; asks that it be compiled ahead."""
        mode = self.mode or environment_mode()
        if mode != "auto":
            return mode == "compiled"
        if spent < self._next_estimate_s:
            return False
        cost = self.cost_s  # an estimate reads the cache folder, which takes time
        self._next_estimate_s = min(cost, 2 * spent)
        if is_cached(self):
            return spent >= cost
        ahead_s = AHEAD_PART * cost - PROCESS.earlier_s(self)
        if spent < ahead_s:
            self._next_estimate_s = min(ahead_s, 2 * spent)
        elif not self._is_requested and spent < cost * PATIENCE:
            from eunomia.kernels import ahead  # starts a process

            self._is_requested = not PROCESS.is_background and ahead.request(self, args)
        if self._is_requested:
            self._next_estimate_s = 1.2 * spent  # to load it soon
        if spent < cost * (PATIENCE if self._is_requested or is_compiling(AHEAD) else 1.0):
            return False
        if self.spent_s > 3 * cost or not is_compiling():
            return True
        self._next_estimate_s = 1.5 * max(self.spent_s, self._next_estimate_s)  # another process compiles
        return False

    def compile_for(self, types: tuple[Any, ...]) -> None:
        """Compile it for arguments of these numba types, or load it from the cache."""
        with self._compiling():
            self.dispatcher.compile(types)

    def _compile_and_call(self, args: tuple[Any, ...]) -> Any:
        """Compile the function, or load it from the cache, and call it."""
        if PROCESS.compiling_s + self.cost_s > ANNOUNCE_S:
            announce_compiling()
        with self._compiling():
            result = self.dispatcher(*args)
        self._compiled = self.dispatcher
        return result

    @contextmanager
    def _compiling(self) -> Iterator[None]:
        """Count the time, and let no other process compile meanwhile."""
        started, started_cpu, collects = perf_counter(), thread_time(), gc.isenabled()
        gc.disable()  # numba makes many objects and little garbage: looking for it takes a tenth of the time
        try:
            with nullcontext() if PROCESS.is_background else compile_lock():
                yield
        finally:
            if collects:
                gc.enable()
            self.compiling_s = perf_counter() - started
            PROCESS.compiling_s += self.compiling_s
            PROCESS.compiling_cpu_s += thread_time() - started_cpu


def share_costs() -> None:
    """Add what this process has spent on interpreting kernels to what all processes have."""
    place, seconds = folder(), {}
    for each in KERNELS:
        more_s = each.spent_s - each.shared_s
        if more_s > LOADING_S and each._compiled is None:
            seconds[each.file_name], each.shared_s = more_s, each.spent_s
    if seconds and place is not None and environment_mode() == "auto":
        add_costs(place, seconds)


def environment_mode() -> str:
    """Return how kernels run as the environment says: `auto`, `compiled` or `interpreted`."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "interpreted"
    return os.environ.get("EUNOMIA_KERNELS", "auto")


def announce_compiling() -> None:
    """Log that compiling takes a while, once in a process."""
    if not PROCESS.is_announced:
        PROCESS.is_announced = True
        LOG.warning("Compiling numerical code for this machine; it is kept for later runs.")
