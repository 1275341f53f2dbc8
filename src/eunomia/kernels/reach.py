"""What a kernel reaches: the kernels that it calls, and a hash of all that its compiled code depends on."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from eunomia.kernels import Kernel

_CONSTANTS = (bool, int, float, str, bytes, tuple, np.generic, type(None))


def reach(one: Kernel) -> list[Kernel]:
    """Return a kernel and all that it calls, directly or not."""
    return _gather(one, {})


def stamp(one: Kernel) -> str:
    """Return a name that changes when the instructions, constants or options change of anything that a kernel reaches.

    Comments, docstrings and places in a file do not matter.
    """
    found: dict[str, str] = {}
    _gather(one, found)
    return sha256(repr(sorted(found.items())).encode()).hexdigest()[:20]


def _gather(one: Kernel, found: dict[str, str]) -> list[Kernel]:
    """Write hashes by name of what a kernel reaches and is not there yet; return the kernels among it."""
    if one.name in found:
        return []
    found[one.name] = ""  # it may reach itself
    kernels, function = [one], one.py_func
    defaults: Any = getattr(function, "__defaults__", None)
    parts = [f"{option}={_described(value)}" for option, value in sorted(one.targetoptions.items())]
    parts.append(_described(defaults))
    for code in _codes(function.__code__):
        constants = [each for each in code.co_consts if not isinstance(each, CodeType) and each != function.__doc__]
        parts += [code.co_code.hex(), *map(_described, constants), repr(code.co_names), repr(code.co_varnames)]
        for each in _globals(function.__globals__, code):
            if hasattr(each, "targetoptions"):
                kernels += _gather(each, found)
                parts.append(each.name)
            else:
                parts.append(_described(each))
    found[one.name] = sha256("\n".join(parts).encode()).hexdigest()
    return kernels


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the instructions of a function and of those inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _globals(known: dict[str, Any], code: CodeType) -> Iterator[Any]:
    """Yield the values that instructions name, those in our own modules included."""
    for name in code.co_names:
        value = known.get(name)
        if isinstance(value, ModuleType) and value.__name__.startswith("eunomia"):
            yield from (getattr(value, each) for each in code.co_names if hasattr(value, each))
        else:
            yield value


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape, value.tobytes()))
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))  # a set's own order changes with the process
    if isinstance(value, _CONSTANTS):
        return repr(value)
    return str(getattr(value, "__name__", type(value).__name__))
