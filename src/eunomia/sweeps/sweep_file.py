"""The sweep file: a base scenario, and blocks of axes whose combinations are the runs."""

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
from eunomia.scenario.overrides import key_path
from eunomia.scenario.source_locations import KeyPath, SourceLocations, dotted, shown

KEYS = ("scenario", "set", "axes", "runs", "clusters", "compare", "along", "baseline", "confidence", "keep_jobs")
SHORT: Mapping[str, tuple[str, ...]] = {"policy": ("policy",), "load": ("workload", "load"), "seed": ("seed",),
                                        "cluster": ("cluster",)}  # fmt: skip
SCENARIO_MEND = 'write scenario = "demo.toml" at the top, or a table [scenario] with the keys of a scenario'


@dataclass(frozen=True, slots=True)
class Choice:
    """One value that an axis takes, and where it was written."""

    value: Any
    at: KeyPath  # its key in the sweep file


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """One key of the scenario and the values it takes."""

    key: str  # as in the table of results: load, or mechanism.length_s
    path: tuple[str, ...]  # in the scenario
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Axes that are combined with each other: [axes], or one entry of runs."""

    axes: tuple[SweepAxis, ...]
    at: KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFile:
    """A sweep as written. What is wrong with its shape is in `wrong`; `plan` tells it, and what else is wrong."""

    path: Path
    text: str
    places: SourceLocations
    base: dict[str, Any] | None  # the scenario's keys; None = there are none to be read
    base_places: SourceLocations
    folder: Path  # at which the scenario's relative paths start
    set_: tuple[SweepAxis, ...]  # one value each, laid over the base
    blocks: tuple[Block, ...]
    clusters: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    compare: str | None = None  # axis whose values are compared; None = policy, or the first that has several
    along: str | None = None  # axis that curves run along; None = load, or the first of numbers
    baseline: Any = None  # value of `compare` that the others are compared with; None = the first
    confidence: float = 0.95
    keep_jobs: bool = False
    wrong: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """What to call it: the file's name without its ending."""
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
    """Takes the file apart, and collects what is wrong with it."""

    def __init__(self, data: dict[str, Any], places: SourceLocations, problems: list[Problem]):
        self._data, self._places, self._problems = data, places, problems
        for key in data.keys() - set(KEYS):
            fix = nearest(key, KEYS)
            if key in SHORT or key_path(key) is None or isinstance(data[key], list):
                fix = f"an axis stands below [axes]; {fix}"
            self._complain((key,), data[key], "is no key of a sweep", fix)

    def _complain(self, at: KeyPath, value: Any, rule: str, fix: str) -> None:
        file, row = self._places.where(at)
        column = dotted(at) or None
        self._problems.append(Problem(file=file, row=row, column=column, value=shown(value), rule=rule, fix=fix))

    def base(self, path: Path) -> tuple[dict[str, Any] | None, SourceLocations, Path]:
        """Return the base scenario's keys, their places, and the folder at which its paths start."""
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
                self._complain(("scenario",), None, "a sweep varies a scenario, and there is none", SCENARIO_MEND)
            case other:
                self._complain(("scenario",), other, "must be the path of a scenario or a table", SCENARIO_MEND)
        return None, self._places, path.resolve().parent

    def clusters(self) -> dict[str, dict[str, Any]]:
        """Return the clusters that have names."""
        found = self._data.get("clusters", {})
        if not isinstance(found, dict):
            self._complain(("clusters",), found, "must be a table", "write [clusters.small] and its keys below it")
            return {}
        for name, cluster in found.items():
            if not isinstance(cluster, dict):
                fix = "write accelerators = { v100 = 8 } below it"
                self._complain(("clusters", name), cluster, "must be a table", fix)
        return {name: cluster for name, cluster in found.items() if isinstance(cluster, dict)}

    def blocks(self) -> Iterator[Block]:
        """Yield [axes] and then every entry of runs; without any, one block that is the base itself."""
        runs = self._data.get("runs", [])
        if not isinstance(runs, list):
            self._complain(("runs",), runs, "must be an array of tables", "write [[runs]] above each extra run")
            runs = []
        if "axes" in self._data or not runs:
            yield Block(tuple(self.axes(("axes",))), ("axes",))
        for number, entry in enumerate(runs):
            at: KeyPath = ("runs", number)
            if isinstance(entry, dict):
                yield Block(tuple(self.axes(at)), at)
            else:
                self._complain(at, entry, "must be a table", 'write { policy = "fifo", load = 1.5 }')

    def axes(self, at: KeyPath, *, several: bool = True) -> Iterator[SweepAxis]:
        """Yield the axes of a table, those that replace whole tables first."""
        table: Any = self._data
        for part in at:
            table = table[part] if isinstance(part, int) else table.get(part, {})
        if not isinstance(table, dict):
            self._complain(at, table, "must be a table", f"write [{dotted(at)}] and its keys below it")
            return
        found: dict[tuple[str, ...], SweepAxis] = {}
        for where, value in _leaves(table, at):
            axis = self._axis(where, value, len(at), several)
            if axis is not None and axis.path in found:
                self._complain(where, value, f"{axis.key} is said twice", "say it once")
            elif axis is not None:
                found[axis.path] = axis
        yield from sorted(found.values(), key=lambda axis: len(axis.path) > 1 or axis.path == ("seed",))

    def _axis(self, at: KeyPath, value: Any, depth: int, several: bool) -> SweepAxis | None:
        parts: list[str] = []
        for part in at[depth:]:
            more = key_path(str(part))
            if more is None:
                self._complain(at, value, "is no key of a scenario", "write it as in workload.load")
                return None
            parts += more
        path = SHORT.get(parts[0], (parts[0],)) if len(parts) == 1 else tuple(parts)
        key = next((short for short, long in SHORT.items() if long == path), ".".join(path))
        if not several or not isinstance(value, list):
            return SweepAxis(key, path, (Choice(value, at),))
        if not value:
            self._complain(at, value, "an axis has at least one value", "write some, or leave the axis out")
        return SweepAxis(key, path, tuple(Choice(each, (*at, index)) for index, each in enumerate(value)))

    def options(self) -> dict[str, Any]:
        """Return the keys that are plain values."""
        found: dict[str, Any] = {"baseline": self._data.get("baseline")}
        for key in ("compare", "along"):
            value = self._data.get(key)
            if value is not None and not isinstance(value, str):
                self._complain((key,), value, "must be the name of an axis", 'write it as in "policy"')
            elif value is not None:
                path = tuple(key_path(value) or ())
                found[key] = next((short for short, long in SHORT.items() if long == path), value)
        confidence = self._data.get("confidence", 0.95)
        if type(confidence) is not float or not 0.5 <= confidence < 1 or math.isnan(confidence):
            self._complain(("confidence",), confidence, "must be a number from 0.5 to below 1", "write 0.95")
        keep = self._data.get("keep_jobs", False)
        if not isinstance(keep, bool):
            self._complain(("keep_jobs",), keep, "must be true or false", "write it without quotes")
        return found | {"confidence": confidence, "keep_jobs": keep}


def _leaves(table: dict[str, Any], at: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yield keys and values; `a.b = 1` and `"a.b" = 1` mean the same. A cluster is one value, though it is a table."""
    for key, value in table.items():
        if isinstance(value, dict) and key != "cluster":
            yield from _leaves(value, (*at, key))
        else:
            yield (*at, key), value
