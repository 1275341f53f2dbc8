"""Checksums of rows, in their column `row_sum`: a bit that flips in a value, where SQLite has none, is noticed.

Rows of jobs have one in their body, and the audit log is a chain of digests. Tables that each start writes anew or that
only hold what is shown have none, nor have rows that an earlier version wrote.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

# What each checksum is of; columns that are left out follow from others, or are not read.
COLUMNS = {
    "meta": ("key", "value"),
    "clock": ("at", "boot", "monotonic", "wall"),
    "moments": ("at", "lines", "digest"),
    "snapshots": ("seq", "digest", "wake"),
    "keys": ("tenant", "key", "digest", "ids"),
    "lists": ("tenant", "key", "user", "role", "source", "body"),
    "nodes": ("node", "reason"),
    "tenant_hours": ("hour", "tenant", "received", "deserved", "succeeded", "rho_sum", "rho_max"),
    "tokens": ("id", "hash", "user", "tenant", "role", "created", "expires", "revoked", "parent"),
    "drains": ("node", "place", "reason", "user", "since", "until", "empty", "maintenance"),
    "maintenance": ("number", "nodes", "begins", "ends", "reason", "user", "state"),
}
SINCE = ("drains", "maintenance")  # tables that have had the column from the first
ADDED = "".join(f"ALTER TABLE {table} ADD COLUMN row_sum TEXT;" for table in COLUMNS if table not in SINCE)


def row_sum(values: Sequence[Any]) -> str:
    """Return the checksum of values, the same for what a database returns of them."""
    found = 0
    for value in values:
        found = zlib.crc32(_text(value).encode("utf-8", "surrogatepass"), found)
    return f"{found:08x}"


def _text(value: Any) -> str:
    if isinstance(value, int | float):  # a column of numbers returns either
        return "-;" if math.isnan(value) else f"n{float(value) + 0.0!r};"  # SQLite stores NaN as NULL, and -0.0 as 0.0
    return "-;" if value is None else f"s{value};"


def selected(table: str) -> str:
    """Return the columns of a table as `of_row` takes them."""
    return ", ".join(f'"{column}"' for column in (*COLUMNS[table], "row_sum"))


def of_row(row: Sequence[Any]) -> Sequence[Any]:
    """Return the values of a row, without its checksum. Raises ValueError where that is of others."""
    *values, stored = row
    if stored is not None and stored != row_sum(values):
        raise ValueError("its checksum is not that of its values")
    return values
