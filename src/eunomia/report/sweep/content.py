"""What a report on a sweep is made from: averages over seeds, and how each setting differs from the one beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# better, worse: the interval leaves out 0. noise: it does not. alike: surely less than 1 %. unknown: one run. unfit:
# not compared, because one of them left behind jobs that the other finished.
Verdict = Literal["better", "worse", "noise", "alike", "unknown", "unfit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An average over seeds, and its confidence interval; no ends when there was one seed."""

    mean: float
    low: float | None
    high: float | None
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDifference:
    """This setting less the baseline, paired by seed."""

    change: Interval
    relative: Interval | None  # this ÷ baseline - 1, of a typical seed; None where one of them is not above 0
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSetting:
    """One of what is compared, at one place along the axis. Both maps are by the names of summary.json."""

    name: str
    place: float
    averages: Mapping[str, Interval]
    versus: Mapping[str, BaselineDifference]  # nothing for the baseline itself
    alike: int = 1  # so many seeds gave the very same run, for nothing of it is drawn: they count as one


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Settings that are compared with each other."""

    name: str  # what sets it apart from other groups; "" when there is one
    settings: tuple[SweepSetting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepContent:
    """A report on a sweep to write. All text is for display only: it is escaped, whatever it holds."""

    title: str
    subtitle: str
    compared: tuple[str, ...]  # names, in order; the place is the colour in every chart
    baseline: str
    along: str  # what the places are: load
    places: tuple[float, ...]
    groups: tuple[Group, ...]
    confidence: float
    failures: tuple[tuple[str, str], ...]  # run, error
    notes: tuple[str, ...]
    sweep_toml: str
