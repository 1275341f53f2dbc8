"""The arrays that a transition of a job changes: arguments of compiled code in place of objects.

The column numbers below are rows of the tables of `State.jobs`, `Ledger` and `Belief`.
"""

from __future__ import annotations

from typing import NamedTuple

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.placement.free_index import Index

# State.jobs
INTS = (
    "stage", "scale_factor", "owner", "epoch", "failures", "on_type", "shape", "partner", "lease_size",
    "last_pass", "first_device",
)  # fmt: skip
STAGE, SCALE_FACTOR, OWNER, EPOCH, FAILURES, ON_TYPE, SHAPE, PARTNER, LEASE_SIZE, LAST_PASS, FIRST_DEVICE = range(
    len(INTS)
)
FLOATS = ("weight", "submitted", "deadline", "until", "end", "first_started")
WEIGHT, SUBMITTED, DEADLINE, UNTIL, END, FIRST_STARTED = range(len(FLOATS))
FLAGS = ("ran", "reassignable", "lease_extended", "no_checkpoint", "uninterruptible", "held")
RAN, REASSIGNABLE, LEASE_EXTENDED, NO_CHECKPOINT, UNINTERRUPTIBLE, HELD = range(len(FLAGS))
# Ledger
WIDTH, LAST_TYPE = range(2)
SERVICE, SERVED_SINCE = range(2)
# Belief
KIND = 0
TOTAL, DONE, RATE, RATE_SINCE = range(4)
# State.counts
ALIVE, WAITING, ILLEGAL_JOB, ILLEGAL_CAUSE = range(4)  # the last two: row + 1 and cause of a step that is not allowed


class KernelArrays(NamedTuple):
    """The arrays of one scheduler's state; compiled steps change them in place."""

    ints: Ints  # (column, job)
    floats: Floats
    flags: Bools
    active: Ints  # (job,) rows that wait or run, ascending; the first counts[ALIVE] are valid
    counts: Ints
    holder: Ints  # (device,)
    next_device: Ints  # (device,) next seat of the same gang, -1 = none
    ledger_ints: Ints  # (column, job)
    ledger_floats: Floats
    received: Floats  # (job, type)
    belief_ints: Ints  # (column, job)
    belief_floats: Floats
    throughput: Floats  # (job, type)
    cost: Floats  # (0 = first start, 1 = later one, 2 = later one without a checkpoint; accelerators) seconds
    prefer: Ints  # (kind, type) types, the fastest first
    floor: Index
    up: Bools  # (node,)


@kernel(allocates=False)
def kernel_arrays(
    ints: Ints,
    floats: Floats,
    flags: Bools,
    active: Ints,
    counts: Ints,
    holder: Ints,
    next_device: Ints,
    ledger_ints: Ints,
    ledger_floats: Floats,
    received: Floats,
    belief_ints: Ints,
    belief_floats: Floats,
    throughput: Floats,
    cost: Floats,
    prefer: Ints,
    up: Bools,
    node_type: Ints,
    first: Ints,
    size: Ints,
    node: Ints,
    free: Ints,
    device_free: Bools,
    total: Ints,
    nodes: Ints,
    filled: Ints,
    words: Ints,
    summary: Ints,
) -> KernelArrays:
    """Name the arrays. They come one by one because a tuple of many takes longer to unpack than a step takes.

    One array more than these made a pass take half as long again when it was measured, so what is new shares an array
    with something old.
    """
    floor = Index(node_type, first, size, node, free, device_free, total, nodes, filled, words, summary)
    return KernelArrays(
        ints, floats, flags, active, counts, holder, next_device, ledger_ints, ledger_floats, received,
        belief_ints, belief_floats, throughput, cost, prefer, floor, up,
    )  # fmt: skip
