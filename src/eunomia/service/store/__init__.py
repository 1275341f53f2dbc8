"""Durable stores of the service."""

from __future__ import annotations

from eunomia.service.store.sqlite import SqliteStore, StoreProblem

__all__ = ["SqliteStore", "StoreProblem"]
