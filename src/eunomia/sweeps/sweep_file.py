"""Reads a sweep file: a base scenario, and blocks of axes whose combinations are the runs."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario import toml
from eunomia.scenario.policy_spec import key_path
from eunomia.scenario.source_locations import KeyPath, SourceLocations, dotted, shown

KEYS = ("scenario", "set", "axes", "runs", "clusters", "compare", "along", "baseline", "confidence", "keep_jobs")
SHORT: Mapping[str, tuple[str, ...]] = {"policy": ("policy",), "load": ("workload", "load"), "seed": ("seed",),
                                        "cluster": ("cluster",)}  # fmt: skip
SCENARIO_FIX = 'write scenario = "demo.toml" at the top, or a table [scenario] with the keys of a scenario'


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of an axis and its key in the sweep file."""

    value: Any
    at: KeyPath


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """One key of the scenario and its values."""

    key: str  # in the table of results: load, or mechanism.length_s
    path: tuple[str, ...]  # in the scenario
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Axes whose values are combined: [axes], or one entry of runs."""

    axes: tuple[SweepAxis, ...]
    at: KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFile:
    """A sweep as written. `wrong` has problems of its structure, which `plan` raises with all others."""

    path: Path
    text: str
    places: SourceLocations
    base: dict[str, Any] | None  # the scenario's keys; None = unreadable
    base_places: SourceLocations
    folder: Path  # base of the scenario's relative paths
    set_: tuple[SweepAxis, ...]  # one value each, set for all runs
    blocks: tuple[Block, ...]
    clusters: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    compare: str | None = None  # axis whose values are compared; None = policy, or the first with several values
    along: str | None = None  # horizontal axis of curves; None = load, or the first of numbers
    baseline: Any = None  # value of `compare` to compare with; None = the first
    confidence: float = 0.95
    keep_jobs: bool = False
    wrong: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem


def read(path: Path) -> SweepFile:
    """Read a sweep file. Raises InvalidInput when it cannot be read or is not TOML."""
    data, places = toml.read_file(path, "sweep")
    problems: list[Problem] = []
    reader = _Reader(data, places, problems)
    base, base_places, folder = reader.base(path)
    return SweepFile(
        path=path,
        text=path.read_text(encoding="utf-8-sig"),
        places=places,
        base=base,
        base_places=base_places,
        folder=folder,
        set_=tuple(reader.axes(("set",), several=False)),
        blocks=tuple(reader.blocks()),
        clusters=reader.clusters(),
        **reader.options(),
        wrong=tuple(problems),
    )


class _Reader:
    """Parses the file and collects its problems."""

    def __init__(self, data: dict[str, Any], places: SourceLocations, problems: list[Problem]):
        self._data, self._places, self._problems = data, places, problems
        for key in data.keys() - set(KEYS):
            fix = nearest(key, KEYS)
            if key in SHORT or key_path(key) is None or isinstance(data[key], list):
                fix = f"an axis stands below [axes]; {fix}"
            self._add_problem((key,), data[key], "is no key of a sweep", fix)

    def _add_problem(self, at: KeyPath, value: Any, rule: str, fix: str) -> None:
        file, row = self._places.where(at)
        column = dotted(at) or None
        self._problems.append(Problem(file=file, row=row, column=column, value=shown(value), rule=rule, fix=fix))

    def base(self, path: Path) -> tuple[dict[str, Any] | None, SourceLocations, Path]:
        """Return the keys of the base scenario, their places, and the base folder of its paths."""
        match self._data.get("scenario"):
            case str() as name if name:
                file = path.parent / Path(name).expanduser()
                try:
                    data, places = toml.read_file(file)
                except InvalidInput as error:
                    self._problems += error.problems
                else:
                    return data, places, file.resolve().parent
            case dict() as data:
                lines = {at[1:]: place for at, place in self._places.by_path.items() if at[:1] == ("scenario",)}
                return copy.deepcopy(data), SourceLocations(self._places.file, lines), path.resolve().parent
            case None:
                self._add_problem(("scenario",), None, "a sweep varies a scenario, and there is none", SCENARIO_FIX)
            case other:
                self._add_problem(("scenario",), other, "must be the path of a scenario or a table", SCENARIO_FIX)
        return None, self._places, path.resolve().parent

    def clusters(self) -> dict[str, dict[str, Any]]:
        """Return the tables of [clusters], by name."""
        clusters = self._data.get("clusters", {})
        if not isinstance(clusters, dict):
            self._add_problem(
                ("clusters",), clusters, "must be a table", "write [clusters.small] and its keys below it"
            )
            return {}
        for name, cluster in clusters.items():
            if not isinstance(cluster, dict):
                fix = "write accelerators = { v100 = 8 } below it"
                self._add_problem(("clusters", name), cluster, "must be a table", fix)
        return {name: cluster for name, cluster in clusters.items() if isinstance(cluster, dict)}

    def blocks(self) -> Iterator[Block]:
        """Yield [axes], then every entry of runs; if there are none, one block without axes."""
        runs = self._data.get("runs", [])
        if not isinstance(runs, list):
            self._add_problem(("runs",), runs, "must be an array of tables", "write [[runs]] above each extra run")
            runs = []
        if "axes" in self._data or not runs:
            yield Block(tuple(self.axes(("axes",))), ("axes",))
        for number, entry in enumerate(runs):
            at: KeyPath = ("runs", number)
            if isinstance(entry, dict):
                yield Block(tuple(self.axes(at)), at)
            else:
                self._add_problem(at, entry, "must be a table", 'write { policy = "fifo", load = 1.5 }')

    def axes(self, at: KeyPath, *, several: bool = True) -> Iterator[SweepAxis]:
        """Yield the axes of a table, first those that replace whole tables."""
        table: Any = self._data
        for part in at:
            table = table[part] if isinstance(part, int) else table.get(part, {})
        if not isinstance(table, dict):
            self._add_problem(at, table, "must be a table", f"write [{dotted(at)}] and its keys below it")
            return
        axes: dict[tuple[str, ...], SweepAxis] = {}
        for where, value in _leaves(table, at):
            axis = self._axis(where, value, len(at), several)
            if axis is not None and axis.path in axes:
                self._add_problem(where, value, f"{axis.key} is given twice", "give it once")
            elif axis is not None:
                axes[axis.path] = axis
        yield from sorted(axes.values(), key=lambda axis: len(axis.path) > 1 or axis.path == ("seed",))

    def _axis(self, at: KeyPath, value: Any, depth: int, several: bool) -> SweepAxis | None:
        parts: list[str] = []
        for part in at[depth:]:
            more = key_path(str(part))
            if more is None:
                self._add_problem(at, value, "is no key of a scenario", "write it as in workload.load")
                return None
            parts += more
        path = SHORT.get(parts[0], (parts[0],)) if len(parts) == 1 else tuple(parts)
        key = next((short for short, long in SHORT.items() if long == path), ".".join(path))
        if not several or not isinstance(value, list):
            return SweepAxis(key, path, (Choice(value, at),))
        if not value:
            self._add_problem(at, value, "an axis has at least one value", "write some, or leave the axis out")
        return SweepAxis(key, path, tuple(Choice(each, (*at, index)) for index, each in enumerate(value)))

    def options(self) -> dict[str, Any]:
        """Return the keys with plain values."""
        options: dict[str, Any] = {"baseline": self._data.get("baseline")}
        for key in ("compare", "along"):
            value = self._data.get(key)
            if value is not None and not isinstance(value, str):
                self._add_problem((key,), value, "must be the name of an axis", 'write it as in "policy"')
            elif value is not None:
                path = tuple(key_path(value) or ())
                options[key] = next((short for short, long in SHORT.items() if long == path), value)
        confidence = self._data.get("confidence", 0.95)
        if type(confidence) is not float or not 0.5 <= confidence < 1 or math.isnan(confidence):
            self._add_problem(("confidence",), confidence, "must be a number from 0.5 to below 1", "write 0.95")
        keep = self._data.get("keep_jobs", False)
        if not isinstance(keep, bool):
            self._add_problem(("keep_jobs",), keep, "must be true or false", "write it without quotes")
        return options | {"confidence": confidence, "keep_jobs": keep}


def _leaves(table: dict[str, Any], at: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yield keys and values; `a.b = 1` and `"a.b" = 1` are equal. The table of a cluster is one value."""
    for key, value in table.items():
        if isinstance(value, dict) and key != "cluster":
            yield from _leaves(value, (*at, key))
        else:
            yield (*at, key), value
