"""The numbers of accelerators on which a job can run, up to its gang: an elastic job bids for what there is.

In the paper a job takes any number of accelerators up to its demand, its speed is in proportion, and a winner keeps the
part c of the amount that it won. Here the numbers are those that the job declares; a rigid gang has one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.view import View


class GangSizes(NamedTuple):
    """Sizes of jobs, the widest that the cluster can hold first. One column where every job is rigid."""

    size: Ints  # (job, shape) accelerators; 0 = the job has no more
    speed: Floats  # (job, shape, type) steps/s; 0 = it cannot run so


def gang_sizes(view: View, jobs: Ints | slice = slice(None)) -> GangSizes:
    """Return the sizes of jobs in a view, of all unless `jobs` are named; none above the scale factor."""
    whole, shapes = view.scale_factor[jobs, None], view.shapes[jobs]
    if shapes.shape[1] == 1:
        return GangSizes(whole, np.where(whole <= view.capacity, view.throughput[jobs], 0.0)[:, None])
    runs = (shapes[:, :, None] <= view.capacity) & (shapes <= whole)[:, :, None]
    speed = np.where(runs, view.shape_throughput[jobs], 0.0)
    size = np.where(speed.any(axis=2), shapes, 0)
    size[~size.any(axis=1), 0] = view.scale_factor[jobs][~size.any(axis=1)]  # it cannot run at all
    order = np.argsort(-size, axis=1, kind="stable")
    return GangSizes(np.take_along_axis(size, order, axis=1), np.take_along_axis(speed, order[:, :, None], axis=1))


def held_width(view: View) -> Ints:
    """Return how many accelerators each job holds, (job,)."""
    return np.bincount(view.holder[view.holder >= 0], minlength=view.jobs)


def speed_at(sizes: GangSizes, width: Ints) -> Floats:
    """Return steps/s of each job on so many accelerators, (job, type); 0 where it has no such size."""
    same = (sizes.size == width[:, None]) & (width[:, None] > 0)
    if same.shape[1] == 1:
        return np.where(same, sizes.speed[:, 0], 0.0)
    at = same.argmax(axis=1)
    speed = np.take_along_axis(sizes.speed, at[:, None, None], axis=1)[:, 0]
    return np.where(same.any(axis=1)[:, None], speed, 0.0)


def kept_sizes(size: Ints, sizes: Ints, amount: int) -> Ints:
    """Return what is kept of each gang of a winning row, (gang,), of `amount` accelerators: the first ones whole.

    size (gang,) are those won, sizes (gang, shape) those that each could have, the widest first. What is left for a
    gang that is not kept whole is as much as one of its sizes takes.
    """
    kept = np.zeros_like(size)
    for g in range(len(size)):
        fits = sizes[g][(sizes[g] <= min(amount, size[g])) & (sizes[g] > 0)]
        kept[g] = fits.max(initial=0)
        amount -= int(kept[g])
    return kept
