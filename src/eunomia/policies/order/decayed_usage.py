"""What tenants used lately: sums by hour that lose half their weight in every half-life, rolled up along the tree."""

from __future__ import annotations

import math

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.model.tenants import Tenants

HOUR_S = 3600.0


def check_half_life(half_life_s: float) -> None:
    """Raise ValueError unless this is a time above 0; inf forgets nothing."""
    if not half_life_s > 0:
        raise ValueError(f"half_life_s is {half_life_s}; it is a number of seconds above 0, or inf to forget nothing")


def decayed(used: Floats, at: float, half_life_s: float) -> Floats:
    """Return Σ_h 2^(-age_h / half-life) used[h,u], (tenant,), of used accelerator-seconds (hour, tenant).

    The last hour is the present one. An hour is as old as its middle; of the present one, the part that is over counts.
    """
    hours = len(used)
    begun = math.floor(at / HOUR_S) * HOUR_S - HOUR_S * np.arange(hours - 1, -1, -1)
    middle = np.minimum(begun + HOUR_S / 2, (begun + at) / 2)
    age = np.maximum(at - middle, 0.0)
    return np.asarray(dot(elementary.power(2.0, -age / half_life_s), used))


def rolled_up(own: Floats, tenants: Tenants) -> Floats:
    """Return what each tenant and all below it used, (tenant,), of what each used itself."""
    total = own.copy()
    for child in range(len(tenants.names) - 1, -1, -1):  # parents stand before their children
        if tenants.parent[child] >= 0:
            total[tenants.parent[child]] += total[child]
    return total


def whole_shares(tenants: Tenants) -> Floats:
    """Return each tenant's part of all, (tenant,): the product of the parts by weight from the top down to it."""
    share = among_siblings(tenants.weight, tenants.parent)
    for u in np.flatnonzero(tenants.parent >= 0).tolist():  # parents stand before their children
        share[u] *= share[tenants.parent[u]]
    return share


def among_siblings(value: Floats, parent: Ints) -> Floats:
    """Return each tenant's part of what it and its siblings have, (tenant,); 0 where they have nothing."""
    family = parent + 1
    together = np.bincount(family, value, minlength=len(value) + 1)[family]
    return np.asarray(np.divide(value, together, out=np.zeros_like(value, dtype=float), where=together > 0))


def top_of(tenants: Tenants) -> Ints:
    """Return the row of each tenant's ancestor at the top, (tenant,)."""
    top = np.arange(len(tenants.names))
    for u in np.flatnonzero(tenants.parent >= 0).tolist():  # parents stand before their children
        top[u] = top[tenants.parent[u]]
    return top
