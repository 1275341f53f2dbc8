"""Which cases of the published contract `make test` leaves to the slow tests: half of the worlds each policy plays."""

from __future__ import annotations

import pytest

PLAYED_AT_ONCE = range(4)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the worlds of the other seeds slow; the published suite itself knows no such marker."""
    for item in items:
        seed = getattr(getattr(item, "callspec", None), "params", {}).get("seed")
        if item.name.startswith("test_a_small_world_ends") and seed not in PLAYED_AT_ONCE:
            item.add_marker(pytest.mark.slow)
