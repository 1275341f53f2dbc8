"""Fixed needs on divisible columns: the least load that serves all, exactly, whatever the number of rows.

    minimise θ   subject to   Σ_k T[k,i] x[k,i] = r[i],   Σ_k x[k,i] ≤ 1,   B[k] + Σ_i s[i] x[k,i] ≤ θ N[k],   x ≥ 0

T rate, s load of a whole share, N capacity, r need, B load that is there already. At given prices each row's cheapest
mix is an edge of its hull (`pricing/newton.py`), and what all rows load then is one answer. The simplex method of
`small_programs/simplex.py` mixes answers. Its unknowns are their parts λ and a σ of either sign, with θ = a + c (1 − σ)
for an a and a c that lie near: where most load is there already, answers differ by little.

    maximise σ + Σ_k (least_k v_k − most_k u_k)   subject to   Σ_j d_jk λ_j + σ + v_k − u_k ≤ 1,   Σ_j λ_j = 1

d_j = (D_j / N − a) / c of the loads D_j of answer j. The trades u and v keep the worth of a column, price · N with sum
1, between two bounds: an answer without trades is the answer without bounds. A step costs one look at the rows, so the
rows may be many, and rows that are alike are no difficulty, as they answer alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.solvers.pricing.newton import answers
from eunomia.solvers.pricing.response import walk
from eunomia.solvers.program import INF, Program
from eunomia.solvers.small_programs.simplex import Basis, begin, enter, enter_answer, enter_unused, prices

_STEPS = 4000  # some hundred is many
_PROVEN = 1e-10  # relative: how far the load may be above its bound
_OUTSIDE = 1e-13  # of all worth: what a column's may be beyond its bounds
_ROUNDING = 1e-14  # of c: what an answer must gain
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class LeastLoad:
    """The least load, the prices that prove it, and the shares."""

    over: float  # θ − 1; with worths kept between bounds the most that any of them proves
    worth: Floats  # (column,) price · capacity, sum 1
    traded: Floats  # (column,) above 0 where a bound keeps the worth from rising, below where it keeps it from falling
    answers: Floats  # (answer, column) worths whose answers are mixed
    share: Floats  # (column, row)


def least_load(
    rows: tuple[Floats, Floats, Floats], capacity: Floats, base: Floats, bounds: tuple[Floats, Floats], start: Floats
) -> LeastLoad:
    """Solve the program above; rows: rate (column, row), load and need (row,); capacity and base load (column,).

    bounds: least and most worth (column,). start (answer, column): worths that are tried first. Without capacity a
    column serves no row, with an infinite one it has no price. A need above the row's best rate is taken for that rate.
    Where rounding keeps the simplex method from a proof, the general solver takes the program. Raises NoOptimum if it
    fails, too.
    """
    rate, load, need = rows
    inverse = np.divide(1.0, capacity, out=np.zeros(len(capacity)), where=capacity > 0)
    rate = np.ascontiguousarray(rate if (capacity > 0).all() else np.where(capacity[:, None] > 0, rate, 0.0))
    theta, bound, worth, traded, worths, part = _mixed(rate, load, need, inverse, base, *bounds, start)
    if not theta - bound <= _PROVEN * max(theta, 1.0):
        return _by_program(rate, load, need, inverse, base, bounds)
    share = np.zeros_like(rate)
    _mix(rate, need, worths * inverse, part, share)
    return LeastLoad(theta - 1.0, worth, traded, worths[part > 0], share)


def _by_program(
    rate: Floats, load: Floats, need: Floats, inverse: Floats, base: Floats, bounds: tuple[Floats, Floats]
) -> LeastLoad:
    """Solve the program by the general solver; θ − 1 and trades are counted in parts of the largest row."""
    K, n = rate.shape
    least, most = bounds
    row, column = np.nonzero(rate.T > 0)
    part = load[row] * inverse[column]
    unit = max(float(part.max(initial=0.0)), 1e-9)
    buy, sell = np.flatnonzero(most < 1), np.flatnonzero(least > 0)
    trade, shares = np.concatenate((most[buy], -least[sell])), len(row)
    index = np.stack((row, n + row, 2 * n + column), axis=1).ravel()
    value = np.stack((rate[column, row], np.ones(shares), part / unit), axis=1).ravel()
    starts = (3 * np.arange(shares), 3 * shares + np.arange(len(trade) + 1), np.array([3 * shares + len(trade) + K]))
    program = Program(
        cost=np.concatenate((np.zeros(shares), trade, np.ones(1))),
        start=np.concatenate(starts),
        index=np.concatenate((index, 2 * n + np.concatenate((buy, sell)), 2 * n + np.arange(K))),
        value=np.concatenate((value, -np.sign(trade), -np.ones(K))),
        low=np.concatenate((np.minimum(need, rate.max(axis=0)), np.full(n + K, -INF))),
        high=np.concatenate((np.full(n, INF), np.ones(n), (1.0 - base * inverse) / unit)),
        lower=np.append(np.zeros(shares + len(trade)), -INF),
        maximise=False,
    )
    solved = program.solve()
    worth = np.maximum(-solved.row_price[2 * n :], 0.0)
    worth /= worth.sum()
    share, traded = np.zeros_like(rate), np.zeros(K)
    share[column, row] = solved.x[:shares]
    traded[buy] += solved.x[shares : shares + len(buy)] * unit
    traded[sell] -= solved.x[shares + len(buy) : -1] * unit
    return LeastLoad(solved.objective * unit, worth, traded, worth[None], share)


@kernel()
def _mixed(
    rate: Floats, load: Floats, need: Floats, inverse: Floats, base: Floats, least: Floats, most: Floats, start: Floats
) -> tuple[float, float, Floats, Floats, Floats, Floats]:
    """Return θ, a bound that it is not below, worth, trades (column,), worths of answers (member, column), their parts.

    The members of the basis are kept as the worths that they answer to.
    """
    K = len(rate)
    # begin with the answer to the first worths; loads are counted from it, in its unit
    demand, worth, ones, idle = np.zeros(K), np.empty((K, 1)), np.ones(K), np.zeros(rate.shape[1])
    bound, tried, tries = -np.inf, 1, 0
    worth[:, 0] = start[0]
    _answer(rate, load, need, inverse, base, idle, worth, demand)
    shift, unit = _scale(demand, inverse)
    for k in range(K):
        demand[k] = (demand[k] - shift) / unit if inverse[k] > 0.0 else 0.0
    found = begin(ones, demand, 0.0, worth)
    # a step of the simplex method: columns at hand first, which cost no look at the rows
    while tries < _STEPS:
        tries += 1
        if enter_unused(found, prices(found), worth):
            continue
        whole = 0.0
        for k in range(K):
            whole += found.price[k] if inverse[k] > 0.0 else 0.0
        if _correct(found, inverse, least, most, whole, worth):
            continue
        if not whole > 0.0:  # no column has a price
            bound = shift
            break
        # which worths to answer to: those that were given, then the present prices
        given = tried < len(start)
        if given:
            worth[:, 0] = start[tried]
            tried += 1
        else:
            for k in range(K):
                worth[k, 0] = found.price[k] / whole if inverse[k] > 0.0 else 0.0
        # what all rows load then; at the present prices it is also a bound
        _answer(rate, load, need, inverse, base, idle, worth, demand)
        paid = 0.0
        for k in range(K):
            demand[k] = (demand[k] - shift) / unit if inverse[k] > 0.0 else 0.0
            paid += found.price[k] * demand[k]
        gains = paid < -found.price[K] - _ROUNDING
        if not given:
            bound = max(bound, shift + unit * paid / whole)
            if not gains:
                break
        if gains and not enter_answer(found, ones, demand, 0.0, worth) and not given:
            break
    # the least load is the mix of the basis; members without an answer are trades between columns
    theta, traded, worths, part = shift + unit, np.zeros(K), np.zeros((K + 1, K)), np.zeros(K + 1)
    for j in range(K + 1):
        amount = max(found.amount[j], 0.0)
        theta -= unit * amount * found.value[j]
        if found.matrix[K, j] > 0.0:
            worths[j], part[j] = found.members[j, :, 0], amount
        elif abs(found.value[j]) < 1.0 and found.value[j] != 0.0:
            for k in range(K):
                traded[k] -= unit * amount * found.matrix[k, j]
    return theta, bound, worth[:, 0].copy(), traded, worths, part


@kernel()
def _answer(
    rate: Floats, load: Floats, need: Floats, inverse: Floats, base: Floats, idle: Floats, worth: Floats, demand: Floats
) -> None:
    """Write what all rows load of each column at these worths (column, 1), in parts of its capacity."""
    K = len(rate)
    price, loads = np.empty(K), np.zeros((2, K))
    for k in range(K):
        price[k] = worth[k, 0] * inverse[k]
    answers(rate, idle, load, need, idle, price, loads)
    for k in range(K):
        demand[k] = (loads[0, k] + base[k]) * inverse[k]


@kernel()
def _scale(demand: Floats, inverse: Floats) -> tuple[float, float]:
    """Return the a and the c of the program: the least load of a column and how far the greatest is above it."""
    least, most = np.inf, 0.0
    for k in range(len(demand)):
        if inverse[k] > 0.0:
            least, most = min(least, demand[k]), max(most, demand[k])
    if not least < most:
        least = 0.0
    return least, max(most - least, 1e-300)


@kernel()
def _correct(found: Basis, inverse: Floats, least: Floats, most: Floats, whole: float, worth: Floats) -> bool:
    """Let σ enter where the worths, `whole` in all, do not add up to 1; else the trade of the column farthest outside.

    Returns whether one did.
    """
    K, value = len(least), 0.0
    for i in range(K + 1):
        found.column[i] = 0.0
    if abs(whole - 1.0) > _OUTSIDE:
        value = 1.0 if whole < 1.0 else -1.0
        for k in range(K):
            found.column[k] = value if inverse[k] > 0.0 else 0.0
        return enter(found, value, worth, False)
    chosen, beyond = -1, _OUTSIDE
    for k in range(K):
        price = found.price[k]
        if price - most[k] > beyond and most[k] < 1.0:
            chosen, beyond, value = k, price - most[k], -most[k]
        if least[k] - price > beyond and least[k] > 0.0:
            chosen, beyond, value = k, least[k] - price, least[k]
    if chosen < 0:
        return False
    found.column[chosen] = -1.0 if value < 0.0 else 1.0
    return enter(found, value, worth, False)


@kernel(error_model="numpy")
def _mix(rate: Floats, need: Floats, price: Floats, part: Floats, share: Floats) -> None:
    """Add to share (column, row) the cheapest mixes at prices (answer, column), each for its part (answer,)."""
    K, n = rate.shape
    idle, asked = np.zeros(n), np.empty(_BLOCK)
    L, R = np.empty((3, _BLOCK)), np.empty((3, _BLOCK))
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        for j in range(nb):
            asked[j] = 0.0
        for k in range(K):
            for j in range(nb):
                asked[j] = max(asked[j], rate[k, o + j])
        for j in range(nb):
            asked[j] = min(asked[j], need[o + j])
        for a in range(len(part)):
            if part[a] <= 0.0:
                continue
            walk(rate, idle, o, nb, price[a], asked, L, R)
            for j in range(nb):
                right, left = int(R[2, j]), int(L[2, j])
                if asked[j] > 0.0 and right >= 0:
                    up = (asked[j] - L[0, j]) / (R[0, j] - L[0, j])
                    share[right, o + j] += part[a] * up
                    if left >= 0:
                        share[left, o + j] += part[a] * (1.0 - up)
