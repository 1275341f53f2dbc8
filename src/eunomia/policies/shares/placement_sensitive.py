"""Placement sensitivity: a gang on one machine, or spread over several at a lower throughput, alone or in a pair.

    T[m,j] = throughput on one machine where the type has machines of at least z_m accelerators, else spread
    T[m|n,j] likewise beside n, as both have one scale factor and the same accelerators

and a row whose gang is slower when spread, or one of whose two gangs is, requests one machine. Spreading never helps at
the same number of accelerators, so the programs have one column per type, and a pair has one row.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 3.1 (placement sensitivity).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Rows, Shares
from eunomia.model.arrays import Bools, Ints
from eunomia.model.view import View
from eunomia.policies.shares.options import Placement


def largest_machine(view: View) -> Ints:
    """Return (type,) the accelerators of the largest machine of each type."""
    topology = view.topology
    size = np.bincount(topology.node, minlength=1)
    largest = np.zeros(len(view.types), dtype=np.int64)
    np.maximum.at(largest, topology.type, size[topology.node])
    return largest


def at_best_place(view: View, placement: Placement) -> View:
    """Return the view; with placement sensitivity its throughputs, alone and in pairs, are of the best placement."""
    if placement == "ignored":
        return view
    largest, columns = largest_machine(view), dict(view.columns)
    fits = view.scale_factor[:, None] <= largest
    columns["throughput"] = np.where(fits, view.throughput, view.spread_throughput)
    if "packed_spread_throughput" in columns:
        size = np.zeros(len(view.packed_throughput), dtype=np.int64)
        size[view.job_class] = view.scale_factor
        fits = (size[:, None] <= largest)[:, None]
        columns["packed_throughput"] = np.where(fits, view.packed_throughput, view.packed_spread_throughput)
    return replace(view, columns=columns)


def with_placement(answer: Shares, view: View, placement: Placement) -> Shares:
    """Return the answer; with placement sensitivity as rows with the placement that a view `at_best_place` assumes."""
    if placement == "ignored":
        return answer
    x, rows = answer.x, answer.rows
    if rows is None:
        job, type = np.nonzero(x > 0)
        x, rows = x[job, type], Rows(job, type)
    within = np.where(_loses_by_spreading(rows, view), ONE_MACHINE, ANYWHERE)
    return replace(answer, x=x, rows=replace(rows, within=within))


def _loses_by_spreading(rows: Rows, view: View) -> Bools:
    """Return (row,) whether the gang of a row, or either of its two, is slower when it is spread."""
    loses = (view.throughput > view.spread_throughput)[rows.job, rows.type]
    if rows.partner is None:
        return np.asarray(loses)
    pairs, kind = view.packed_throughput > view.packed_spread_throughput, view.job_class
    mine, other = kind[rows.job], kind[rows.partner]
    together = pairs[mine, other, rows.type] | pairs[other, mine, rows.type]
    return np.where(rows.partner >= 0, together, loses)
