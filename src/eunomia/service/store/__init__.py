"""Durable stores of the service."""

from __future__ import annotations

from eunomia.service.store.opening import StoreProblem
from eunomia.service.store.sqlite import SqliteStore

__all__ = ["SqliteStore", "StoreProblem"]
