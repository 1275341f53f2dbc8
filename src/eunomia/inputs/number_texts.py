"""Many numbers as text at once: the digits that Python gives each of them, in a fraction of its time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.model.arrays import Array, Floats

_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e10  # between them Arrow writes fractions as Python does
_ROWS = 65_536  # of JSON, written at a time


def number_texts(values: Floats) -> pa.Array:
    """Return the shortest text of each number, (number,), that reads back exactly; "" where it is not finite."""
    texts = pc.cast(pa.array(values), pa.string())
    texts = pc.if_else(values == np.floor(values), pc.binary_join_element_wise(texts, ".0", ""), texts)
    size = np.abs(values)
    differs = ~(((size >= _LEAST_PLAIN) & (size < _MOST_PLAIN)) | (size == 0.0))  # from Python's form, or nan
    if not differs.any():
        return texts
    others = [repr(value) if np.isfinite(value) else "" for value in values[differs].tolist()]
    return pc.replace_with_mask(texts, pa.array(differs), pa.array(others, pa.string()))


def json_array_pieces(values: Array) -> Iterator[str]:
    """Yield the JSON of an array of floats, (row,) or (row, column), as `json.dumps` writes its lists, in parts.

    Raises ValueError for a number that is not finite.
    """
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a number that is not finite has no JSON")
    opening, between, closing = ("[[", "], [", "]]") if values.ndim == 2 else ("[", ", ", "]")
    if not len(values):
        yield "[]"
        return
    for start in range(0, len(values), _ROWS):
        yield opening if start == 0 else between
        part = values[start : start + _ROWS]
        texts = number_texts(part.ravel())
        if part.ndim == 2:
            texts = pc.binary_join(_lists(texts, part.shape[1]), ", ")
        yield str(pc.binary_join(_lists(texts, len(texts)), between)[0])
    yield closing


def _lists(texts: pa.Array, length: int) -> pa.Array:
    """Return the texts as lists of one length."""
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(texts) + 1, length), pa.int32()), texts)
