"""The runs of a sweep, each checked as far as that goes without running it."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.spelling_suggestions import nearest
from eunomia.runs.scenario_variants import spelling
from eunomia.scenario import Scenario
from eunomia.scenario.load import scenario_from_parts
from eunomia.scenario.overrides import put
from eunomia.scenario.source_locations import KeyPath, Place, SourceLocations, dotted, shown
from eunomia.sweeps.fingerprint import scenario_hash
from eunomia.sweeps.preflight import Checker
from eunomia.sweeps.sweep_file import Block, Choice, SweepAxis, SweepFile

MOST_RUNS = 100_000
FIRST = ("policy", "load", "seed")  # columns that every table of results begins with

Label = str | float | int | bool | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedRun:
    """One run: what it is called in every axis of the sweep, and what is run."""

    labels: Mapping[str, Label]
    scenario: Scenario
    scenario_hash: str
    jobs: int  # that its workload has
    place: Place  # where the sweep file asks for it

    @property
    def name(self) -> str:
        """What to call it in a message: `policy fifo, load 1.5, seed 0`."""
        return ", ".join(f"{key} {text(value)}" for key, value in self.labels.items() if value is not None)


def plan(sweep: SweepFile) -> tuple[PlannedRun, ...]:
    """Return the runs in the order of the file.

    Raises InvalidInput with everything that is wrong with the file or with any of the runs, as far as they can be made.
    """
    return _Planner(sweep).rows()


class _Planner:
    """Puts scenarios together, checks them, and collects what is wrong, each thing once."""

    def __init__(self, sweep: SweepFile):
        self._sweep = sweep
        self._problems: dict[Problem, None] = dict.fromkeys(sweep.wrong)
        self._more: dict[Problem, int] = {}  # how many come after it that are not shown
        self._checker = Checker()
        self._keys = tuple(dict.fromkeys((*FIRST, *(axis.key for block in sweep.blocks for axis in block.axes))))

    def rows(self) -> tuple[PlannedRun, ...]:
        self._refuse_too_many()
        blocks = self._sweep.blocks if self._sweep.base is not None else ()
        rows = [row for block in blocks for row in self._block(block)]
        self._refuse_twice(rows)
        self._refuse_unknown_axes()
        if self._problems:
            raise InvalidInput(sorted(self._problems, key=self._order), len(self._problems) + sum(self._more.values()))
        return tuple(rows)

    def _order(self, problem: Problem) -> tuple[bool, str, int]:
        return problem.file != self._sweep.places.file, problem.file, problem.row or 0

    def _refuse_too_many(self) -> None:
        runs = sum(math.prod(len(axis.choices) for axis in _filled(block)) for block in self._sweep.blocks)
        if runs > MOST_RUNS:
            self._complain(("axes",), runs, f"a sweep has at most {MOST_RUNS:,} runs", "give fewer values")
            raise InvalidInput(list(self._problems))

    def _block(self, block: Block) -> Iterator[PlannedRun]:
        axes = _filled(block)
        for chosen in product(*(axis.choices for axis in axes)):
            row = self._row(block, tuple(zip(axes, chosen, strict=True)))
            if row is not None:
                yield row

    def _row(self, block: Block, chosen: tuple[tuple[SweepAxis, Choice], ...]) -> PlannedRun | None:
        """Return one run, or note what is wrong with it."""
        mix = _Mix(self._sweep)
        try:
            for axis, choice in (*((axis, axis.choices[0]) for axis in self._sweep.set_), *chosen):
                mix.lay(axis, choice)
            raw = {key: self._raw(mix, key) for key in self._keys}
            scenario = scenario_from_parts(mix.data, mix.places, self._sweep.folder, self._sweep.name)
            jobs = self._checker.check(scenario, [(axis.path, mix.place(axis.path)) for axis, _ in chosen])
        except InvalidInput as error:
            wrong = tuple(map(mix.translated, error.problems))
            self._problems |= dict.fromkeys(wrong)
            self._more[wrong[-1]] = error.count - len(wrong)
            return None
        own: dict[str, Label] = {axis.key: _label(choice.value) for axis, choice in chosen}
        told: dict[str, Label] = {
            "policy": spelling(scenario), "load": scenario.workload.load, "seed": scenario.seed
        }  # fmt: skip
        labels = {key: own.get(key, told.get(key, raw[key])) for key in self._keys} | {"load": told["load"]}
        place = (
            mix.place(chosen[-1][0].path) if block.at == ("axes",) and chosen else self._sweep.places.where(block.at)
        )
        return PlannedRun(
            labels=labels, scenario=scenario, scenario_hash=scenario_hash(scenario), jobs=jobs, place=place
        )  # fmt: skip

    def _raw(self, mix: _Mix, key: str) -> Label:
        """Return what the base says of a key that a run does not set."""
        value: Any = mix.data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return None if value is None or key == "cluster" else _label(value)

    def _refuse_twice(self, rows: list[PlannedRun]) -> None:
        first: dict[str, PlannedRun] = {}
        for row in rows:
            other = first.setdefault(row.scenario_hash, row)
            if other is not row:
                file, line = row.place
                rule = f"is the same run as one of line {other.place[1]} ({other.name})"
                self._problems.setdefault(
                    Problem(file=file, row=line, value=row.name, rule=rule, fix="ask for it once")
                )

    def _refuse_unknown_axes(self) -> None:
        for key, name in (("compare", self._sweep.compare), ("along", self._sweep.along)):
            if name is not None and name not in self._keys:
                self._complain((key,), name, "this sweep has no such axis", nearest(name, self._keys))

    def _complain(self, at: KeyPath, value: Any, rule: str, fix: str) -> None:
        file, row = self._sweep.places.where(at)
        problem = Problem(file=file, row=row, column=dotted(at), value=shown(value), rule=rule, fix=fix)
        self._problems.setdefault(problem)


def _filled(block: Block) -> tuple[SweepAxis, ...]:
    """Return the axes that have values; of the others it was told that they have none."""
    return tuple(axis for axis in block.axes if axis.choices)


class _Mix:
    """The keys of one scenario while values are laid over the base, and where each was written."""

    def __init__(self, sweep: SweepFile):
        self._sweep = sweep
        self.data: dict[str, Any] = copy.deepcopy(sweep.base or {})
        self.places: SourceLocations = sweep.base_places
        self._named: list[tuple[tuple[str, ...], str]] = []  # path in the scenario, name in the sweep file

    def place(self, path: KeyPath) -> Place:
        return self.places.where(path)

    def lay(self, axis: SweepAxis, choice: Choice) -> None:
        """Set one value. A policy or a cluster takes the place of the whole table."""
        place = self._sweep.places.where(choice.at)
        if axis.key == "cluster" and isinstance(choice.value, str):
            self._lay_cluster(choice.value, choice.at)
            return
        value = copy.deepcopy(choice.value)
        if axis.key == "policy" and not isinstance(value, dict):
            value = {"name": value}
        try:
            self._moved(put(self.data, list(axis.path), value), place, axis.key)
        except ValueError as error:
            rule, fix = error.args
            raise InvalidInput(
                [Problem(file=place[0], row=place[1], column=axis.key, value=shown(value), rule=rule, fix=fix)]
            ) from error

    def _lay_cluster(self, name: str, at: KeyPath) -> None:
        clusters = self._sweep.clusters
        if name not in clusters:
            file, row = self._sweep.places.where(at)
            fix = nearest(name, clusters) if clusters else f"write [clusters.{name}] and its keys below it"
            rule = "there is no cluster of this name in [clusters]"
            raise InvalidInput([Problem(file=file, row=row, column="cluster", value=name, rule=rule, fix=fix)])
        self.data["cluster"] = copy.deepcopy(clusters[name])
        origin: KeyPath = ("clusters", name)
        self._moved(("cluster",), self._sweep.places.where(origin), dotted(origin))
        lines = {("cluster", *key[2:]): place for key, place in self._sweep.places.by_path.items() if key[:2] == origin}
        self.places = SourceLocations(self.places.file, {**self.places.by_path, **lines})

    def _moved(self, path: KeyPath, place: Place, name: str) -> None:
        self.places = self.places.moved(path, place)
        self._named.append((tuple(str(part) for part in path), name))

    def translated(self, problem: Problem) -> Problem:
        """Return the problem with its key as the sweep file has it, where it was written there."""
        if problem.file != self._sweep.places.file or problem.column is None:
            return problem
        for path, name in self._named:
            own = ".".join(path)
            if problem.column == own or problem.column.startswith(f"{own}."):
                rest = problem.column[len(own) :]
                return replace(problem, column=name + ("" if rest == ".name" else rest))
        return problem


def _label(value: Any) -> Label:
    """Return a value as the table of results has it: a table or an array as JSON."""
    if isinstance(value, (str, bool, int, float)):
        return value
    return json.dumps(value, sort_keys=True, default=str)


def text(value: Label) -> str:
    """Return a value of an axis for the eye."""
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
