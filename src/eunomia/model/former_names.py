"""Names that users' code may still use: each leads to the present name, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

C = TypeVar("C", bound=type[Any])


def present_name(name: str, names: Mapping[str, str], owner: str) -> str:
    """Return the present name of `name`, with a FutureWarning if that is another one."""
    if name not in names:
        return name
    warnings.warn(f"{owner}: {name!r} is now {names[name]!r}", FutureWarning, stacklevel=3)
    return names[name]


def accepts_former_names(
    names: Mapping[str, str], missing: Callable[[Any, str], str] | None = None
) -> Callable[[C], C]:
    """Let a class be built with keywords, and read, by its former `names` too.

    `missing` gives the message of the AttributeError for an object and a name that it never had; "" = the usual one.
    """

    def extend(cls: C) -> C:
        init = cls.__init__

        @wraps(init)
        def build(self: Any, *values: Any, **fields: Any) -> None:
            init(self, *values, **{present_name(name, names, cls.__name__): value for name, value in fields.items()})

        def read(self: Any, name: str) -> Any:
            if missing is not None and name not in names and (text := missing(self, name)):
                raise AttributeError(text, name=name, obj=self)
            if name not in names:
                return object.__getattribute__(self, name)  # raises the error of the first attempt again
            return getattr(self, present_name(name, names, cls.__name__))

        cls.__init__, cls.__getattr__ = build, read
        return cls

    return extend
