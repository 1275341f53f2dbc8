"""What a table of text refuses, whatever its reader asked of a column before."""

from __future__ import annotations

import pytest

from eunomia.inputs.open_table import read_csv
from eunomia.inputs.problems import InvalidInput


def test_a_nul_is_refused_in_a_column_that_was_searched_for_empty_cells_before() -> None:
    table = read_csv(b"tenant\nlab\0\n\n", "jobs.csv")
    assert not table.empty("tenant").any()
    table.text("tenant")
    with pytest.raises(InvalidInput, match="NUL") as refused:
        table.raise_if_any()
    assert refused.value.count == 1
