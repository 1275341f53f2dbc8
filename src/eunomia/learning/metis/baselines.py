"""Allocations that Metis is compared with, each a function of the state at the start of a slot.

All see the same predictions. SLAQ and Optimus give every job its narrowest size first, in order of arrival while it
fits, as their papers and all public implementations do. References: SLAQ (H. Zhang et al., SoCC 2017), Optimus (Y. Peng
et al., EuroSys 2018), DRF (A. Ghodsi et al., NSDI 2011; one resource here, so an equal division).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.learning.metis.slot_state import SlotState
from eunomia.learning.perceptron import best_row
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import rising

Allocate = Callable[[SlotState], Ints]
MOST_ENUMERATED = 4  # jobs of an exhaustive allocation


def greedy(state: SlotState, worth: Callable[[Ints], Floats], start: Ints | None = None) -> Ints:
    """Return steps: again and again the job with the largest worth above 0, as long as it fits.

    start: the steps that jobs have already, none if it is left out.
    """
    step = np.zeros(state.jobs, dtype=np.int64) if start is None else start
    while True:
        value = worth(step)
        chosen = best_row(value, state.allowed(step) & (value > 0))
        if chosen < 0:
            return step
        step[chosen] += 1


def one_each(state: SlotState, order: Ints) -> Ints:
    """Return the narrowest size of each job in this order, as long as it fits."""
    step = np.zeros(state.jobs, dtype=np.int64)
    for row in order.tolist():
        step[row] = int(state.allowed(step)[row])
    return step


def gain_per_node(state: SlotState, step: Ints) -> Floats:
    """Return what one more step adds to the decrease of each job's normalised loss, per node."""
    return np.asarray(state.next_gain(step) / np.maximum(state.next_cost(step), 1.0))


def steepest(state: SlotState) -> Ints:
    """Return steps by the largest decrease of normalised loss per node, from no nodes at all."""
    return greedy(state, lambda step: gain_per_node(state, step))


def slaq(state: SlotState) -> Ints:
    """Return steps by the largest decrease of normalised loss per node, after the narrowest size of each job.

    Where not all jobs fit, those whose first step gains most per node run.
    """
    first = rising(-gain_per_node(state, np.zeros(state.jobs, dtype=np.int64)))
    return greedy(state, lambda step: gain_per_node(state, step), one_each(state, first))


def drf(state: SlotState) -> Ints:
    """Return equal shares: the job with the fewest nodes is next, the earlier one of equals."""
    return greedy(state, lambda step: np.asarray(1.0 / (1.0 + state.allocated(step))))


def fifo(state: SlotState) -> Ints:
    """Return the widest size for each job in order of arrival."""
    return greedy(state, lambda step: np.arange(state.jobs, 0.0, -1.0))


def srtf(state: SlotState) -> Ints:
    """Return nodes for the job with the least work left, as long as its loss falls faster with more of them."""
    order = np.empty(state.jobs)
    order[np.argsort(state.work_left, kind="stable")] = np.arange(state.jobs, 0.0, -1.0)
    return greedy(state, lambda step: np.where(state.next_gain(step) > 0, order, 0.0))


def optimus(state: SlotState) -> Ints:
    """Return steps by the largest reduction of remaining time per node, after the narrowest size of each job."""
    rows = np.arange(state.jobs)
    time = np.divide(state.work_left[:, None], state.speed, out=np.zeros(state.speed.shape), where=state.speed > 0)

    def gain(step: Ints) -> Floats:
        faster = time[rows, step] - time[rows, np.minimum(step + 1, state.last_step)]
        return np.where(step > 0, faster / np.maximum(state.next_cost(step), 1), 0.0)

    return greedy(state, gain, one_each(state, rows))


def exhaustive(state: SlotState) -> Ints:
    """Return the steps with the largest total decrease in this slot, over all allocations of at most four jobs."""
    if state.jobs > MOST_ENUMERATED:
        raise ValueError(f"an exhaustive allocation is of at most {MOST_ENUMERATED} jobs, not {state.jobs}")
    ladders = [np.arange(end + 1) for end in state.last_step.tolist()]
    every = np.stack(np.meshgrid(*ladders, indexing="ij"), axis=-1).reshape(-1, state.jobs)
    rows = np.arange(state.jobs)
    fits = state.sizes[rows, every].sum(axis=1) <= state.nodes
    total = np.where(fits, state.decrease[rows, every].sum(axis=1), -1.0)
    return np.asarray(every[best_row(total, fits)])


BASELINES: dict[str, Allocate] = {
    "fifo": fifo, "drf": drf, "srtf": srtf, "optimus": optimus, "slaq": slaq, "steepest": steepest
}  # fmt: skip
