"""A point of the central path of a level program whose rows share columns in pairs.

    maximise t   subject to   E[c] ≥ a[c] n[c] t,   time[c] ≤ n[c],   use[k] ≤ C[k],   Y ≥ 0

as in `sharing`, with every pair that fits, also those that gain nothing. An interior-point solver of the program with a
variable for each row and pair of rows stops near such a point. There alike rows have alike shares, so that one variable
per class serves, whose slack times price is as many times the common product as it stands for variables
(S. J. Wright, "Primal-Dual Interior-Point Methods", SIAM 1997, chapter 5). A Newton step is one pass over the
activities and a dense system of two lines a class and one a column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.packing.activities import ALONE, Activities
from eunomia.solvers.pricing.barrier import solve_dense

_END = 1e-10  # slack times price where the path is left; t and the sum of all prices are about 1
_STEPS = 150
_CENTRED = 3  # whole steps at the end of the path


class _Program(NamedTuple):
    """One line for each class's level, then one for each class's time, then one for each column's capacity."""

    first: Ints  # (activity,)
    second: Ints  # (activity,) the first again where there is no partner
    column: Ints  # (activity,)
    gain: Floats  # (3, activity): of the first class's rate, of the second's, and what is taken of the column
    partners: Ints  # (activity,) 0 or 1
    many: Floats  # (activity,) variables that it stands for
    times: Floats  # (line,) slacks that a line stands for
    need: Floats  # (class,) a n


def inside_shared(
    things: Activities, size: Floats, count: Ints, capacity: Floats, need: Floats, level: float
) -> tuple[Floats, float]:
    """Return the time of each activity (activity,) and its level, within about 1e-6 of the highest `level` > 0.

    size, count and need (class,), need above 0 and all served; capacity (column,) above 0 where an activity uses it.
    """
    n, pair = count.astype(float), things.second != ALONE
    second = np.where(pair, things.second, things.first)
    own = np.zeros(len(n))  # a class's own unit changes nothing but roundings
    np.maximum.at(own, things.first, things.first_rate)
    within = pair & (things.first == things.second)
    many = np.where(within, n[things.first] * (n[things.first] - 1) / 2, n[things.first] * np.where(pair, n[second], 1))
    gain = np.stack((things.first_rate / own[things.first], things.second_rate / own[second], size[things.first]))
    columns = np.flatnonzero(np.bincount(things.column, minlength=len(capacity)))
    place = np.searchsorted(columns, things.column)
    times = np.concatenate((n, n, np.ones(len(columns))))
    program = _Program(things.first, second, place, gain, pair.astype(np.int64), many, times, need * n * level / own)
    limit = np.concatenate((n, capacity[columns]))
    Y = _path(program, limit)
    _fit(program, limit, Y)
    done = np.bincount(things.first, things.first_rate * Y, len(n))
    done += np.bincount(second, things.second_rate * Y, len(n))
    return Y, float((done / (need * n)).min())


@kernel()
def _lines(program: _Program, a: int, line: Ints, weight: Floats) -> int:
    """Write the lines that an activity is in and its entries there; return how many."""
    classes, shared = len(program.need), program.partners[a]
    line[0], weight[0] = program.first[a], -program.gain[0, a]
    line[1], weight[1] = classes + program.first[a], 1.0
    line[2], weight[2] = 2 * classes + program.column[a], program.gain[2, a]
    if shared == 0:
        return 3
    line[3], weight[3] = program.second[a], -program.gain[1, a]
    line[4], weight[4] = classes + program.second[a], 1.0
    return 5


@kernel()
def _start(program: _Program, limit: Floats, Y: Floats, slack: Floats) -> float:
    """Write a point inside all bounds; return its t. limit (class + column,) of times and capacities."""
    line, weight = np.empty(5, dtype=np.int64), np.empty(5)
    classes, used = len(program.need), np.zeros(len(slack))
    for a in range(len(Y)):
        for i in range(_lines(program, a, line, weight)):
            used[line[i]] += weight[i] * program.many[a]
    fullest = 0.0
    for i in range(classes, len(used)):
        fullest = max(fullest, used[i] / limit[i - classes])
    part, t = 0.5 / fullest, np.inf
    for a in range(len(Y)):
        Y[a] = part * program.many[a]
    for i in range(classes, len(used)):
        slack[i] = limit[i - classes] - part * used[i]
    for c in range(classes):
        t = min(t, -part * used[c] / program.need[c])
    t -= max(0.5 * abs(t), 0.1)
    for c in range(classes):
        slack[c] = -part * used[c] - program.need[c] * t
    return t


@kernel()
def _system(mu: float, program: _Program, Y: Floats, z: Floats, slack: Floats, price: Floats, matrix: Floats) -> Floats:
    """Write the system in the new prices and the step of t; return its right side."""
    line, weight = np.empty(5, dtype=np.int64), np.empty(5)
    lines, classes = len(price), len(program.need)
    right = np.zeros(lines + 1)
    matrix[:] = 0.0
    right[lines] = 1.0
    for i in range(lines):
        matrix[i, i] = slack[i] / price[i]
        right[i] = mu * program.times[i] / price[i]
    for c in range(classes):
        matrix[c, lines] = -program.need[c]
        matrix[lines, c] = program.need[c]
    for a in range(len(Y)):
        count = _lines(program, a, line, weight)
        D, b = Y[a] / z[a], mu * program.many[a] / z[a]
        for i in range(count):
            right[line[i]] += weight[i] * b
            for j in range(count):
                matrix[line[i], line[j]] += weight[i] * D * weight[j]
    return right


@kernel()
def _fit(program: _Program, limit: Floats, Y: Floats) -> None:
    """Take what the last digits of a long sum put beyond times and capacities."""
    line, weight = np.empty(5, dtype=np.int64), np.empty(5)
    classes = len(program.need)
    over = np.zeros(len(program.times))
    for a in range(len(Y)):
        for i in range(_lines(program, a, line, weight)):
            over[line[i]] += weight[i] * Y[a]
    for a in range(len(Y)):
        most = 1.0
        for i in range(_lines(program, a, line, weight)):
            if line[i] >= classes:
                most = max(most, over[line[i]] / limit[line[i] - classes])
        Y[a] /= most


@kernel()
def _longest(value: Floats, change: Floats) -> float:
    """Return the step up to which positive values stay so."""
    step = np.inf
    for i in range(len(value)):
        if change[i] < 0.0:
            step = min(step, -value[i] / change[i])
    return step


@kernel()
def _path(program: _Program, limit: Floats) -> Floats:
    """Follow the path from the middle to its end; return Y (activity,)."""
    line, weight = np.empty(5, dtype=np.int64), np.empty(5)
    Y, slack = np.empty(len(program.many)), np.empty(len(program.times))
    # begin where no activity and no slack is 0; duals so that each product is 1
    _start(program, limit, Y, slack)
    lines, pairs = len(slack), len(Y)
    z, price = program.many / Y, program.times / slack
    dY, dz, dslack, dprice = np.empty(pairs), np.empty(pairs), np.empty(lines), np.empty(lines)
    matrix = np.empty((lines + 1, lines + 1))
    whole = 0.0
    for a in range(pairs):
        whole += program.many[a]
    for i in range(lines):
        whole += program.times[i]
    mu, centred = 1.0, 0
    for _ in range(_STEPS):
        # one step of Newton's method in the prices, from which the changes of all others follow
        found = _system(mu, program, Y, z, slack, price, matrix)
        if not solve_dense(matrix, found):
            break
        for a in range(pairs):
            g = 0.0
            for i in range(_lines(program, a, line, weight)):
                g += weight[i] * found[line[i]]
            dY[a] = (mu * program.many[a] - Y[a] * g) / z[a]
            dz[a] = g - z[a]
        for i in range(lines):
            dslack[i] = (mu * program.times[i] - slack[i] * found[i]) / price[i]
            dprice[i] = found[i] - price[i]
        # as far as all that is positive stays so
        primal = min(1.0, 0.95 * min(_longest(Y, dY), _longest(slack, dslack)))
        dual = min(1.0, 0.95 * min(_longest(z, dz), _longest(price, dprice)))
        gap = 0.0
        for a in range(pairs):
            Y[a] += primal * dY[a]
            z[a] += dual * dz[a]
            gap += Y[a] * z[a]
        for i in range(lines):
            slack[i] += primal * dslack[i]
            price[i] += dual * dprice[i]
            gap += slack[i] * price[i]
        # done after some whole steps at the last μ; else μ falls, the more the longer this step was
        near = min(primal, dual)
        if mu <= _END and near == 1.0:
            centred += 1
            if centred == _CENTRED:
                break
        mu = max((0.1 if near > 0.9 else 0.3 if near > 0.5 else 0.8) * gap / whole, _END)
    return Y
