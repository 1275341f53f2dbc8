"""A table laid out by column has the sums of one laid out by row, to the last bit, however many columns it has."""

import numpy as np
import pytest

from eunomia.model.products import dot, row_dots


@pytest.mark.parametrize("columns", range(1, 18))
def test_the_layout_of_a_large_table_changes_no_bit_of_its_products(columns: int) -> None:
    rng = np.random.default_rng(columns)
    table = rng.normal(size=(40_001, columns)) * 10.0 ** rng.integers(-6, 6, (40_001, columns))
    weight = rng.normal(size=columns)
    found = dot(np.asfortranarray(table), weight)
    assert found.tobytes() == row_dots(table[:, None], weight)[:, 0].tobytes()
    assert found[::97].tobytes() == np.add.reduce(table[::97] * weight, axis=1).tobytes()
