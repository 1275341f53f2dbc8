"""Arrays of numbers as JSON: the same text as `json.dumps` of their lists, in a fraction of its time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.model.arrays import Array, Floats

_ROWS = 65_536  # written at a time


def array_pieces(values: Array) -> Iterator[str]:
    """Yield the JSON text of an array of floats, (row,) or (row, column). Raises ValueError for one that is not finite.

    Rows are written in parts, so that the text of a large array is not held as a whole.
    """
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a number that is not finite has no JSON")
    opening, closing = ("[[", "]]") if values.ndim == 2 else ("[", "]")
    between = "], [" if values.ndim == 2 else ", "
    if not len(values):
        yield "[]"
        return
    for start in range(0, len(values), _ROWS):
        yield opening if start == 0 else between
        texts = _number_texts(values[start : start + _ROWS])
        yield str(pc.binary_join(_lists(texts, len(texts)), between)[0])
    yield closing


def _number_texts(values: Floats) -> pa.Array:
    """Return the text of each number, or of each row of numbers."""
    if values.ndim == 2:
        return pc.binary_join(_lists(_number_texts(values.ravel()), values.shape[1]), ", ")
    size = np.abs(values)
    alike = (size >= 1e-4) & (size < 1e10) & (values != np.floor(values))  # Arrow and Python write them alike
    texts = pc.cast(pa.array(values), pa.string())
    if alike.all():
        return texts
    bits, place = np.unique(values[~alike].view(np.int64), return_inverse=True)  # of bits: 0 is not -0
    others = pa.array([repr(value) for value in bits.view(np.float64).tolist()])
    return pc.replace_with_mask(texts, pa.array(~alike), others.take(pa.array(place)))


def _lists(texts: pa.Array, length: int) -> pa.Array:
    """Return the texts as lists of one length."""
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(texts) + 1, length), pa.int32()), texts)
