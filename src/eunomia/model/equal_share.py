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


def alone_throughput(
    throughput: Floats, scale_factor: Ints | Floats, capacity: Floats, widest: Floats | None = None
) -> Floats:
    """Return steps/s (job,) of each job on its equal part; throughput (job, type).

    Its time on a type with fewer accelerators than the gang is lost. `widest` (type,) are the accelerators that one
    gang can hold, where `capacity` is only a part of the cluster.
    """
    speed = usable_throughput(throughput, scale_factor, capacity if widest is None else widest)
    return np.asarray(row_dots(speed, equal_part(scale_factor, capacity)))


def usable_throughput(throughput: Floats, scale_factor: Ints | Floats, capacity: Floats) -> Floats:
    """Return the throughput (job, type), 0 where a type has fewer accelerators, in the whole cluster, than the gang."""
    size = np.asarray(scale_factor)
    if size.max(initial=0) <= capacity.min(initial=np.inf):
        return throughput
    return np.asarray(np.where(size[:, None] > capacity, 0.0, throughput))
