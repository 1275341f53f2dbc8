"""Products of arrays with the same bits on every machine.

`@`, `np.dot`, `np.einsum` and `np.linalg` leave the order of a sum, and the rounding of a product before it is added,
to a library that chooses by the CPU. `dot` rounds each product and adds in one order: fewer than eight terms from the
first to the last, more pairwise as `np.sum` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats

_FEW = 8  # fewer terms are added one after another, as in `np.sum`
_SMALL = 1 << 12  # up to so many elements one call is faster than one for each term
_BLOCK = 1 << 15  # elements of a block, which fits in the cache
_LANES = 256  # rows of a block of the kernel
_PART = 2048  # rows of such a block where there are few columns


def dot(a: Any, b: Any) -> Any:
    """Return a @ b."""
    a, b = np.asarray(a), np.asarray(b)
    if b.ndim == 1:
        return _sums(a, b)
    if a.ndim == 1:
        return _sums(np.swapaxes(b, -1, -2), a)
    if a.ndim == b.ndim == 2:
        if b.shape[1] <= a.shape[0]:
            return _stacked([_sums(a, column) for column in b.T], (len(a), b.shape[1]), a, b, axis=1)
        return _stacked([_sums(b.T, row) for row in a], (len(a), b.shape[1]), a, b, axis=0)
    return row_dots(a[..., :, None, :], np.swapaxes(b, -1, -2)[..., None, :, :])


def row_dots(a: Any, b: Any) -> Any:
    """Return Σ a · b over the last axis."""
    a, b = np.asarray(a), np.asarray(b)
    if a.size > _SMALL and a.shape == np.broadcast_shapes(a.shape, b.shape) and 0 < a.shape[-1] < _FEW:
        total = np.asarray(a[..., 0] * b[..., 0])
        for k in range(1, a.shape[-1]):
            total = total + a[..., k] * b[..., k]
        return total
    return np.add.reduce(np.multiply(a, b, order="C"), axis=-1)


def whole_dot(a: Array, b: Array) -> Array:
    """Return a @ b of integers, whose sums are exact in any order."""
    return np.asarray(a @ b)


def _sums(a: Array, b: Array) -> Any:
    """Return Σ a · b over the last axis of a, block by block; b has one axis."""
    if a.ndim != 2 or a.size <= _BLOCK or len(b) == 0:
        return row_dots(a, b)
    if a.flags.f_contiguous and len(b) < 2 * _FEW and a.dtype == b.dtype == np.float64:
        found = np.empty(len(a))
        _by_column(a.T, np.ascontiguousarray(b), found)
        return found
    rows = max(_BLOCK // len(b), 1)
    sums = np.empty(len(a), dtype=np.result_type(a, b))
    for begin in range(0, len(a), rows):
        sums[begin : begin + rows] = row_dots(a[begin : begin + rows], b)
    return sums


def _stacked(parts: list[Any], shape: tuple[int, int], a: Array, b: Array, *, axis: int) -> Floats:
    """Return columns or rows as one array in C order."""
    if not parts:
        return np.zeros(shape, dtype=np.result_type(a, b))
    return np.ascontiguousarray(np.stack(parts, axis=axis))


@kernel()
def _by_column(a: Floats, b: Floats, found: Floats) -> None:
    """Write Σ a · b (row,) over the columns of a (column, row): fewer than 16 of them, in the order of `np.sum`."""
    columns, rows = a.shape
    if columns < _FEW:
        for begin in range(0, rows, _PART):  # one-dimensional parts, whose loops are compiled to vector instructions
            here, first, factor = found[begin : begin + _PART], a[0, begin : begin + _PART], b[0]
            for j in range(len(here)):
                here[j] = first[j] * factor
            for k in range(1, columns):
                more, factor = a[k, begin : begin + _PART], b[k]
                for j in range(len(here)):
                    here[j] += more[j] * factor
        return
    strands = np.empty((_FEW, _LANES))
    for begin in range(0, rows, _LANES):
        n = min(_LANES, rows - begin)
        for k in range(_FEW):
            for j in range(n):
                strands[k, j] = a[k, begin + j] * b[k]
        for j in range(n):
            left = (strands[0, j] + strands[1, j]) + (strands[2, j] + strands[3, j])
            right = (strands[4, j] + strands[5, j]) + (strands[6, j] + strands[7, j])
            strands[0, j] = left + right
        for k in range(_FEW, columns):
            for j in range(n):
                strands[0, j] += a[k, begin + j] * b[k]
        for j in range(n):
            found[begin + j] = strands[0, j]
