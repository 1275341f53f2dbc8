"""Decayed usage and shares of tenants, added up and divided along the tree."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from eunomia.inputs.field_rules import Rule
from eunomia.model.arrays import Floats, Ints
from eunomia.model.tenants import Tenants

HalfLife = Annotated[float, Rule(above=0.0, endless=True, what="a number of seconds above 0, or inf to forget nothing")]


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
