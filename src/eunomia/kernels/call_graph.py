"""The kernels that a kernel calls, and a hash of everything that its compiled code depends on.

Kernels that other kernels call are kept as intermediate code: the caller takes them in and is compiled as a whole.
Numba optimises each function and makes machine code of it before it compiles the functions that call it; between a step
and Python there are up to six. Here only the outermost function is optimised and becomes machine code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from eunomia.kernels import Kernel

_CONSTANTS = (bool, int, float, str, bytes, tuple, np.generic, type(None))


def reached_kernels(kernel: Kernel) -> list[Kernel]:
    """Return a kernel and all kernels that it calls, directly or indirectly."""
    return _collect(kernel, {})


def source_hash(kernel: Kernel) -> str:
    """Return a hash of bytecode, constants and options of everything that a kernel reaches.

    It does not depend on comments, docstrings and line numbers.
    """
    hashes: dict[str, str] = {}
    _collect(kernel, hashes)
    return sha256(repr(sorted(hashes.items())).encode()).hexdigest()[:20]


def _collect(kernel: Kernel, hashes: dict[str, str]) -> list[Kernel]:
    """Add the missing hashes of reached kernels, by name; return these kernels."""
    if kernel.name in hashes:
        return []
    hashes[kernel.name] = ""  # a kernel may reach itself
    kernels, function = [kernel], kernel.py_func
    defaults: Any = getattr(function, "__defaults__", None)
    parts = [f"{option}={_describe(value)}" for option, value in sorted(kernel.targetoptions.items())]
    parts.append(_describe(defaults))
    for code in _codes(function.__code__):
        constants = [each for each in code.co_consts if not isinstance(each, CodeType) and each != function.__doc__]
        parts += [code.co_code.hex(), *map(_describe, constants), repr(code.co_names), repr(code.co_varnames)]
        for each in _globals(function.__globals__, code):
            if hasattr(each, "targetoptions"):
                kernels += _collect(each, hashes)
                parts.append(each.name)
            else:
                parts.append(_describe(each))
    hashes[kernel.name] = sha256("\n".join(parts).encode()).hexdigest()
    return kernels


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of nested functions."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _globals(known: dict[str, Any], code: CodeType) -> Iterator[Any]:
    """Yield the global values that code names, including those in modules of this package."""
    for name in code.co_names:
        value = known.get(name)
        if isinstance(value, ModuleType) and value.__name__.startswith("eunomia"):
            yield from (getattr(value, each) for each in code.co_names if hasattr(value, each))
        else:
            yield value


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape, value.tobytes()))
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))  # the order of a set differs between processes
    if isinstance(value, _CONSTANTS):
        return repr(value)
    return " ".join((getattr(value, "__name__", type(value).__name__), *getattr(value, "_fields", ())))


@contextmanager
def kept_as_ir() -> Iterator[None]:
    """Neither optimise what is compiled meanwhile nor make machine code of it. Numba's lock is held."""
    from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen

    skipped: list[tuple[Any, str]] = [
        (CPUCodeLibrary, "_optimize_final_module"),
        (JITCPUCodegen, "_add_module"),
        (JITCodeLibrary, "_finalize_specific"),
        (JITCPUCodegen, "set_env"),  # see `set_environments`
    ]
    kept = [getattr(owner, name) for owner, name in skipped]
    for owner, name in skipped:
        setattr(owner, name, _skip)
    try:
        yield
    finally:
        for (owner, name), method in zip(skipped, kept, strict=True):
            setattr(owner, name, method)


def set_environments(function: Any) -> None:
    """Tell the machine code of a numba function where the objects are that the kernels in it refer to.

    Numba does this for each function when it becomes machine code, and for all of them when code comes from the cache.
    """
    for compiled in function.overloads.values():
        for environment in compiled._find_referenced_environments():
            compiled.library.codegen.set_env(environment.env_name, environment)


def _skip(*_arguments: Any) -> None:
    pass
