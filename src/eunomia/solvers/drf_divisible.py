"""Dominant shares of divisible tasks: shares of all users rise together; jobs that need an exhausted resource stop.

    dom[m] = max_r d[m,r] / C[r]                              dominant share of one whole task of job m
    job m of user u rises at    x'[m] = S[u] · w[m] / Σ_i w[i] / dom[m]    over the jobs i of u that still rise
    it stops with all that it wants, x[m] = most[m], or when a resource with d[m,r] > 0 has run out

d what one task takes (job, resource), C what there is in all (resource,), S weights of users (user,), w weights of
jobs (job,). So Σ_m x[m] dom[m] / S[u] is the same for all users while they rise: for a user whose tasks are alike that
is its dominant share. Between two resources that run out each user's time runs by the jobs that it still has, and all
of it is found at once from the sorted ends of the jobs: O(resources · jobs · log jobs).

Reference: A. Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", NSDI 2011,
section 4.1 (the linear program, for tasks that can be divided) and section 4.3 (weights).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.products import dot

_ROUNDING = 1e-12  # of a resource's total


class Wishes(NamedTuple):
    """What jobs ask for, and whose they are."""

    task: Floats  # (job, resource) what one whole task takes
    most: Floats  # (job,) tasks that it can use
    weight: Floats  # (job,) above 0
    user: Ints  # (job,)


def divided(wishes: Wishes, *, total: Floats, room: Floats, weight: Floats) -> Floats:
    """Return the tasks of each job, (job,), in fractions.

    `total` (resource,) is what shares are counted in, and `room` (resource,) what may still be given away, both
    inf where there is no end; `weight` (user,) is above 0 for users with jobs.
    """
    got, room = np.zeros(len(wishes.most)), room.astype(float)
    dominant = _dominant(wishes.task, total)
    got[dominant == 0] = wishes.most[dominant == 0]  # takes nothing of which there is an end
    slack = _ROUNDING * np.where(np.isfinite(total), total, 0.0)
    rises: Bools = (dominant > 0) & np.isfinite(dominant) & (wishes.most > 0)
    while True:
        rises &= ~(wishes.task[:, room <= slack] > 0).any(axis=1)
        rows = np.flatnonzero(rises)
        if not len(rows):
            return got
        some = Wishes(wishes.task[rows], wishes.most[rows] - got[rows], wishes.weight[rows], wishes.user[rows])
        more, out = _until_one_runs_out(some, dominant[rows], room, weight)
        got[rows] += more
        if out < 0:
            return got
        room = np.maximum(room - dot(more, some.task), 0.0)
        room[out] = 0.0
        rises[rows[more >= some.most]] = False


def _dominant(task: Floats, total: Floats) -> Floats:
    """Return the dominant share of one task of each job, (job,); inf where it takes what is not there."""
    ends = np.isfinite(total)
    share = np.divide(task[:, ends], total[ends], out=np.full((len(task), ends.sum()), np.inf), where=total[ends] > 0)
    return np.asarray(np.where(task[:, ends] > 0, share, 0.0).max(axis=1, initial=0.0))


def _until_one_runs_out(some: Wishes, dominant: Floats, room: Floats, weight: Floats) -> tuple[Floats, int]:
    """Let all rise from where they are; return what they gain, (job,), and the resource that ends it, -1 = none."""
    speed = some.weight / dominant  # tasks by the clock of the user, which runs at S / Σ w of the jobs that still rise
    ends = some.most / speed
    line = np.lexsort((ends, some.user))  # by user, then by end
    user, end, task = some.user[line], ends[line], some.task[line]
    starts, leaves = np.append(True, user[1:] != user[:-1]), np.append(user[1:] != user[:-1], True)
    pace = weight[user] / _from_here_on(some.weight[line, None], user)[:, 0]  # until this one ends
    before = np.where(starts, 0.0, np.append(0.0, end[:-1]))
    level = _up_to_here(((end - before) / pace)[:, None], user)[:, 0]  # the common one at which it ends
    flow = pace[:, None] * _from_here_on(speed[line, None] * task, user)  # what its user takes by level until then
    after = np.where(leaves[:, None], 0.0, np.vstack((flow[1:], flow[:1])))
    stop, out = _first_out(level, flow[starts].sum(axis=0), after - flow, room)
    if out < 0:
        return some.most, out
    first = np.flatnonzero(starts)
    size = np.diff(np.append(first, len(line)))
    passed = np.add.reduceat((level < stop).astype(np.int64), first)  # (user with jobs,)
    at = first + np.minimum(passed, size - 1)
    began = np.where(passed > 0, level[np.maximum(at - 1, 0)], 0.0)
    clock = np.repeat(np.where(passed < size, before[at] + (stop - began) * pace[at], np.inf), size)
    gained = np.empty(len(line))
    gained[line] = np.where(end <= clock, some.most[line], speed[line] * np.where(end <= clock, 0.0, clock))
    return np.minimum(gained, some.most), out


def _first_out(level: Floats, flow: Floats, change: Floats, room: Floats) -> tuple[float, int]:
    """Return the level at which the first resource runs out, and which; (inf, -1) if none does.

    `flow` (resource,) is used by level at first, and changes by `change` (job, resource) at `level` (job,).
    """
    sort = np.argsort(level, kind="stable")
    knots = np.append(0.0, level[sort])
    flows = np.maximum(flow + np.vstack((np.zeros(len(flow)), np.cumsum(change[sort], axis=0))), 0.0)[:-1]
    used = np.vstack((np.zeros(len(flow)), np.cumsum(flows * np.diff(knots)[:, None], axis=0)))
    over = used > room * (1.0 + _ROUNDING)
    if not over.any():
        return np.inf, -1
    knot = int(np.argmax(over.any(axis=1))) - 1  # the last at which everything is still enough
    stops = np.full(len(flow), np.inf)
    which = over[knot + 1]
    stops[which] = knots[knot] + (room[which] - used[knot, which]) / flows[knot, which]
    out = int(np.argmin(stops))
    return float(stops[out]), out


@kernel()
def _up_to_here(value: Floats, user: Ints) -> Floats:
    """Return running sums of value (row, axis) that begin anew with each user; a user's rows stand together."""
    sums = value.copy()
    for k in range(1, len(user)):
        if user[k] == user[k - 1]:
            sums[k] += sums[k - 1]
    return sums


def _from_here_on(value: Floats, user: Ints) -> Floats:
    """Return sums of value (row, axis) from each row to the last one of its user."""
    return _up_to_here(np.ascontiguousarray(value[::-1]), np.ascontiguousarray(user[::-1]))[::-1]
