"""What a call of a kernel gives and returns: how large it is, its types in a form that JSON holds, plain numbers."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np

Description = list[Any]  # the name of a kind and what tells its types apart

_SCALARS: dict[type, str] = {bool: "bool", int: "int64", float: "float64"}
_PLAIN_KINDS = "biufc"  # of numpy's types: those whose name says all
_RECORDS = "V"  # rows of named columns


def count_elements(args: tuple[Any, ...]) -> int:
    """Return the number of elements of the arrays among the arguments."""
    total = 0
    for each in args:
        if isinstance(each, np.ndarray):
            total += each.size
        elif isinstance(each, tuple):
            total += count_elements(each)
    return total


def to_plain(value: Any) -> Any:
    """Return a value with Python numbers, as compiled code returns them."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is tuple:
        return tuple([to_plain(each) for each in value])
    return value


def describe(value: Any) -> Description | None:
    """Return what numba would type the value by; None where that is not known without numba."""
    if isinstance(value, np.ndarray):
        flags, dtype = value.flags, _describe_dtype(value.dtype)
        if type(value) is not np.ndarray or dtype is None:
            return None
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return ["array", dtype, value.ndim, layout, flags.writeable, flags.aligned]
    if value is None:
        return ["none"]
    if isinstance(value, tuple):
        parts = [describe(each) for each in value]
        kind = type(value)
        named = "" if kind is tuple else f"{kind.__module__}:{kind.__qualname__}"
        return None if None in parts else ["tuple", named, parts]
    if isinstance(value, np.generic):
        return ["number", value.dtype.str] if value.dtype.kind in _PLAIN_KINDS else None
    name = _SCALARS.get(type(value))
    return ["number", name] if name and (name != "int64" or -(2**63) <= value < 2**63) else None


def numba_type(described: Description) -> Any:
    """Return the numba type of what was described; imports numba, and the module of a named tuple."""
    from numba import from_dtype
    from numba.core import types

    library: Any = types
    kind, *rest = described
    if kind == "none":
        return library.none
    if kind == "number":
        return from_dtype(np.dtype(rest[0]))
    if kind == "array":
        dtype, dimensions, layout, is_writeable, is_aligned = rest
        columns = np.dtype(dtype if isinstance(dtype, str) else [(name, kind) for name, kind in dtype])
        return library.Array(from_dtype(columns), dimensions, layout, readonly=not is_writeable, aligned=is_aligned)
    named, parts = rest
    return library.BaseTuple.from_types([numba_type(each) for each in parts], find_named(named) if named else None)


def _describe_dtype(dtype: np.dtype[Any]) -> str | list[tuple[str, str]] | None:
    """Return the name of a type of numbers, or names and types of the columns of packed records."""
    if dtype.kind in _PLAIN_KINDS:
        return dtype.str
    if dtype.kind != _RECORDS or dtype.names is None:
        return None
    columns = [(name, dtype[name].str) for name in dtype.names]
    is_plain = all(dtype[name].kind in _PLAIN_KINDS for name in dtype.names)
    return columns if is_plain and np.dtype(columns) == dtype else None


def find_named(named: str) -> Any:
    """Return what has this module and name, `module:name`; imports the module."""
    module, _, name = named.partition(":")
    return attrgetter(name)(import_module(module))
