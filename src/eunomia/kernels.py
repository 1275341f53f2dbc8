"""Functions over arrays that run interpreted until compiling them pays, with the same bits either way.

`@kernel` marks a function that numba can compile. Its first calls are plain Python. It is compiled when the time that it
has taken reaches what compiling it is estimated to cost, and from the first call on where its arrays are large. So a small
run never waits for a compiler, and a large one soon runs compiled code. Both kinds of calls give the same bits: no option
of the compiler that may change a value is in use (decision note 0034).

Compiled code is kept in `NUMBA_CACHE_DIR`, or else in `__pycache__/kernels` of this package, or in the user's cache folder
where the package is read-only. A file's name has a hash of all that the kernel reaches (its own instructions, those of the
kernels that it calls, their constants and options), so that an edit drops what it changes and nothing else. One process of
a machine compiles at a time; the others go on interpreted, and load what it has made.

`EUNOMIA_KERNELS=compiled` compiles each kernel at its first call, `EUNOMIA_KERNELS=interpreted` or `NUMBA_DISABLE_JIT=1`
none at all. Importing this module imports no compiler, sets no environment variable and makes no file.
"""

from __future__ import annotations

import fcntl
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from types import CodeType, ModuleType
from typing import Any

import numpy as np

# What compiling costs, measured on demo and tests (`python -m benchmarks.first_call`): per byte of the instructions that
# a kernel reaches, of loading one from the cache, of importing numba.
COMPILING_S_PER_BYTE = 4e-4
LOADING_S = 0.005
IMPORTING_S = 0.3
INTERPRETING_S_PER_ELEMENT = 1e-6  # least time of an interpreted call, per element of its arrays
WORTH_A_LINE_S = 2.0  # compiling that takes longer is announced
KEPT = 3  # versions of a kernel in the cache
IGNORED = {"over": "ignore", "divide": "ignore", "invalid": "ignore", "under": "ignore"}

announce: Callable[[str], None] | None = None  # is given the line that says that compiling takes a while


class _Process:
    """What this process has spent on kernels, in seconds, and how deep it is in interpreted calls."""

    def __init__(self) -> None:
        self.depth = 0
        self.interpreted_s = 0.0
        self.compiling_s = 0.0  # loading from the cache is counted, too
        self.foreseen_s = 0.0
        self.announced = False


PROCESS = _Process()
KERNELS: list[Kernel] = []


class Kernel:
    """A function that is interpreted or compiled, whichever is less work so far.

    Compiled code calls it as it would call a function of numba's: `_numba_type_`, `py_func` and `targetoptions` are what
    numba asks for.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options
        self.spent_s = 0.0
        self.mode = ""  # "compiled", "interpreted", or "" for what the environment says
        self._ready: Any = None
        KERNELS.append(self)

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function, or the interpreted one if that is less work."""
        ready = self._ready
        if ready is not None:
            return ready(*args)
        if self._pays(args):
            self._compile(args)
            if self._ready is not None:
                return self._ready(*args)
        return self._interpret(args)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def name(self) -> str:
        """Its module and name."""
        return f"{self.py_func.__module__}.{self.py_func.__qualname__}"

    @functools.cached_property
    def stamp(self) -> str:
        """A hash that changes when anything changes that this kernel reaches."""
        found: dict[str, str] = {}
        _gather(self, found)
        return sha256(repr(sorted(found.items())).encode()).hexdigest()[:20]

    @functools.cached_property
    def reach(self) -> tuple[Kernel, ...]:
        """The kernels that it calls, directly or not, and itself."""
        found: dict[str, str] = {}
        return tuple(_gather(self, found))

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The function as Python calls it, kept in the cache; asking for it imports numba."""
        from numba import njit

        made = njit(**self.targetoptions, no_cfunc_wrapper=True)(self.py_func)
        made._cache = _cache_of(self)
        return made

    @functools.cached_property
    def inner(self) -> Any:
        """The function as other kernels call it: without the way in from Python, which takes long to compile."""
        from numba import njit

        return njit(**self.targetoptions, no_cfunc_wrapper=True, no_cpython_wrapper=True)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        return self.inner._numba_type_

    @property
    def cost_s(self) -> float:
        """Estimated seconds until compiled code is at hand."""
        wait = 0.0 if "numba" in sys.modules else max(IMPORTING_S - PROCESS.interpreted_s, 0.0)
        if self.kept:
            return LOADING_S + wait
        todo = (each for each in self.reach if each._ready is None and not each.kept)
        return wait + COMPILING_S_PER_BYTE * sum(len(each.py_func.__code__.co_code) for each in todo)

    @property
    def kept(self) -> bool:
        """Whether the cache has compiled code of it."""
        folder = cache_folder()
        return folder is not None and (folder / f"{_file_name(self)}.nbi").exists()

    def _pays(self, args: tuple[Any, ...]) -> bool:
        mode = self.mode or _mode()
        if mode != "auto":
            return mode == "compiled"
        least = self.spent_s + INTERPRETING_S_PER_ELEMENT * _elements(args)
        if least < self._patience_s:
            return False
        cost = self.cost_s
        if least >= cost:
            return True
        self._patience_s = min(cost, 2 * least)  # looking at the cache costs something, too
        return False

    _patience_s = LOADING_S

    def _interpret(self, args: tuple[Any, ...]) -> Any:
        began, compiling, outermost = perf_counter(), PROCESS.compiling_s, PROCESS.depth == 0
        PROCESS.depth += 1
        try:
            if not outermost:
                return self.py_func(*args)
            with np.errstate(all="ignore"):
                return _plain(self.py_func(*args))
        finally:
            PROCESS.depth -= 1
            took = perf_counter() - began - (PROCESS.compiling_s - compiling)
            self.spent_s += took
            if outermost:
                PROCESS.interpreted_s += took

    def _compile(self, args: tuple[Any, ...]) -> None:
        """Compile it, or load it; where another process compiles just now and interpreting is bearable, do not wait."""
        began = perf_counter()
        foreseen = self.cost_s
        must_wait = (
            self.mode == "compiled" or _mode() == "compiled" or self.spent_s + _elements(args) * 1e-6 > 2 * foreseen
        )
        with _one_at_a_time(wait=must_wait or self.kept) as is_ours:
            if not is_ours:
                self._patience_s = 2 * max(self.spent_s, foreseen)
                return
            PROCESS.foreseen_s += foreseen
            if PROCESS.foreseen_s > WORTH_A_LINE_S and not PROCESS.announced and announce is not None:
                PROCESS.announced = True
                announce("Compiling numerical code for this machine; this is done once.")
            dispatcher = self.dispatcher
            dispatcher.get_call_template(tuple(dispatcher.typeof_pyval(each) for each in args), {})  # compiles
        self._ready = dispatcher
        PROCESS.compiling_s += perf_counter() - began


def kernel(*, allocates: bool | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Mark a function for compiling.

    allocates: False for a step that makes no array: it is compiled without counting who holds one, which costs more
    than a small step does. numba refuses one that makes an array after all. One that returns an array may be called by
    its like alone. True for one that makes arrays and is called by such a step. By default it is as its caller is.
    options: options of `numba.njit`, of those that change no value.
    """
    if allocates is not None:
        options["_nrt"] = allocates
    options.setdefault("error_model", "numpy")
    return lambda function: Kernel(function, options)


def cache_folder() -> Path | None:
    """Return the folder of compiled code; None where no folder can be written to."""
    named = os.environ.get("NUMBA_CACHE_DIR", "")
    return _cache_folder(named)


@functools.cache
def _cache_folder(named: str) -> Path | None:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for folder in (
        [Path(named)] if named else [Path(__file__).parent / "__pycache__" / "kernels", Path(home, "eunomia")]
    ):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


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


def _gather(one: Kernel, found: dict[str, str]) -> list[Kernel]:
    """Note what a kernel reaches, by name, and return the kernels among it."""
    if one.name in found:
        return []
    kernels, function = [one], one.py_func
    parts = [repr(sorted(one.targetoptions.items(), key=str)), repr(function.__defaults__)]  # type: ignore[attr-defined]
    found[one.name] = ""
    for code in _codes(function.__code__):
        constants = [each for each in code.co_consts if not isinstance(each, CodeType)]
        parts += [code.co_code.hex(), repr(constants[1:] if code.co_consts[:1] == (function.__doc__,) else constants)]
        parts.append(repr((code.co_names, code.co_varnames)))
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType) and value.__name__.startswith("eunomia"):
                reached = [getattr(value, each) for each in code.co_names if hasattr(value, each)]
            else:
                reached = [value]
            for each in reached:
                if isinstance(each, Kernel):
                    kernels += _gather(each, found)
                    parts.append(each.name)
                elif isinstance(each, np.ndarray):
                    parts.append(repr((each.dtype.str, each.shape, each.tobytes())))
                elif each is None or isinstance(
                    each, bool | int | float | str | bytes | tuple | frozenset | np.generic
                ):
                    parts.append(repr(each))
                else:
                    parts.append(getattr(each, "__name__", type(each).__name__))
    found[one.name] = sha256("\n".join(parts).encode()).hexdigest()
    return kernels


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _file_name(one: Kernel) -> str:
    version = f"{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    return f"{one.name}-{one.stamp}.py{version}"


@contextmanager
def _one_at_a_time(wait: bool) -> Iterator[bool]:
    """Let one process of this machine compile; tell whether it is this one."""
    folder = cache_folder()
    if folder is None:
        yield True
        return
    with open(folder / "lock", "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def _cache_of(one: Kernel) -> Any:
    """Return numba's cache of a function, with our own names of files."""
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache, _CacheLocator

    folder = cache_folder()
    if folder is None:
        return NullCache()

    class Locator(_CacheLocator):  # type: ignore[misc]
        """Says where files are, and when they are of use."""

        _py_file = one.py_func.__code__.co_filename

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return one.stamp

        def get_disambiguator(self) -> str:
            return one.stamp

        @classmethod
        def from_function(cls, py_func: object, py_file: str) -> Locator:
            return cls()

    class Files(CompileResultCacheImpl):  # type: ignore[misc]
        """Names files by what a kernel reaches."""

        _locator_classes = (Locator,)

        def get_filename_base(self, fullname: str, abiflags: str) -> str:
            return _file_name(one)

    class Cache(FunctionCache):  # type: ignore[misc]
        """Compiled code of one kernel; the oldest of several versions is removed."""

        _impl_class = Files

        def save_overload(self, sig: object, data: object) -> None:
            super().save_overload(sig, data)
            _forget(folder, one)

    return Cache(one.py_func)


def _forget(folder: Path, one: Kernel) -> None:
    """Remove the files of versions that have not been in use for longest."""
    made = sorted(folder.glob(f"{one.name}-*.nbi"), key=lambda file: file.stat().st_mtime, reverse=True)
    for index in made[KEPT:]:
        for file in folder.glob(f"{index.name.removesuffix('.nbi')}.*"):
            file.unlink(missing_ok=True)
