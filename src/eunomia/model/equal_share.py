"""The isolated allocation: an equal part of the cluster for each job."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import row_dots


def equal_part(scale_factor: Ints | Floats, capacity: Floats) -> Floats:
    """Return X (job, type): one m-th of the cluster for each of m jobs, as time for the whole gang.

    x[m,j] = C[j] / (m z[m]); a row whose sum exceeds 1 is scaled down to 1 (Narayanan et al., OSDI 2020, section 4.2:
    the isolated allocation).
    """
    jobs = max(len(scale_factor), 1)
    x = capacity / (jobs * np.asarray(scale_factor, dtype=float)[:, None])
    return np.asarray(x / np.maximum(x.sum(axis=1, keepdims=True), 1.0))


def alone_throughput(throughput: Floats, scale_factor: Ints | Floats, capacity: Floats) -> Floats:
    """Return steps/s (job,) of each job on its equal part; throughput (job, type)."""
    return np.asarray(row_dots(throughput, equal_part(scale_factor, capacity)))
