"""Plans the runs of a sweep and checks each of them without running it."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.spelling_suggestions import nearest
from eunomia.runs.fingerprint import scenario_hash
from eunomia.runs.scenario_variants import measured_alike, spelling, uses_known_durations
from eunomia.scenario import Scenario
from eunomia.scenario.load import scenario_from_parts
from eunomia.scenario.policy_spec import put
from eunomia.scenario.source_locations import KeyPath, Place, SourceLocations, dotted, refused_at, shown
from eunomia.sweeps.preflight import Checker
from eunomia.sweeps.sweep_file import Block, Choice, SweepAxis, SweepFile

MOST_RUNS = 100_000
FIRST = ("policy", "load", "seed")  # first columns of every table of results

Label = str | float | int | bool | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedRun:
    """One run: its value on every axis of the sweep, and its scenario."""

    labels: Mapping[str, Label]
    scenario: Scenario
    scenario_hash: str
    jobs: int  # in its workload
    place: Place  # in the sweep file
    knows_durations: bool  # its policy goes by durations that a real cluster does not know

    @property
    def name(self) -> str:
        """Name in messages: `policy fifo, load 1.5, seed 0`."""
        return ", ".join(f"{key} {text(value)}" for key, value in self.labels.items() if value is not None)


def plan(sweep: SweepFile) -> tuple[PlannedRun, ...]:
    """Return the runs in the order of the file.

    Raises InvalidInput with everything that is wrong with the file or with any of the runs.
    """
    return _Planner(sweep).rows()


class _Planner:
    """Builds and checks scenarios, and collects problems, each once."""

    def __init__(self, sweep: SweepFile):
        self._sweep = sweep
        self._problems: dict[Problem, None] = dict.fromkeys(sweep.wrong)
        self._hidden: dict[Problem, int] = {}  # last shown problem → number of problems not shown after it
        self._checker = Checker()
        self._keys = tuple(dict.fromkeys((*FIRST, *(axis.key for block in sweep.blocks for axis in block.axes))))

    def rows(self) -> tuple[PlannedRun, ...]:
        self._check_count()
        blocks = self._sweep.blocks if self._sweep.base is not None else ()
        rows = [row for block in blocks for row in self._block(block)]
        if not self._problems:
            rows = _measured_alike(rows)
        self._check_duplicates(rows)
        self._check_axis_names()
        if self._problems:
            raise InvalidInput(
                sorted(self._problems, key=self._order), len(self._problems) + sum(self._hidden.values())
            )
        return tuple(rows)

    def _order(self, problem: Problem) -> tuple[bool, str, int]:
        return problem.file != self._sweep.places.file, problem.file, problem.row or 0

    def _check_count(self) -> None:
        runs = sum(math.prod(len(axis.choices) for axis in _axes_with_values(block)) for block in self._sweep.blocks)
        if runs > MOST_RUNS:
            self._add_problem(("axes",), runs, f"a sweep has at most {MOST_RUNS:,} runs", "give fewer values")
            raise InvalidInput(list(self._problems))

    def _block(self, block: Block) -> Iterator[PlannedRun]:
        axes = _axes_with_values(block)
        for chosen in product(*(axis.choices for axis in axes)):
            row = self._row(block, tuple(zip(axes, chosen, strict=True)))
            if row is not None:
                yield row

    def _row(self, block: Block, chosen: tuple[tuple[SweepAxis, Choice], ...]) -> PlannedRun | None:
        """Return one run; None if it is invalid, after collecting its problems."""
        overlay = _Overlay(self._sweep)
        try:
            for axis, choice in (*((axis, axis.choices[0]) for axis in self._sweep.set_), *chosen):
                overlay.apply(axis, choice)
            raw = {key: self._raw(overlay, key) for key in self._keys}
            scenario = scenario_from_parts(overlay.data, overlay.places, self._sweep.folder, self._sweep.name)
            jobs = self._checker.check(scenario, [(axis.path, overlay.places.where(axis.path)) for axis, _ in chosen])
        except InvalidInput as error:
            problems = tuple(map(overlay.translate, error.problems))
            self._problems |= dict.fromkeys(problems)
            self._hidden[problems[-1]] = error.count - len(problems)
            return None
        load = scenario.workload.load
        own: dict[str, Label] = {axis.key: _label(choice.value) for axis, choice in chosen}
        default: dict[str, Label] = {"policy": spelling(scenario), "load": load, "seed": scenario.seed}
        labels = {key: own.get(key, default.get(key, raw[key])) for key in self._keys} | {"load": load}
        is_axis = block.at == ("axes",) and chosen
        place = overlay.places.where(chosen[-1][0].path) if is_axis else self._sweep.places.where(block.at)
        run_hash = scenario_hash(scenario)
        return PlannedRun(
            labels=labels,
            scenario=scenario,
            scenario_hash=run_hash,
            jobs=jobs,
            place=place,
            knows_durations=uses_known_durations(scenario),
        )

    def _raw(self, overlay: _Overlay, key: str) -> Label:
        """Return the value of a key that a run does not set."""
        value: Any = overlay.data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return None if value is None or key == "cluster" else _label(value)

    def _check_duplicates(self, rows: list[PlannedRun]) -> None:
        first: dict[str, PlannedRun] = {}
        for row in rows:
            other = first.setdefault(row.scenario_hash, row)
            if other is not row:
                file, line = row.place
                rule = f"is the same run as one of line {other.place[1]} ({other.name})"
                problem = Problem(file=file, row=line, value=row.name, rule=rule, fix="ask for it once")
                self._problems.setdefault(problem)

    def _check_axis_names(self) -> None:
        for key, name in (("compare", self._sweep.compare), ("along", self._sweep.along)):
            if name is not None and name not in self._keys:
                self._add_problem((key,), name, "this sweep has no such axis", nearest(name, self._keys))

    def _add_problem(self, at: KeyPath, value: Any, rule: str, fix: str) -> None:
        file, row = self._sweep.places.where(at)
        problem = Problem(file=file, row=row, column=dotted(at), value=shown(value), rule=rule, fix=fix)
        self._problems.setdefault(problem)


def _measured_alike(rows: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return the runs with one reading of T_id where their policies would be measured by several."""
    alike = measured_alike([row.scenario for row in rows])
    return [
        row if mine is row.scenario else replace(row, scenario=mine, scenario_hash=scenario_hash(mine))
        for row, mine in zip(rows, alike, strict=True)
    ]


def _axes_with_values(block: Block) -> tuple[SweepAxis, ...]:
    """Return the axes with values; the reader has reported the others."""
    return tuple(axis for axis in block.axes if axis.choices)


class _Overlay:
    """The keys of the base scenario with the values of one run over them, and the source location of each."""

    def __init__(self, sweep: SweepFile):
        self._sweep = sweep
        self.data: dict[str, Any] = copy.deepcopy(sweep.base or {})
        self.places: SourceLocations = sweep.base_places
        self._named: list[tuple[tuple[str, ...], str]] = []  # path in the scenario, name in the sweep file

    def apply(self, axis: SweepAxis, choice: Choice) -> None:
        """Set one value. A policy or a cluster replaces the whole table."""
        place = self._sweep.places.where(choice.at)
        if axis.key == "cluster" and isinstance(choice.value, str):
            self._apply_cluster(choice.value, choice.at)
            return
        value = copy.deepcopy(choice.value)
        if axis.key == "policy" and not isinstance(value, dict):
            value = {"name": value}
        try:
            self._set_place(put(self.data, list(axis.path), value), place, axis.key)
        except ValueError as error:
            raise refused_at(place, axis.key, shown(value), *error.args) from error

    def _apply_cluster(self, name: str, at: KeyPath) -> None:
        clusters = self._sweep.clusters
        if name not in clusters:
            fix = nearest(name, clusters) if clusters else f"write [clusters.{name}] and its keys below it"
            rule = "there is no cluster of this name in [clusters]"
            raise refused_at(self._sweep.places.where(at), "cluster", name, rule, fix)
        self.data["cluster"] = copy.deepcopy(clusters[name])
        origin: KeyPath = ("clusters", name)
        self._set_place(("cluster",), self._sweep.places.where(origin), dotted(origin))
        lines = {("cluster", *key[2:]): place for key, place in self._sweep.places.by_path.items() if key[:2] == origin}
        self.places = SourceLocations(self.places.file, {**self.places.by_path, **lines})

    def _set_place(self, path: KeyPath, place: Place, name: str) -> None:
        self.places = self.places.moved(path, place)
        self._named.append((tuple(str(part) for part in path), name))

    def translate(self, problem: Problem) -> Problem:
        """Return the problem with the key of the sweep file, if the value is from there."""
        if problem.file != self._sweep.places.file or problem.column is None:
            return problem
        for path, name in self._named:
            own = ".".join(path)
            if problem.column == own or problem.column.startswith(f"{own}."):
                rest = problem.column[len(own) :]
                return replace(problem, column=name + ("" if rest == ".name" else rest))
        return problem


def _label(value: Any) -> Label:
    """Return a value for the table of results; tables and arrays as JSON."""
    if isinstance(value, (str, bool, int, float)):
        return value
    return json.dumps(value, sort_keys=True, default=str)


def text(value: Label) -> str:
    """Return a value of an axis for display."""
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
