"""What jobs and tenants deserve at one time: accelerators, by ASTRAEA's long-term accelerator-time fairness.

Reference: Z. Ye et al., "ASTRAEA: A Fair Deep Learning Scheduler for Multi-Tenant GPU Clusters", TPDS 2022.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Array, Floats


def of_jobs(size: Array | float, weight: Array | float, together: Array, quota: Floats) -> Floats:
    """Return min(z, w / Σ w · Q): what a job asks for, or its part of what its tenant owns.

    `together` is Σ w, the weight of all jobs of the tenant that wait or run.
    """
    return np.asarray(np.minimum(size, weight / together * quota))


def of_tenants(demand: Array, quota: Floats) -> Floats:
    """Return min(demand, Q): what all jobs of a tenant ask for, or what it owns."""
    return np.asarray(np.minimum(demand, quota))
