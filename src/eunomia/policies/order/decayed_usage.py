"""Decayed usage of tenants: hourly sums whose weight halves in every half-life, added up along the tree."""

from __future__ import annotations

import math

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.model.tenants import Tenants

HOUR_S = 3600.0


def check_half_life(half_life_s: float) -> None:
    """Raise ValueError unless the half-life is above 0; inf = no decay."""
    if not half_life_s > 0:
        raise ValueError(f"half_life_s is {half_life_s}; it is a number of seconds above 0, or inf to forget nothing")


def decayed(used: Floats, at: float, half_life_s: float) -> Floats:
    """Return Σ_h 2^(-age_h / half-life) used[h,u], (tenant,), of used accelerator-seconds (hour, tenant).

    The last hour is the present one. The age of an hour is that of its middle; for the present hour, the middle of its
    past part.
    """
    hours = len(used)
    begun = math.floor(at / HOUR_S) * HOUR_S - HOUR_S * np.arange(hours - 1, -1, -1)
    middle = np.minimum(begun + HOUR_S / 2, (begun + at) / 2)
    age = np.maximum(at - middle, 0.0)
    return np.asarray(dot(elementary.power(2.0, -age / half_life_s), used))


def rolled_up(own: Floats, tenants: Tenants) -> Floats:
    """Return the usage of each tenant and all below it, (tenant,), of the tenants' own usage."""
    total = own.copy()
    for child in range(len(tenants.names) - 1, -1, -1):  # parents precede their children
        if tenants.parent[child] >= 0:
            total[tenants.parent[child]] += total[child]
    return total


def whole_shares(weight: Floats, parent: Ints) -> Floats:
    """Return each tenant's part of the cluster, (tenant,): the product of the parts by weight from the top to it."""
    share = among_siblings(weight, parent)
    for u in np.flatnonzero(parent >= 0).tolist():  # parents precede their children
        share[u] *= share[parent[u]]
    return share


def among_siblings(value: Floats, parent: Ints) -> Floats:
    """Return each tenant's part of the sum over it and its siblings, (tenant,); 0 where the sum is 0."""
    family = parent + 1
    together = np.bincount(family, value, minlength=len(value) + 1)[family]
    return np.asarray(np.divide(value, together, out=np.zeros_like(value, dtype=float), where=together > 0))


def top_of(tenants: Tenants) -> Ints:
    """Return the row of each tenant's ancestor at the top, (tenant,)."""
    top = np.arange(len(tenants.names))
    for u in np.flatnonzero(tenants.parent >= 0).tolist():  # parents precede their children
        top[u] = top[tenants.parent[u]]
    return top
