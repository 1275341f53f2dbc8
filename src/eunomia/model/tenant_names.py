"""What a tenant may be called: a path such as `lab/vision`, whose parents are the paths before."""

from __future__ import annotations

EMPTY_PART, WHOLE_PATH = "a part of this path is empty", "write lab/vision for who stands below lab"


def is_path(name: str) -> bool:
    """Say whether a tenant may be called so: no part of its path is empty."""
    return all(name.split("/"))
