"""Small systems of linear equations, solved with the same bits on every machine (see `products`)."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.products import dot, row_dots

_EXACT = 2.0**-52
_SWEEPS = 60


def solve(matrix: Floats, right: Floats) -> Floats:
    """Return x of matrix · x = right by elimination with row pivots; not finite where the matrix is singular.

    matrix (…, n, n), right (…, n), or (…, n, side) for several sides; a stack is solved matrix by matrix.
    """
    if right.ndim < matrix.ndim:
        return np.asarray(solve(matrix, right[..., None])[..., 0])
    n, sides = right.shape[-2:]
    work = np.concatenate((matrix, right), axis=-1).astype(float).reshape(-1, n, n + sides)
    matrices = np.arange(len(work))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for k in range(n):
            pivot = k + np.abs(work[:, k:, k]).argmax(axis=1)
            work[matrices, k], work[matrices, pivot] = work[matrices, pivot], work[matrices, k].copy()
            factor = work[:, k + 1 :, k] / work[:, k, None, k]
            work[:, k + 1 :, k:] -= factor[..., None] * work[:, k, None, k:]
        x = np.empty((len(work), n, sides))
        for k in reversed(range(n)):
            rest = work[:, k, n:]
            for j in range(k + 1, n):
                rest = rest - work[:, k, j, None] * x[:, j]
            x[:, k] = rest / work[:, k, k, None]
    return x.reshape(right.shape)


def pseudo_inverse(matrix: Floats, *, rcond: float) -> Floats:
    """Return the Moore-Penrose inverse; singular values of at most rcond · the largest count as 0.

    One-sided Jacobi: pairs of columns are rotated until all are orthogonal.
    """
    if matrix.shape[0] < matrix.shape[1]:
        return pseudo_inverse(matrix.T, rcond=rcond).T
    columns, rotation = np.array(matrix.T, dtype=float, order="C"), np.eye(matrix.shape[1])
    n = len(columns)
    for _ in range(_SWEEPS):
        rotated = False
        for p in range(n):
            for q in range(p + 1, n):
                rotated |= _rotate(columns, rotation, p, q)
        if not rotated:
            break
    square = row_dots(columns, columns)
    kept = np.sqrt(square) > rcond * np.sqrt(square.max(initial=0.0))
    if not kept.any():
        return np.zeros(matrix.T.shape)
    return np.asarray(dot(rotation[kept].T, columns[kept] / square[kept][:, None]))


def _rotate(columns: Floats, rotation: Floats, p: int, q: int) -> bool:
    """Make two columns orthogonal; return whether they were not."""
    a, b = columns[p], columns[q]
    alpha, beta, gamma = float(dot(a, a)), float(dot(b, b)), float(dot(a, b))
    if not abs(gamma) > _EXACT * np.sqrt(alpha) * np.sqrt(beta):
        return False
    zeta = (beta - alpha) / (2 * gamma)
    tangent = (1.0 if zeta >= 0 else -1.0) / (abs(zeta) + np.sqrt(1 + zeta * zeta))
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    sine = cosine * tangent
    for table in (columns, rotation):
        table[p], table[q] = cosine * table[p] - sine * table[q], sine * table[p] + cosine * table[q]
    return True


def least_squares(matrix: Floats, right: Floats, *, rcond: float = 1e-13) -> Floats:
    """Return the shortest x with the least |matrix · x − right|."""
    return np.asarray(dot(pseudo_inverse(matrix, rcond=rcond), right))


def cholesky(matrix: Floats) -> Floats:
    """Return the lower factor L with L Lᵀ = matrix, of one matrix or a stack of them (…, n, n).

    Raises ValueError where one is not positive definite.
    """
    n = matrix.shape[-1]
    lower = np.zeros_like(matrix, dtype=float)
    for k in range(n):
        rest = matrix[..., k:, k] - row_dots(lower[..., k:, :k], lower[..., k, None, :k])
        if not (rest[..., 0] > 0).all():
            raise ValueError("the matrix is not positive definite")
        lower[..., k:, k] = rest / np.sqrt(rest[..., :1])
    return lower


def solve_lower(lower: Floats, right: Floats) -> Floats:
    """Return x of lower · x = right, (…, n, side), for a lower triangle (…, n, n)."""
    x = np.zeros(right.shape)
    for k in range(lower.shape[-1]):
        known = np.add.reduce(lower[..., k, :k, None] * x[..., :k, :], axis=-2)
        x[..., k, :] = (right[..., k, :] - known) / lower[..., k, k, None]
    return x
