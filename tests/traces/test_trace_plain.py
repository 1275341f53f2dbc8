"""The fast way to read plain text gives what the slow way gives, or nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.columns import blanks, numbers, spelled
from eunomia.inputs.open_table import read_any, read_plain

CELL = st.text(alphabet="ab1.-+eé ;#'\t", max_size=4) | st.sampled_from(
    ["nan", "NaN", "1e5", " 7", "null", "inf", "NA"]
)
HERE = Path("jobs.csv")


@given(
    rows=st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1)),
    end=st.sampled_from(["", "\n", "\n\n"]),
)
def test_the_fast_way_gives_what_the_slow_way_gives(rows: list[list[str]], end: str) -> None:
    header = ",".join(f"column {k}" for k in range(len(rows[0])))
    raw = ("\n".join([header, *map(",".join, rows)]) + end).encode()
    fast, slow = read_plain(raw, str(HERE)), read_any(raw, str(HERE))
    if fast is None:
        return
    assert fast.line.tolist() == slow.line.tolist()
    assert list(fast.columns) == list(slow.columns)
    for name, cells in fast.columns.items():
        assert spelled(cells) == slow.columns[name]
        assert blanks(cells).tolist() == blanks(slow.columns[name]).tolist()
        assert np.array_equal(numbers(cells), numbers(slow.columns[name]), equal_nan=True)


@pytest.mark.parametrize("text", ["a,b\n1,2\n3,4\n", "a,b\n1,2", "\ufeffa,b\n1,2\n", "a,b\n,\n", "é\nü\n"])
def test_plain_text_is_read_the_fast_way(text: str) -> None:
    assert read_plain(text.encode(), str(HERE)) is not None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"a,b\n",
        b"\na,b\n1,2\n",
        b'a,b\n"1",2\n',
        b"a,b\r\n1,2\r\n",
        b"a,b\n\n1,2\n",
        b"a,b\n1\n",
        b"a,b\n1,2,3\n",
        b"a,a\n1,2\n",
        b"a,b\n\xff,2\n",
        b"a,b\n\0,2\n",
        b"a,b\n" + b"x" * 200_000 + b",2\n",
    ],
)
def test_all_else_is_left_to_the_slow_way(raw: bytes) -> None:
    assert read_plain(raw, str(HERE)) is None
