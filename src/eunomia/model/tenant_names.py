"""Valid names of tenants: paths such as `lab/vision`, whose parents are the paths before. Imports no numpy."""

from __future__ import annotations

EMPTY_PART, WHOLE_PATH = "a part of this path is empty", "write lab/vision for the tenant vision below lab"


def is_path(name: str) -> bool:
    """Return whether no part of a tenant's name is empty."""
    return all(name.split("/"))
