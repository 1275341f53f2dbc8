"""Common parts of the share policies: throughputs, equal shares, the second objective, and the certificate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats, Ints
from eunomia.model.certificate import Certificate, find_bindings
from eunomia.model.equal_share import usable_throughput
from eunomia.model.products import dot
from eunomia.model.rounding import rounded
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tolerance import is_at_least
from eunomia.model.view import View
from eunomia.policies.shares.options import Types

NEEDS = frozenset({"throughput", "scale_factor", "weight", "capacity"})
FAIR_AT_ONCE = Taxonomy(  # fair between jobs at each instant, by shares of time on types that are traded off
    objectives=("fairness",),
    fairness=("job", "instant"),
    heterogeneity="yes",
    sharing=("temporal",),
    preemptive=True,
)


def speeds(view: View, types: Types, reference: str = "") -> Floats:
    """Return T (job, type): believed steps/s, 0 where the gang is wider than the type.

    Agnostic: the mean over the accelerators that can run the job, on each of them; with a reference type that is there
    and runs the job, the believed steps/s on that type.
    """
    T = np.asfortranarray(usable_throughput(view.throughput, view.scale_factor, view.widest()))
    if types == "aware":
        return T
    can = T > 0
    count = dot(can, view.capacity)
    mean = np.divide(dot(T, view.capacity), count, out=np.zeros(view.jobs), where=count > 0)
    alike = rounded(mean, bits=40)
    if reference in view.types:
        there = view.throughput[:, view.types.index(reference)]
        alike = np.where(there > 0, there, alike)
    return np.asarray(can * alike[:, None])


def equal_share(view: View) -> Floats:
    """Return E (type,): a job's time split by capacity."""
    total = float(view.capacity.sum())
    return np.asarray(view.capacity / (total if total > 0 else 1.0))


def relative_speed(T: Floats) -> Floats:
    """Return T[m,j] / max_j T[m,j], (job, type): the second objective, for time that fairness leaves over."""
    best = T.max(axis=1, initial=0.0)
    return np.asarray(np.divide(T, best[:, None], out=np.zeros_like(T), where=best[:, None] > 0))


def divide(value: Floats, unit: Floats) -> Floats:
    """Return value / unit, 0 where the unit is 0."""
    return np.asarray(np.divide(value, unit, out=np.zeros_like(value, dtype=float), where=unit > 0))


def clip_shares(x: Floats) -> Floats:
    """Return X clipped to 0 … 1, against rounding errors."""
    return np.clip(x, 0.0, 1.0)


def build_answer(
    x: Floats,
    objective: float,
    bound: float,
    *,
    price: Floats | None = None,
    binding: Ints | None = None,
    read: Callable[[float], float] = float,
    point: str = "",
    scale: float = 0.0,
    tolerance: float = 1e-9,
    within: bool = False,
) -> Shares:
    """Return X (job, type) with its certificate; `read` converts a solver's value into the policy's unit.

    within: whether no share is below 0 or above 1, not even by rounding.
    """
    if binding is None and price is not None:
        binding = find_bindings(price, x > 0, is_at_least(x.sum(axis=1), 1.0))
    proof = Certificate(
        objective=read(objective),
        bound=read(bound),
        price=price,
        binding=binding,
        point=point,
        scale=scale,
        tolerance=tolerance,
    )
    return Shares(x if within else clip_shares(x), certificate=proof)
