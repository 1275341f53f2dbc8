"""The last moment of a crowd too large for the general solver: boxes of prices and moments, each inside the last.

See solvers/crowd.py for the idea. `settle` returns the exact answer for all rows, and the mix of each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.solvers.filling.crowd import FITS, Crowd, Sums, last_moment
from eunomia.solvers.filling.edges import OPEN, add_up, keep
from eunomia.solvers.filling.localise import errors, localise

FEW = 160  # rows that go to the general solver as they are
_SAMPLE = 4_096  # rows of a first sample
_SPREAD = 2.0  # standard errors of a sample's answer that a box is wide to either side
_ROUGH = 5.0  # cutting planes go on to this error over the number of all rows
_TIMES = (1.0, 1.5, 4.5, 13.5)  # widths of boxes; the second lies around the side at which the first was left
_LITTLE = 0.1  # part of all the worth, above which a column is not taken for free
_PARTED = 0.8  # of the rows, open in a box: too many for it to be of use
_TRADED = 1e-12  # load, relative to capacity, below which a trade is rounding
_ROUNDING = 1e-11  # part of all the value, Σ price · capacity = 1, below which a column's is rounding


@dataclass(frozen=True, slots=True)
class Settled:
    """The last moment and the mix of every row. Columns are numbered as given; the one after them is all free ones."""

    moment: float
    price: Floats  # (column + 1,) at which the needs cost all there is; zeros where everything fits to the end
    worth: Floats  # (column + 1,) price · capacity
    over: float  # load above capacity, relative
    later: bool  # more would fit if `high` were not in the way
    left: Array  # (row,) left end of the row's edge, −1 idle; OPEN for `rows`
    right: Array  # (row,) right end
    rows: Ints  # those whose shares stand by themselves
    share: Floats  # (row of `rows`, column + 1)
    traded: Floats  # (column + 1,) not 0 where a bound of its worth was in the way, see routing.Routed


@dataclass(frozen=True, slots=True)
class _Guess:
    """Where the answer seems to be; columns are numbered as given."""

    moment: float
    worth: Floats  # (column + 1,) price · capacity, sum 1, or zeros
    blur: Floats  # (column + 1,) how far off that may be
    spread: float  # how far off the moment may be, relative


def settle(crowd: Crowd, low: float, high: float, rng: np.random.Generator) -> Settled:
    """Return the last moment in [low, high] that fits. Raises NoOptimum when boxes lead nowhere."""
    size = _SAMPLE
    while len(crowd.load) > FEW:
        found = _settle_from(_guess(crowd, size, low, high, rng), crowd, low, high, rng)
        if found is not None:
            return found
        if size >= len(crowd.load):
            break
        size *= 8
    return settle_few(crowd, low, high)


def _settle_from(guess: _Guess, crowd: Crowd, low: float, high: float, rng: np.random.Generator) -> Settled | None:
    """Return the same from a first guess, or None where its boxes lead nowhere."""
    for times in _TIMES:
        slim = _without_free(crowd, guess, times)
        box = _around(guess, slim, times, low, high)
        left, right, fewer = _narrow(slim, box)
        rows = np.flatnonzero(left == OPEN)
        if len(rows) > _PARTED * len(left):
            return None
        found = settle(fewer, box.low, box.high, rng)
        if not box.missed(found, slim, low, high):
            return _spread(found, slim, left, right, rows)
        worth = found.worth if found.worth.any() else guess.worth  # none is known where all fits to the box's end
        guess = replace(guess, moment=found.moment, worth=worth)
    return None


def _guess(crowd: Crowd, size: int, low: float, high: float, rng: np.random.Generator) -> _Guess:
    """Return where cutting planes find the answer of about `size` rows, all if there are no more."""
    if len(crowd.load) <= size:
        goal = _ROUGH * crowd.part / len(crowd.load)
        place = localise(crowd, low, high, goal)
        return _Guess(place.moment, *_named(crowd, place.worth, 3 * place.radius), goal)
    some, noise = _sample(crowd, size, rng), crowd.part / np.sqrt(size)
    place = localise(some, low, high, 0.2 * noise)
    error, spread = errors(some, place.worth, place.moment, noise)
    blur = 3 * place.radius + _SPREAD * error
    return _Guess(place.moment, *_named(crowd, place.worth, blur), 0.2 * noise + _SPREAD * spread)


def _named(crowd: Crowd, worth: Floats, blur: Floats) -> tuple[Floats, Floats]:
    """Return both by the columns as given, (column + 1,)."""
    named = np.zeros((2, crowd.columns + 1))
    named[:, crowd.column] = worth, blur
    return named[0], named[1]


@dataclass(frozen=True, slots=True)
class _Box:
    """Moments, and for each column its worth, price · capacity."""

    low: float
    high: float
    least: Floats
    most: Floats

    def missed(self, found: Settled, crowd: Crowd, low: float, high: float) -> bool:
        """Return whether a side of the box was in the way that is no side of the crowd's own."""
        traded = found.traded[crowd.column]
        dearer, cheaper = (
            (traded > _TRADED) & (self.most < crowd.most),
            (traded < -_TRADED) & (self.least > crowd.least),
        )
        sooner = found.over > FITS and self.low > low
        later = found.later and self.high < high
        return bool(dearer.any() or cheaper.any() or sooner or later)


def _around(guess: _Guess, crowd: Crowd, times: float, low: float, high: float) -> _Box:
    """Return the box of `times` the guess's error, as far as the crowd's own bounds go."""
    worth, width = guess.worth[crowd.column], times * guess.blur[crowd.column]
    least, most = np.maximum(worth - width, crowd.least), np.minimum(worth + width, crowd.most)
    if not worth.any() or least.sum() > 1 or most.sum() < 1:
        least, most = crowd.least, crowd.most
    least, most = _within_one(least, most, np.isfinite(crowd.capacity))
    spread = min(times * guess.spread, 1.0) * guess.moment
    return _Box(max(low, guess.moment - spread), min(high, guess.moment + spread), least, np.maximum(most, least))


def _within_one(least: Floats, most: Floats, costly: Bools) -> tuple[Floats, Floats]:
    """Return the bounds of worth that follow from all worth being 1, and that of what is not `costly` 0, (column,).

    The dearest column is known as well as all others together.
    """
    low, high = np.where(costly, least, 0.0), np.where(costly, most, 0.0)
    above, below = 1 - (high.sum() - high), 1 - (low.sum() - low)
    least = np.where(costly & (above > least + _ROUNDING), above, least)
    return least, np.where(costly & (below < most - _ROUNDING), below, most)


def rough_price(crowd: Crowd, moment: float, rng: np.random.Generator) -> Floats:
    """Return prices (column,) at which a sample of the crowd loads no column more than others by much."""
    part = _sample(crowd, _SAMPLE, rng) if len(crowd.load) > _SAMPLE else crowd
    spare = replace(part, capacity=part.capacity * (1 - 1 / np.sqrt(len(part.load) + 1)))
    return localise(spare, moment, moment, 0.01).worth / crowd.capacity


def _sample(crowd: Crowd, size: int, rng: np.random.Generator) -> Crowd:
    """Return about `size` rows that stand for all, drawn at even steps, half of them by load."""
    chance = 0.5 * size * (1 / len(crowd.load) + crowd.load / crowd.load.sum())
    running = np.cumsum(chance)
    rows, count = np.unique(np.searchsorted(running, np.arange(size) + rng.random(size)), return_counts=True)
    inside = rows < len(chance)
    rows, count = rows[inside], count[inside]
    return crowd.gather(rows, count / chance[rows])


def settle_few(crowd: Crowd, low: float, high: float) -> Settled:
    """Return the same by the general solver on all rows."""
    n, columns = len(crowd.load), crowd.columns + 1
    last = last_moment(crowd, low, high)
    price, worth, traded, share = np.zeros(columns), np.zeros(columns), np.zeros(columns), np.zeros((n, columns))
    share[:, crowd.column] = last.share
    value = np.multiply(last.price, crowd.capacity, out=np.zeros_like(last.price), where=last.price > 0)
    some = value > _ROUNDING
    price[crowd.column[some]], worth[crowd.column[some]] = last.price[some], value[some]
    traded[crowd.column] = last.traded
    nobody = np.full(n, OPEN, dtype=np.int8)
    return Settled(last.moment, price, worth, last.over, last.later, nobody, nobody.copy(), np.arange(n), share, traded)


def _spread(found: Settled, crowd: Crowd, left: Array, right: Array, rows: Ints) -> Settled:
    """Return what was found for the rows left open, with the edges of all others."""
    named = np.append(crowd.column, (OPEN, -1)).astype(np.int8)  # left ends −1 and −2 read the last two
    left, right = named[left], named[right]
    left[rows], right[rows] = found.left, found.right
    return replace(found, left=left, right=right, rows=rows[found.rows])


def _without_free(crowd: Crowd, guess: _Guess, times: float) -> Crowd:
    """Return the crowd in which columns that may be without price are one, the last, with each row's best rate on them.

    One alone may stay: rows choose between it and idle. Of two, rows that need neither much would never part.
    """
    little = (guess.worth <= np.minimum(times * guess.blur, _LITTLE))[crowd.column]
    free = little & ~crowd.paid & (crowd.least <= 0)
    if free.sum() < 2 and not free.all():
        return crowd
    best = crowd.rate[free].max(axis=0)
    sums = crowd.sums
    return replace(
        crowd,
        rate=np.concatenate((crowd.rate[~free], best[None])),
        capacity=np.append(crowd.capacity[~free], np.inf),
        column=np.append(crowd.column[~free], crowd.columns),
        least=np.append(crowd.least[~free], 0.0),
        most=np.append(crowd.most[~free], 1.0),
        paid=np.append(crowd.paid[~free], False),
        sums=replace(
            sums,
            base=np.append(sums.base[~free], 0.0),
            rising_load=np.column_stack((sums.rising_load[:, ~free], np.zeros(len(sums.full)))),
        ),
    )


def _narrow(crowd: Crowd, box: _Box) -> tuple[Array, Array, Crowd]:
    """Return the edges that rows keep to in the box, and the crowd of those that may leave theirs."""
    price, width = 0.5 * (box.most + box.least) / crowd.capacity, 0.5 * (box.most - box.least) / crowd.capacity
    clock, follow = crowd.clock()
    low, high = (clock.at(moment)[0][len(follow) :] for moment in (box.low, box.high))
    stops = (low < high) & ((high >= crowd.room) | _first(crowd))
    least, most = low * crowd.need, high * crowd.need
    least[stops] = most[stops] = -1.0
    left, right = np.empty(len(low), dtype=np.int8), np.empty(len(low), dtype=np.int8)
    keep(crowd.rate, least, most, tuple(price), tuple(width), left, right)
    old = crowd.sums
    sums = Sums(*(np.array(getattr(old, name)) for name in Sums.__slots__))
    into = (sums.base, sums.full, sums.full_weight, sums.rising_weight, sums.rising_room, sums.rising_load)
    add_up(crowd.rate, crowd.load, crowd.need, crowd.group, crowd.weight, low, high, left, right, *into)
    rows = np.flatnonzero(left == OPEN)
    part = crowd.part * len(rows) / len(left)
    return left, right, replace(crowd.gather(rows), sums=sums, part=part, least=box.least, most=box.most)


def _first(crowd: Crowd) -> Bools:
    """Return which rows are served one after the other."""
    first = np.array([False, *(inner == "first" for inner in crowd.tree.inner)])
    return first[crowd.group + 1]
