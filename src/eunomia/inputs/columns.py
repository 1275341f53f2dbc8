"""A column of text, as words of Python or as an array of Arrow, whichever it was read as; both give the same values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from eunomia.model.arrays import Bools, Floats

if TYPE_CHECKING:
    import pyarrow as pa

Cells: TypeAlias = "tuple[str, ...] | pa.StringArray"
_LOOKED_AT = 1_000  # cells that tell whether most cells of a column differ
NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)  # one way to match: linear time


def spelled(cells: Cells) -> tuple[str, ...]:
    """Return the cells as written; a word that many cells have is stored once."""
    if isinstance(cells, tuple):
        return cells
    import pyarrow.compute as pc

    if 2 * pc.count_distinct(cells[:_LOOKED_AT]).as_py() > min(len(cells), _LOOKED_AT):  # mostly different: ids
        return tuple(cells.to_pylist())
    coded = cells.dictionary_encode()
    words = coded.dictionary.to_pylist()
    return tuple(map(words.__getitem__, coded.indices.to_pylist()))


def blanks(cells: Cells) -> Bools:
    """Return (row,): True where a cell holds nothing."""
    if isinstance(cells, tuple):
        return np.array([not cell for cell in cells], dtype=np.bool_)
    import pyarrow.compute as pc  # 36 MiB, which processes that read no table do without

    return np.asarray(pc.equal(cells, "").to_numpy(zero_copy_only=False), dtype=np.bool_)


def numbers(cells: Cells) -> Floats:
    """Return (row,) the numbers that the cells spell; nan for one that spells none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pa.array(cells, pa.string()) if isinstance(cells, tuple) else cells
    try:
        return np.array(pc.if_else(pc.equal(array, ""), "nan", array).cast(pa.float64()))
    except pa.ArrowInvalid:  # one at least is no number: now it is worth looking at each
        return np.array([float(cell) if NUMBER.fullmatch(cell) else np.nan for cell in spelled(cells)])
