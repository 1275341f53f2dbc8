"""Registries: names, and the places of what they stand for, which is loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Registry(dict[str, str], Generic[T]):
    """Places `module:attribute`, or modules, by name, in the order in which they are listed."""

    def load(self, name: str) -> T:
        """Return what a name stands for. Raises KeyError for another name."""
        return cast(T, load_place(self[name]))


def load_place(place: str) -> Any:
    """Return the attribute that `module:attribute` names, or a module."""
    module, _, attribute = place.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
