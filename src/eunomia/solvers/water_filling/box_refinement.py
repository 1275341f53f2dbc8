"""The last moment of a crowd too large for the general solver: boxes of prices and moments, each inside the last.

See large_instance.py for the idea. `settle` returns the exact answer for all rows, and the mix of each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.solvers.pricing.newton import widths
from eunomia.solvers.pricing.rows import draw_some
from eunomia.solvers.water_filling.boxes import ROUNDING, BoxPass, MomentEstimate
from eunomia.solvers.water_filling.cutting_planes import balance, errors, localise
from eunomia.solvers.water_filling.large_instance import LargeInstance, last_moment
from eunomia.solvers.water_filling.screen import LARGE, OPEN, screened

FEW = 160  # rows that go to the general solver as they are
_SAMPLE = 4_096  # rows of a first sample
_SPREAD = 2.0  # standard errors of a sample's answer that a box is wide to either side
_ROUGH = 5.0  # cutting planes continue to this error over the number of all rows
_TIMES = (1.0, 1.0, 2.0, 6.0, 18.0)  # widths of boxes; the second lies around where the first was left
_PARTED = 0.8  # of the rows, open in a box: too many for it to be of use
_DOUBT = 0.5  # parts of the error of a guess by which it is outside its bounds before they are in the way
_BESIDE = 0.1  # of the room between two bounds, by which a worth is next to one
_WHOLE = 20_000  # rows from which on Newton's method looks at all of them
_SMALLER, _SAFE = 0.02, 4.0  # error that it aims at, in half widths of the bounds; times it, how wide the next box is
_SEEN = 16  # rows of a group from which on a sample says how far it is


@dataclass(frozen=True, slots=True)
class ResolvedRows:
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
    levels: Floats | None = None  # (group + 1,) v of each group at the moment, if that is known and all serve by share
    astray: bool = False  # only so much is known: the bounds of worth that are in the way, and about where it would be


def settle(crowd: LargeInstance, low: float, high: float, rng: np.random.Generator) -> ResolvedRows:
    """Return the last moment in [low, high] that fits. Raises NoOptimum when boxes lead nowhere."""
    size = 4 * _SAMPLE if len(crowd.load) >= LARGE and crowd.part == 1 else _SAMPLE
    guess = _balanced(crowd, low, high) if len(crowd.load) >= _WHOLE and crowd.part < 1 else None
    while len(crowd.load) > FEW:
        guess = guess or _guess(crowd, size, low, high, rng)
        found = _astray(guess, crowd) or _settle_from(guess, crowd, low, high, rng)
        if found is not None:
            return found
        if size >= len(crowd.load):
            break
        size, guess = 8 * size, None
    return settle_few(crowd, low, high)


def _settle_from(
    guess: MomentEstimate, crowd: LargeInstance, low: float, high: float, rng: np.random.Generator
) -> ResolvedRows | None:
    """Return the same from a first guess, or None where its boxes lead nowhere."""
    shared = "first" not in crowd.tree.inner
    for times in _TIMES:
        look = screened(crowd, guess, times, low, high)
        if len(look.rows) > _PARTED * len(crowd.load):
            return None
        found = settle(look.crowd, look.box.low, look.box.high, rng)
        levels = look.crowd.clock()[0].levels(found.moment)
        if not look.missed(found, levels, low, high):
            return found if found.astray else _beside(found, look, levels if shared else None)
        worth = found.worth if found.worth.any() else guess.worth  # none is known where all fits to the box's end
        levels = np.where(np.isfinite(levels), levels, guess.levels)
        guess = replace(guess, moment=found.moment, worth=worth, levels=levels)
    return None


def _beside(found: ResolvedRows, look: BoxPass, levels: Floats | None) -> ResolvedRows:
    """Return what was found for the rows left open, with the edges of all others."""
    look.left[look.rows], look.right[look.rows] = found.left, found.right
    return replace(found, left=look.left, right=look.right, rows=look.rows[found.rows], levels=levels)


def _guess(crowd: LargeInstance, size: int, low: float, high: float, rng: np.random.Generator) -> MomentEstimate:
    """Return where cutting planes find the answer of about `size` rows, all if there are no more."""
    if len(crowd.load) <= size:
        goal = _ROUGH * crowd.part / len(crowd.load)
        place = localise(_wider(crowd), low, high, goal)
        return MomentEstimate(
            place.moment, *_named(crowd, place.worth, 3 * place.radius), goal, _levels(crowd, place.moment)
        )
    some, noise = _wider(_sample(crowd, size, rng)), crowd.part / np.sqrt(size)
    inner, soon, late = _between(some, size, low, high, rng)
    place = localise(inner, soon, late, 0.2 * noise)
    if inner is not some and (_at_side(inner, place.worth) or not soon < place.moment < late):
        place = localise(some, low, high, 0.2 * noise)
    part = some if size <= _SAMPLE else some.gather(np.arange(0, len(some.load), 4), 4.0)
    error, spread = errors(part, place.worth, place.moment, noise, float(some.load.mean()))
    blur = 3 * place.radius + _SPREAD * error
    off = 0.2 * noise + _SPREAD * spread
    return MomentEstimate(place.moment, *_named(crowd, place.worth, blur), off, _levels(some, place.moment))


def _balanced(crowd: LargeInstance, low: float, high: float) -> MomentEstimate | None:
    """Return where Newton's method finds the answer of all rows, for a box a good deal smaller than their bounds."""
    width = 0.5 * (crowd.most - crowd.least) / widths(0.5 * (crowd.most + crowd.least))
    goal = _SMALLER * float(width[np.isfinite(crowd.capacity)].min())
    place = balance(_wider(crowd), low, high, goal)
    if place is None:
        return None
    blur = _SAFE * np.maximum(place.radius, goal * widths(place.worth))
    return MomentEstimate(place.moment, *_named(crowd, place.worth, blur), _SAFE * goal, _levels(crowd, place.moment))


def _between(
    some: LargeInstance, size: int, low: float, high: float, rng: np.random.Generator
) -> tuple[LargeInstance, float, float]:
    """Return the rows of a large sample with bounds of worth, and of the moment, that are sure by a small one."""
    if size <= _SAMPLE:
        return some, low, high
    rough = _guess(some, _SAMPLE // 2, low, high, rng)
    worth, width = rough.worth[some.column], 2 * rough.blur[some.column]
    least, most = np.maximum(some.least, worth - width), np.minimum(some.most, worth + width)
    if not worth.any() or not (least < most).all():
        return some, low, high
    reach = 2 * min(rough.spread, 0.25) * rough.moment
    return replace(some, least=least, most=most), max(low, rough.moment - reach), min(high, rough.moment + reach)


def _at_side(crowd: LargeInstance, worth: Floats) -> bool:
    """Return whether any worth (column,) is next to a bound of it."""
    margin = _BESIDE * (crowd.most - crowd.least)
    under, over = (worth < crowd.least + margin) & (crowd.least > 0), (worth > crowd.most - margin) & (crowd.most < 1)
    return bool((under | over).any())


def _levels(crowd: LargeInstance, moment: float) -> Floats:
    """Return v of each group, (group + 1,), the last stop of any row where all have stopped, NaN of few rows."""
    levels = crowd.clock()[0].levels(moment)
    stop = np.zeros(len(levels))
    np.maximum.at(stop, crowd.group + 1, crowd.room / crowd.weight)
    known = np.bincount(crowd.group + 1, minlength=len(levels)) >= _SEEN
    return np.where(known, np.minimum(levels, stop), np.nan)


def _wider(crowd: LargeInstance) -> LargeInstance:
    """Return the crowd with bounds of worth twice as wide: an answer beyond its own shows that they are in the way."""
    width = 0.5 * (crowd.most - crowd.least)
    return replace(crowd, least=np.maximum(crowd.least - width, 0.0), most=np.minimum(crowd.most + width, 1.0))


def _astray(guess: MomentEstimate, crowd: LargeInstance) -> ResolvedRows | None:
    """Return where to look instead, if the answer seems to be outside the bounds of worth."""
    worth, doubt = guess.worth[crowd.column], _DOUBT * guess.blur[crowd.column]
    beyond = np.where(worth > crowd.most + doubt, 1.0, np.where(worth < crowd.least - doubt, -1.0, 0.0))
    if not worth.any() or not beyond.any():
        return None
    traded = np.zeros(crowd.columns + 1)
    traded[crowd.column] = beyond
    no_edge, none = np.empty(0, dtype=np.int8), np.empty(0, dtype=np.int64)
    share = np.empty((0, len(traded)))
    price = np.zeros(len(traded))
    return ResolvedRows(
        guess.moment, price, guess.worth, 0.0, False, no_edge, no_edge, none, share, traded, guess.levels, astray=True
    )


def _named(crowd: LargeInstance, worth: Floats, blur: Floats) -> tuple[Floats, Floats]:
    """Return both by the columns as given, (column + 1,)."""
    named = np.zeros((2, crowd.columns + 1))
    named[:, crowd.column] = worth, blur
    return named[0], named[1]


def rough_price(crowd: LargeInstance, moment: float, rng: np.random.Generator) -> Floats:
    """Return prices (column,) at which a sample of the crowd loads no column more than others by much."""
    part = _sample(crowd, _SAMPLE, rng) if len(crowd.load) > _SAMPLE else crowd
    spare = replace(part, capacity=part.capacity * (1 - 1 / np.sqrt(len(part.load) + 1)))
    return localise(spare, moment, moment, 0.01).worth / crowd.capacity


def _sample(crowd: LargeInstance, size: int, rng: np.random.Generator) -> LargeInstance:
    """Return about `size` rows that stand for all, drawn at even steps, half of them by load."""
    even, by_load = 0.5 * size / len(crowd.load), 0.5 * size / float(crowd.load.sum())
    return crowd.gather(*draw_some(crowd.load, even, by_load, rng.random(size + 2)))


def settle_few(crowd: LargeInstance, low: float, high: float) -> ResolvedRows:
    """Return the same by the general solver on all rows."""
    n, columns = len(crowd.load), crowd.columns + 1
    last = last_moment(crowd, low, high)
    price, worth, traded, share = np.zeros(columns), np.zeros(columns), np.zeros(columns), np.zeros((n, columns))
    share[:, crowd.column] = last.share
    value = np.multiply(last.price, crowd.capacity, out=np.zeros_like(last.price), where=last.price > 0)
    some = value > ROUNDING
    price[crowd.column[some]], worth[crowd.column[some]] = last.price[some], value[some]
    traded[crowd.column] = last.traded
    no_edge = np.full(n, OPEN, dtype=np.int8)
    return ResolvedRows(
        last.moment, price, worth, last.over, last.later, no_edge, no_edge.copy(), np.arange(n), share, traded
    )
