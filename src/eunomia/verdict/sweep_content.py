"""The input of a report on a sweep: averages over seeds, and how each setting differs from the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

# better, worse: the interval excludes 0. noise: it includes 0. alike: less than 1 %, and the interval excludes 0 or
# lies within 1 %. unknown: one run. unfit: not compared, as one did not finish jobs that the other finished.
Verdict = Literal["better", "worse", "noise", "alike", "unknown", "unfit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An average over seeds, and its confidence interval; no ends with one seed."""

    mean: float
    low: float | None
    high: float | None
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDifference:
    """This setting less the baseline, paired by seed."""

    change: Interval
    relative: Interval | None  # this ÷ baseline - 1, geometric mean; None unless both are above 0
    verdict: Verdict
    basis: str = ""  # what the interval of one run each is from: `12 resampled weeks`


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSetting:
    """One compared name at one place along the axis. Both maps are by the fields of summary.json."""

    name: str
    place: float
    averages: Mapping[str, Interval]
    versus: Mapping[str, BaselineDifference]  # empty for the baseline itself
    alike: int = 1  # seeds that gave identical runs, as nothing is drawn at random: they count as one
    knows_durations: bool = False  # the policy uses durations of jobs that a real cluster does not know
    is_history: bool = False  # the schedule as it was, which no policy decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Settings that are compared with each other."""

    name: str  # the values of the other axes; "" when there is one group
    settings: tuple[SweepSetting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepContent:
    """A report on a sweep to write. All text is escaped."""

    title: str
    subtitle: str
    compared: tuple[str, ...]  # names, in order
    baseline: str
    along: str  # name of the axis of `places`, such as load
    places: tuple[float, ...]
    groups: tuple[Group, ...]
    confidence: float
    failures: tuple[tuple[str, str], ...]  # run, error
    notes: tuple[str, ...]
    sweep_toml: str

    def best_first(self) -> list[str]:
        """Return the compared names by their average completion time, over all places."""
        averages_by_name: dict[str, list[float]] = {name: [] for name in self.compared}
        for setting in (setting for group in self.groups for setting in group.settings):
            if "jct_mean_s" in setting.averages:
                averages_by_name[setting.name].append(setting.averages["jct_mean_s"].mean)

        def average(name: str) -> float:
            found = averages_by_name[name]
            return sum(found) / len(found) if found else math.inf

        return sorted(self.compared, key=average)

    def renamed(self, names: Mapping[str, str]) -> SweepContent:
        """Return the content with other names of what is compared."""

        def name(old: str) -> str:
            return names.get(old, old)

        groups = tuple(
            replace(group, settings=tuple(replace(one, name=name(one.name)) for one in group.settings))
            for group in self.groups
        )
        return replace(self, compared=tuple(map(name, self.compared)), baseline=name(self.baseline), groups=groups)
