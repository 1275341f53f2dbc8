"""jobs.csv is what Python's own writer would write, only sooner."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.runs.result_files import write_columns

NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, -0.0, 1e16, 1e-5, 108507.0, 0.1])
ROW = st.tuples(st.text(alphabet='ab,"\n é'), st.integers(-(2**63), 2**63 - 1), NUMBERS)


@given(st.lists(ROW, max_size=8))
def test_fields_are_written_as_the_standard_library_writes_them(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, float]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "columns.csv"
    names, counts, values = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "name, of it": np.array(names, dtype=object),
        "count": np.array(counts, dtype=np.int64),
        "value": np.array(values, dtype=float),
    }
    write_columns(path, columns)
    expected = Path(f"{path}.expected")
    with expected.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[name, count, value if math.isfinite(value) else ""] for name, count, value in rows])
    assert path.read_bytes() == expected.read_bytes()


def test_a_text_with_a_carriage_return_stays_one_field(tmp_path: Path) -> None:
    write_columns(tmp_path / "t.csv", {"a": np.array(["x\ry"], dtype=object), "b": np.array([1])})
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["a", "b"], ["x\ry", "1"]]
