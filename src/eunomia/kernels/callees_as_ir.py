"""Kernels that other kernels call are kept as intermediate code: the caller takes them in and is compiled as a whole.

Numba optimises each function and makes machine code of it before it compiles the functions that call it; between a step
and Python there are up to six. Here only the outermost function is optimised and becomes machine code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
