"""Allocations that Metis is compared with, each a function of the state at the start of a slot.

All see the same predictions. References: SLAQ (H. Zhang et al., SoCC 2017), Optimus (Y. Peng et al., EuroSys 2018), DRF
(A. Ghodsi et al., NSDI 2011; one resource here, so an equal division).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.learning.metis.slot_state import SlotState
from eunomia.learning.perceptron import best_row
from eunomia.model.arrays import Floats, Ints

Allocate = Callable[[SlotState], Ints]
MOST_ENUMERATED = 4  # jobs of an exhaustive allocation


def greedy(state: SlotState, worth: Callable[[Ints], Floats]) -> Ints:
    """Return steps: again and again the job with the largest worth above 0, as long as it fits."""
    step = np.zeros(state.jobs, dtype=np.int64)
    while True:
        value = worth(step)
        chosen = best_row(value, state.allowed(step) & (value > 0))
        if chosen < 0:
            return step
        step[chosen] += 1


def slaq(state: SlotState) -> Ints:
    """Return steps by the largest decrease of normalised loss per node."""
    return greedy(state, lambda step: np.asarray(state.next_gain(step) / np.maximum(state.next_cost(step), 1.0)))


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
    """Return steps by the largest reduction of remaining time per node; a first node counts as infinite."""
    rows = np.arange(state.jobs)
    speed = np.where(state.sizes > 0, np.maximum(state.decrease, 1e-12), 0.0)

    def gain(step: Ints) -> Floats:
        now, then = speed[rows, step], speed[rows, np.minimum(step + 1, state.last_step)]
        left = 1.0 - state.progress
        with np.errstate(divide="ignore"):
            value = np.where(now > 0, left / now - left / then, 1e9 + 1.0 / np.maximum(left, 1e-9))
        return np.asarray(value / np.maximum(state.next_cost(step), 1))

    return greedy(state, gain)


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


BASELINES: dict[str, Allocate] = {"fifo": fifo, "drf": drf, "srtf": srtf, "optimus": optimus, "slaq": slaq}
