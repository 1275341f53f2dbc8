"""Eigenvalues of small symmetric matrices, with the same bits on every machine."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats

_SWEEPS = 60


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
