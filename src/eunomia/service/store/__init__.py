"""Durable stores of the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eunomia.service.store.base import ServiceStore
from eunomia.service.store.opening import StoreLost, StoreProblem
from eunomia.service.store.sqlite import SqliteStore


def open_store(
    place: Path | str, folder: Path, *, must_exist: bool = False, wait: Callable[[str], None] | None = None
) -> ServiceStore:
    """Open the store of a state folder, or of a database if `place` is its address.

    While another service has a database, `wait` is called once with who it is, and this one stands by; without `wait`
    that raises StoreProblem, as a folder in use always does.
    """
    if isinstance(place, Path):
        return SqliteStore.open(place, must_exist=must_exist)
    from eunomia.service.store.postgres import PostgresStore

    return PostgresStore.open(place, folder, must_exist=must_exist, wait=wait)


__all__ = ["ServiceStore", "SqliteStore", "StoreLost", "StoreProblem", "open_store"]
