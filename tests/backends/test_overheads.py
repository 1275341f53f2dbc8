"""What a start costs, by gang size."""

from __future__ import annotations

import pytest

from eunomia.model.overheads import Overheads

HELIOS = Overheads(start_s=1, checkpoint_s=2, restore_s=5, restore_by_size=((2, 28.0), (9, 58.0)))


@pytest.mark.parametrize(("size", "seconds"), [(1, 7), (2, 30), (8, 30), (9, 60), (64, 60)])
def test_a_restore_costs_what_is_given_for_its_size(size: int, seconds: float) -> None:
    assert HELIOS.of(first=False, size=size) == seconds
    assert HELIOS.of(first=True, size=size) == 1


def test_sizes_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="rising order"):
        Overheads(restore_by_size=((8, 1.0), (2, 3.0)))
