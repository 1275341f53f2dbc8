"""What is claimed of numbers, and the rule by which kept rows decide it. docs/reproduce.md has the rule in words.

A statement that rests on random draws of our own is decided by the 95 % interval of its number; without an interval it
is not decided. `same_draws` says that the runs are those that were published, draw by draw, so that one run is enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from eunomia_reproduction.claims.kept_rows import KeptRows
from eunomia_reproduction.claims.quantities import Measured, Quantity

TOLERANCE = 0.05  # relative
NEARLY_ALL, MOST = 0.95, 0.5  # parts of the rows
CHANCE = 0.05  # of the sign test


class Verdict(StrEnum):
    """What the rows say of a claim, from best to worst."""

    REPRODUCED = "reproduced"
    DIRECTION = "direction"
    NOT_DECIDED = "not decided"
    NOT = "not"
    NO_ROWS = "no rows kept"


ORDER = tuple(Verdict)


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict and what it was decided by, as text."""

    published: str
    ours: str
    interval: str
    verdict: Verdict


class Statement(Protocol):
    """A claim about numbers."""

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows decide it."""

    @property
    def published(self) -> str:
        """What was published, as text."""

    def judge(self, kept: KeptRows) -> Finding:
        """Decide it. Raises InvalidInput when a row is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equals:
    """The number is the published one, to a tolerance.

    `no_difference`: the value that would say that nothing is gained, 1 for most ratios. A number on the published side
    of it is the direction. Without it there is no direction.
    """

    of: Quantity
    to: float
    tolerance: float = TOLERANCE
    no_difference: float | None = None
    same_draws: bool = False

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows decide it."""
        return self.of.experiments

    @property
    def published(self) -> str:
        """What was published, as text."""
        return number(self.to)

    def judge(self, kept: KeptRows) -> Finding:
        """Decide it. Raises InvalidInput when a row is missing."""
        found = self.of.measured(kept)
        near, far = sorted((self.to * (1 - self.tolerance), self.to * (1 + self.tolerance)))
        ends = _ends(found, self.same_draws)
        if ends is None:
            verdict = Verdict.NOT_DECIDED
        elif near <= ends[0] and ends[1] <= far:
            verdict = Verdict.REPRODUCED
        elif ends[0] <= far and near <= ends[1]:
            verdict = Verdict.NOT_DECIDED
        elif self.no_difference is not None and _beyond(ends, self.no_difference, self.to):
            verdict = Verdict.DIRECTION
        else:
            verdict = Verdict.NOT
        return Finding(self.published, number(found.value), _interval(found, self.same_draws), verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The number is at most, or at least, a limit."""

    of: Quantity
    most: float | None = None
    least: float | None = None
    same_draws: bool = False

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows decide it."""
        return self.of.experiments

    @property
    def published(self) -> str:
        """What was published, as text."""
        said = (("at least", self.least), ("at most", self.most))
        return ", ".join(f"{words} {number(limit)}" for words, limit in said if limit is not None)

    def judge(self, kept: KeptRows) -> Finding:
        """Decide it. Raises InvalidInput when a row is missing."""
        found = self.of.measured(kept)
        least, most = (-math.inf if self.least is None else self.least), (math.inf if self.most is None else self.most)
        ends = _ends(found, self.same_draws)
        if ends is None:
            verdict = Verdict.NOT_DECIDED
        elif least <= ends[0] and ends[1] <= most:
            verdict = Verdict.REPRODUCED
        else:
            verdict = Verdict.NOT if ends[1] < least or most < ends[0] else Verdict.NOT_DECIDED
        return Finding(self.published, number(found.value), _interval(found, self.same_draws), verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AheadUnderSeeds:
    """One is ahead of another: a kept row counts under how many of `seeds` it is. Decided by a two-sided sign test."""

    of: Quantity
    seeds: int
    published: str = "ahead"

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows decide it."""
        return self.of.experiments

    def judge(self, kept: KeptRows) -> Finding:
        """Decide it. Raises InvalidInput when a row is missing."""
        ahead = round(self.of.measured(kept).value)
        chance = sign_test(ahead, self.seeds)
        decided = Verdict.REPRODUCED if 2 * ahead > self.seeds else Verdict.NOT
        verdict = decided if chance < CHANCE else Verdict.NOT_DECIDED
        return Finding(self.published, f"{ahead} of {self.seeds} seeds", f"p = {chance:.2g}", verdict)


@dataclass(frozen=True, slots=True)
class RowsWithin:
    """Kept rows are within their tolerances: all rows of these series and this quantity that were checked.

    Empty `series` or `quantity` takes all; `x` takes only these places. `part` of the rows is asked for.
    """

    experiment: str
    series: tuple[str, ...] = ()
    quantity: str = ""
    x: tuple[str, ...] = ()
    part: float = NEARLY_ALL
    what: str = "points"

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows decide it."""
        return (self.experiment,)

    @property
    def published(self) -> str:
        """What was published, as text."""
        return self.what

    def judge(self, kept: KeptRows) -> Finding:
        """Decide it; without a row it is not so."""
        found = [
            within
            for (series, x, quantity), within in kept.verdicts(self.experiment)
            if (not self.series or series in self.series)
            and (not self.quantity or quantity == self.quantity)
            and (not self.x or x in self.x)
        ]
        share = sum(found) / len(found) if found else 0.0
        verdict = Verdict.REPRODUCED if share >= self.part else Verdict.DIRECTION if share >= MOST else Verdict.NOT
        return Finding(f"{len(found):,} {self.what}", f"{sum(found):,} within", "–", verdict)


@dataclass(frozen=True, slots=True)
class All:
    """Several statements at once: the worst verdict of them counts."""

    parts: tuple[Statement, ...]

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments whose rows decide it."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.experiments))

    @property
    def published(self) -> str:
        """What was published, as text."""
        return "; ".join(dict.fromkeys(part.published for part in self.parts))

    def judge(self, kept: KeptRows) -> Finding:
        """Decide it. Raises InvalidInput when a row is missing."""
        found = [part.judge(kept) for part in self.parts]
        alike = len({one.interval for one in found}) == 1
        intervals = found[0].interval if alike else "; ".join(one.interval for one in found)
        return Finding(
            "; ".join(dict.fromkeys(one.published for one in found)), "; ".join(one.ours for one in found), intervals,
            worst(one.verdict for one in found),
        )  # fmt: skip


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts."""
    return max(verdicts, key=ORDER.index)


def sign_test(ahead: int, seeds: int) -> float:
    """Return the probability of a count this far from half, or further, if both were equally often ahead."""
    fewer = min(ahead, seeds - ahead)
    return min(1.0, math.ldexp(sum(math.comb(seeds, k) for k in range(fewer + 1)), 1 - seeds))


def number(value: float) -> str:
    """Return a number to three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _ends(found: Measured, same_draws: bool) -> tuple[float, float] | None:
    """Return between which values the number is; None without an interval where draws are our own."""
    if found.low is not None and found.high is not None:
        return found.low, found.high
    return (found.value, found.value) if same_draws else None


def _beyond(ends: tuple[float, float], no_difference: float, published: float) -> bool:
    """Say whether the whole interval is on the published side of no difference."""
    return ends[0] > no_difference if published > no_difference else ends[1] < no_difference


def _interval(found: Measured, same_draws: bool) -> str:
    if found.low is None or found.high is None:
        return "–" if same_draws else "none kept"
    return f"{number(found.low)} to {number(found.high)}"
