"""Settings: runs that differ only by their seed. They are averaged, and their spread is the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from eunomia.metrics.statistics import one_run
from eunomia.model.arrays import Array, Floats
from eunomia.verdict.run_figures import ReportContent, RunFigures

MOSTLY = 0.99  # a setting that finished less than this part of what the best one did is not compared
Kind = Literal["jobs", "apps"]
ENDED_WELL = {"jobs": ("jobs_finished", "jobs_cancelled_by_tuner"), "apps": ("apps_finished",)}


@dataclass(frozen=True, eq=False)
class SeedGroup:
    """One policy at one load, run with one or several seeds."""

    label: str
    load: float
    runs: tuple[RunFigures, ...]  # one per seed

    def values(self, name: str) -> Floats:
        """Return the known values of a field of summary.json, one per replication that has it."""
        return np.array(list(_by_seed(self.replications, name).values()), dtype=np.float64)

    def by_seed(self, name: str) -> dict[int, float]:
        """Return the known values of a field of summary.json by seed, of every run."""
        return _by_seed(self.runs, name)

    def mean(self, name: str) -> float | None:
        """Return the average of a field of summary.json over the replications; None when no run has it."""
        values = self.values(name)
        return float(values.mean()) if values.size else None

    @cached_property
    def is_one_run(self) -> bool:
        """Whether all seeds gave the same run, as nothing is drawn at random."""
        names = dict.fromkeys((*(name for run in self.runs for name in run.summary), "offered_load"))
        known = {name: by_seed for name in names if (by_seed := self.by_seed(name))}
        return len(self.runs) == 1 or one_run(known, len(self.runs))

    @cached_property
    def replications(self) -> tuple[RunFigures, ...]:
        """The runs that count: runs that are one run count once."""
        return self.runs[:1] if self.is_one_run else self.runs

    @property
    def knows_durations(self) -> bool:
        """Whether the policy uses durations that a real cluster does not know."""
        return any(run.knows_durations for run in self.runs)

    @property
    def is_history(self) -> bool:
        """Whether this is the schedule as it was, which no policy decided."""
        return any(run.is_history for run in self.runs)

    @property
    def offered_load(self) -> float | None:
        """Return the average of the offered loads; None when it is unknown."""
        return self.mean("offered_load")

    def pooled(self, column: str) -> Array:
        """Return a job column of all replications, concatenated."""
        return np.concatenate([np.asarray(getattr(run, column)) for run in self.replications])


def _by_seed(runs: Sequence[RunFigures], name: str) -> dict[int, float]:
    every = ((run.seed, run.offered_load if name == "offered_load" else run.summary.get(name)) for run in runs)
    return {seed: float(v) for seed, v in every if v is not None and math.isfinite(v)}


def seed_groups(content: ReportContent) -> tuple[SeedGroup, ...]:
    """Return the settings in order of load, then of their first run."""
    runs_by_key: dict[tuple[float, str], list[RunFigures]] = {}
    for run in content.runs:
        runs_by_key.setdefault((run.load, run.label), []).append(run)
    first = sorted(runs_by_key, key=lambda key: key[0])  # stable: labels keep their order
    return tuple(SeedGroup(label, load, tuple(runs_by_key[load, label])) for load, label in first)


def alike_seeds(groups: Sequence[SeedGroup]) -> str:
    """Return a sentence about settings whose seeds all gave one run, which is no evidence; "" where there is none."""
    same = [group for group in groups if len(group.runs) > 1 and group.is_one_run]
    if not same:
        return ""
    several = [group for group in groups if len(group.runs) > 1]
    return sentence_on_alike_seeds(
        [(group.label, len(group.runs)) for group in same], everywhere=len(same) == len(several) == len(groups)
    )


def sentence_on_alike_seeds(same: Sequence[tuple[str, int]], *, everywhere: bool) -> str:
    """Return a sentence about settings, each with its number of seeds, whose seeds all gave identical runs."""
    where = "" if everywhere else f" under {', '.join(dict.fromkeys(name for name, _ in same))}"
    seeds = " or ".join(str(count) for count in sorted({count for _, count in same}))
    return f"Nothing is random{where}: the {seeds} seeds gave identical runs, and count as one."


def loads(content: ReportContent) -> tuple[float, ...]:
    """Return the loads that were run, lowest first."""
    return tuple(sorted({run.load for run in content.runs}))


def labels(content: ReportContent) -> tuple[str, ...]:
    """Return the labels in order of their first run; the index of a label is its colour in every chart."""
    return tuple(dict.fromkeys(run.label for run in content.runs))


def best_first(content: ReportContent) -> tuple[str, ...]:
    """Return the labels by their average completion time at the highest load, runs that left out jobs last."""
    group = [setting for setting in seed_groups(content) if setting.load == loads(content)[-1]]
    able = comparable(group)
    ranked = sorted(group, key=lambda s: (s not in able, math.inf if (mean := s.mean("jct_mean_s")) is None else mean))
    return tuple(dict.fromkeys((*(setting.label for setting in ranked), *labels(content))))


def part_done(number: Callable[[str], float | int | None], kind: Kind = "jobs") -> float:
    """Return the part of its jobs or apps that a run finished; `number` returns a field of summary.json or None.

    A trial that its own search cancelled counts as finished.
    """
    done = sum(number(name) or 0.0 for name in ENDED_WELL[kind])
    return done / (number(f"{kind}_submitted") or 1.0)


def finished_enough(parts: Sequence[float]) -> list[bool]:
    """Return which runs of one workload may be compared: the part that they finished is within 1 % of the greatest.

    Averages cover finished jobs only, so a run that does not finish its long jobs would look better than it is.
    """
    return [part >= MOSTLY * max(parts) for part in parts]


def comparable(group: Sequence[SeedGroup], kind: Kind = "jobs") -> tuple[SeedGroup, ...]:
    """Return the settings of one load that finished within 1 % of the greatest part of their jobs, or apps."""
    enough = finished_enough([part_done(setting.mean, kind) for setting in group])
    return tuple(setting for setting, able in zip(group, enough, strict=True) if able)
