"""Completion of a matrix from some of its entries.

ALS: factors U and V with A ≈ U Vᵀ, U_i = (Vᵀ diag(M_i) V + μ I)⁻¹ Vᵀ diag(M_i) A_i and alike for V (probabilistic
matrix factorisation, as Gavel's estimator). Soft-Impute: R. Mazumder, T. Hastie and R. Tibshirani, "Spectral
Regularization Algorithms for Learning Large Incomplete Matrices", JMLR 11, 2010. SVT: J.-F. Cai, E. Candès and Z. Shen,
"A Singular Value Thresholding Algorithm for Matrix Completion", SIAM J. Optimization 20(4), 2010.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats
from eunomia.model.equations import solve
from eunomia.model.products import dot
from eunomia.model.rounding import drawn

_SWEEPS = 60
Solver = Callable[[Floats, Bools, np.random.Generator], Floats]


def symmetric_eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, (n,), and eigenvectors in columns, (n, n), in no order, by cyclic Jacobi rotations."""
    work, vectors = np.array(matrix, dtype=float), np.eye(len(matrix))
    if len(work):
        _rotate_all(work, vectors)
    return work.diagonal().copy(), np.ascontiguousarray(vectors.T)


@kernel(allocates=False)
def _rotate_all(a: Floats, rows: Floats) -> None:
    """Make `a` diagonal; `rows` become its eigenvectors."""
    n = a.shape[0]
    for _ in range(_SWEEPS):
        rotated = False
        for p in range(n):
            for q in range(p + 1, n):
                if abs(a[p, q]) <= 1e-16 * (abs(a[p, p]) + abs(a[q, q])) or a[p, q] == 0.0:
                    continue
                rotated = True
                theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
                if theta < 0.0:
                    t = -t
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                for k in range(n):
                    x, y = a[k, p], a[k, q]
                    a[k, p] = c * x - s * y
                    a[k, q] = s * x + c * y
                for k in range(n):
                    x, y = a[p, k], a[q, k]
                    a[p, k] = c * x - s * y
                    a[q, k] = s * x + c * y
                for k in range(n):
                    x, y = rows[p, k], rows[q, k]
                    rows[p, k] = c * x - s * y
                    rows[q, k] = s * x + c * y
        if not rotated:
            break


def als(
    values: Floats,
    known: Bools,
    rng: np.random.Generator,
    *,
    factors: int = 10,
    mu: float = 1e-2,
    most_sweeps: int = 100,
    least_sweeps: int = 30,
    tolerance: float = 1e-3,
) -> Floats:
    """Return the completed matrix by alternating least squares from normal starting factors.

    The published stop test, |change| / entries < `tolerance`, is loose for small matrices: hence `least_sweeps`.
    """
    rows, columns = values.shape
    k = max(1, min(factors, min(rows, columns) - 1))
    u, v = drawn(rng.normal(size=(rows, k))), drawn(rng.normal(size=(columns, k)))
    weight = known.astype(float)
    filled = np.where(known, values, 0.0)
    before = dot(u, v.T)
    for sweep in range(1, most_sweeps + 1):
        u = _factors(v, filled, weight, mu)
        v = _factors(u, filled.T, weight.T, mu)
        now = dot(u, v.T)
        change = np.sqrt(np.square(now - before).sum()) / (rows * columns)
        before = now
        if sweep >= least_sweeps and change < tolerance:
            break
    return np.asarray(before)


def _factors(other: Floats, values: Floats, weight: Floats, mu: float) -> Floats:
    """Return for each row the ridge solution over its known entries, (row, factor)."""
    weighted = weight[:, :, None] * other[None, :, :]  # (row, column, factor)
    square = dot(np.swapaxes(weighted, 1, 2), other) + mu * np.eye(other.shape[1])
    right = dot(values * weight, other)
    return solve(square, right)


def soft_impute(
    values: Floats,
    known: Bools,
    rng: np.random.Generator | None = None,
    *,
    mu: float | None = None,
    tolerance: float = 1e-5,
    most_rounds: int = 500,
) -> Floats:
    """Return argmin ½ |P(X − Y)|² + μ |X|_*; μ falls by halves to its target, 1e-2 · the largest singular value."""
    filled = np.where(known, values, 0.0)
    largest = float(np.sqrt(max(float(_eigen(filled)[0].max(initial=0.0)), 0.0)))
    target = 1e-2 * largest if mu is None else mu
    x, level = np.zeros(values.shape), max(0.5 * largest, target)
    while True:
        for _ in range(most_rounds):
            following = shrink(np.where(known, values, x), level)
            moved = np.sqrt(np.square(following - x).sum())
            x, size = following, np.sqrt(np.square(following).sum())
            if moved <= tolerance * max(size, 1e-300):
                break
        if level <= target:
            return x
        level = max(level / 2, target)


def svt(
    values: Floats,
    known: Bools,
    rng: np.random.Generator | None = None,
    *,
    tau: float | None = None,
    tolerance: float = 1e-2,
    most_rounds: int = 500,
) -> Floats:
    """Return the matrix of singular value thresholding; τ scales with the data, not only with the shape."""
    rows, columns = values.shape
    filled = np.where(known, values, 0.0)
    size = float(np.sqrt(np.square(filled).sum()))
    if size == 0.0:
        return filled
    step = 1.2 * rows * columns / max(int(known.sum()), 1)
    largest = float(np.sqrt(max(float(_eigen(filled)[0].max()), 0.0)))
    limit = 5 * largest if tau is None else tau
    step = min(step, 1.9)
    dual = np.ceil(limit / (step * largest)) * step * filled
    x = filled
    for _ in range(most_rounds):
        x = shrink(dual, limit)
        miss = np.where(known, values - x, 0.0)
        if np.sqrt(np.square(miss).sum()) <= tolerance * size:
            break
        dual = dual + step * miss
    return x


def shrink(matrix: Floats, level: float) -> Floats:
    """Return U diag(max(s − level, 0)) Vᵀ of a matrix U diag(s) Vᵀ."""
    if matrix.shape[0] > matrix.shape[1]:
        return np.ascontiguousarray(shrink(matrix.T, level).T)
    square, vectors = _eigen(matrix)
    s = np.sqrt(np.maximum(square, 0.0))
    kept = np.where(s > level, (s - level) / np.where(s > 0, s, 1.0), 0.0)
    return np.asarray(dot(dot(vectors * kept, vectors.T), matrix))


def _eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Return squared singular values and left singular vectors."""
    if matrix.shape[0] > matrix.shape[1]:
        return symmetric_eigen(dot(matrix.T, matrix))
    return symmetric_eigen(dot(matrix, matrix.T))


SOLVERS: dict[str, Solver] = {"als": als, "soft_impute": soft_impute, "svt": svt}


def complete(values: Floats, known: Bools, solver: str, rng: np.random.Generator) -> Floats:
    """Return the matrix completed within [0, 1]; known entries stay as they are, and no solver is called without gaps.

    Raises ArithmeticError where the solver finds no finite answer.
    """
    if known.all():
        return values.copy()
    found = SOLVERS[solver](np.where(known, values, 0.0), known, rng)
    if not np.isfinite(found).all():
        raise ArithmeticError(f"{solver} found no finite completion")
    return np.where(known, values, np.clip(found, 0.0, 1.0))
