"""Placement sensitivity: a gang on one machine, or spread over several at a lower throughput.

    T[m,j] = throughput on one machine where the type has machines of at least z_m accelerators, else spread

and a row whose gang is slower when spread requests one machine. Spreading never helps at the same number of
accelerators, so the program has one column per type.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 3.1 (placement sensitivity).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Rows, Shares
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.policies.shares import share_inputs
from eunomia.policies.shares.options import Placement, Types


def largest_machine(view: View) -> Ints:
    """Return (type,) the accelerators of the largest machine of each type."""
    topology = view.topology
    size = np.bincount(topology.node, minlength=1)
    largest = np.zeros(len(view.types), dtype=np.int64)
    np.maximum.at(largest, topology.type, size[topology.node])
    return largest


def fits_together(view: View) -> Bools:
    """Return (job, type) whether one machine of the type is large enough for the gang."""
    return np.asarray(view.scale_factor[:, None] <= largest_machine(view))


def speeds(view: View, types: Types, placement: Placement, reference: str = "") -> Floats:
    """Return T (job, type); with placement sensitivity that of the best possible placement."""
    if placement == "ignored":
        return share_inputs.speeds(view, types, reference)
    T = np.where(fits_together(view), view.throughput, view.spread_throughput)
    return share_inputs.speeds(replace(view, columns={**view.columns, "throughput": T}), types, reference)


def with_placement(answer: Shares, view: View, placement: Placement) -> Shares:
    """Return the answer; with placement sensitivity as rows with the placement that T assumes."""
    if placement == "ignored":
        return answer
    job, type = np.nonzero(answer.x > 0)
    loses = (view.throughput > view.spread_throughput) & fits_together(view)
    within = np.where(loses[job, type], ONE_MACHINE, ANYWHERE)
    return replace(answer, x=answer.x[job, type], rows=Rows(job, type, within=within))
