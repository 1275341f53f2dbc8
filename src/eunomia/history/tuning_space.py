"""The parameters that `eunomia tune` may change, read from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.scenario import Scenario, scenario_from_dict, toml
from eunomia.scenario.policy_spec import key_path, put
from eunomia.scenario.source_locations import SourceLocations, shown
from eunomia.setup.policy_lookup import find_policy
from eunomia.solvers.bayesian import SearchGrid
from eunomia.solvers.bayesian.grid import scaled, unordered

TUNED = ("policy", "mechanism", "belief")  # tables of a scenario whose keys may be searched
RANGE = ("low", "high", "steps", "scale")
STEPS = 10  # values of a range that does not say how many
MOST_VALUES = 1000  # of one parameter
EXAMPLE = '"policy.queues" = [1, 2, 4] or "policy.slot_s" = { low = 60, high = 3600, steps = 8, scale = "log" }'


@dataclass(frozen=True)
class TunedParameter:
    """One key of the scenario and the values that it may take."""

    key: str  # dotted, as `--set` spells it
    path: tuple[str, ...]
    values: tuple[Any, ...]
    log: bool = False

    def column(self) -> Floats:
        """Return the coordinates of the values, (value, coordinate); numbers are ordered, other values are not."""
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values):
            return scaled([float(value) for value in self.values], log=self.log)
        return unordered(len(self.values))


@dataclass(frozen=True)
class TuningSpace:
    """Every combination of the values of its parameters."""

    parameters: tuple[TunedParameter, ...]

    def grid(self) -> SearchGrid:
        """Return the grid of the combinations."""
        return SearchGrid(tuple(parameter.column() for parameter in self.parameters))

    def settings(self, point: int) -> dict[str, Any]:
        """Return the values by key of a point of the grid."""
        chosen = self.grid().values(np.array([point]))[0].tolist()
        return {one.key: one.values[k] for one, k in zip(self.parameters, chosen, strict=True)}

    def apply(self, scenario: Scenario, settings: Mapping[str, Any]) -> Scenario:
        """Return the scenario with these values by key. Raises InvalidInput where it does not accept them."""
        data = scenario.as_dict()
        for one in self.parameters:
            if one.key in settings:
                put(data, list(one.path), settings[one.key])
        changed = scenario_from_dict(data, scenario.base, scenario.name)
        find_policy(changed.policy.name, changed.policy.parameters, changed.base, changed.where)
        return changed


def read_space(path: Path, scenario: Scenario) -> TuningSpace:
    """Read a table `[parameters]` of values by key of the scenario.

    Raises InvalidInput with file and line of every key and value that the scenario does not accept.
    """
    data, places = toml.read_file(path, "space")
    table = data.get("parameters")
    problems = [
        _problem(places, (name,), value, "a space has the table [parameters] only", "move the key there")
        for name, value in data.items()
        if name != "parameters"
    ]
    if not isinstance(table, dict) or not table:
        problems.append(_problem(places, (), None, "there is no table [parameters]", f"write in it {EXAMPLE}"))
        raise InvalidInput(problems)
    parameters = []
    for key, value in _flat(table, ()).items():
        place = key if key in places.by_path else ("parameters", *key)
        try:
            parameters.append(_parameter(key, value))
        except ValueError as error:
            problems.append(_problem(places, place, value, *error.args))
    space = TuningSpace(tuple(parameters))
    for one in parameters:
        problems += _refusals(space, one, scenario, places)
    if problems:
        raise InvalidInput(problems)
    return space


def _flat(table: Mapping[str, Any], above: tuple[str, ...]) -> dict[tuple[str, ...], Any]:
    """Return the values by path of keys; `[parameters.policy]` and dotted keys in quotes mean the same."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in table.items():
        path = (*above, key)
        if isinstance(value, dict) and not set(value) & set(RANGE):
            found |= _flat(value, path)
        else:
            found[path] = value
    return found


def _parameter(key: tuple[str, ...], value: Any) -> TunedParameter:
    """Return the parameter. Raises ValueError(rule, fix)."""
    dotted = ".".join(key)
    path = key_path(dotted)
    if path is None or len(path) < 2 or path[0] not in TUNED:
        raise ValueError(f"a tuned key belongs to {', '.join(TUNED)}", f"write for example {EXAMPLE}")
    log = isinstance(value, dict) and value.get("scale") == "log"
    values = _range(value) if isinstance(value, dict) else value
    if not isinstance(values, list | tuple) or len(values) < 2:
        raise ValueError("must be a list of two values or more, or a range", f"write for example {EXAMPLE}")
    if any(isinstance(one, list | dict) for one in values) or len({repr(one) for one in values}) < len(values):
        raise ValueError("values are numbers, words, true or false, each once", f"write for example {EXAMPLE}")
    return TunedParameter(dotted, tuple(path), tuple(values), log)


def _range(value: Mapping[str, Any]) -> list[Any]:
    """Return the values of `{ low, high, steps, scale }`. Raises ValueError(rule, fix)."""
    fix = f"write for example {EXAMPLE}"
    unknown = sorted(set(value) - set(RANGE))
    low, high, steps = value.get("low"), value.get("high"), value.get("steps", None)
    numbers = [one for one in (low, high) if isinstance(one, int | float) and not isinstance(one, bool)]
    if unknown or len(numbers) < 2 or not -1e300 < numbers[0] < numbers[1] < 1e300:
        raise ValueError("a range has low and high, numbers that rise, and maybe steps and scale", fix)
    if value.get("scale", "linear") not in ("linear", "log") or (value.get("scale") == "log" and numbers[0] <= 0):
        raise ValueError('scale is "linear", or "log" where low is above 0', fix)
    whole = isinstance(low, int) and isinstance(high, int)
    if steps is None:
        steps = (
            min(int(numbers[1]) - int(numbers[0]) + 1, MOST_VALUES)
            if whole and numbers[1] - numbers[0] < STEPS
            else STEPS
        )
    if not isinstance(steps, int) or isinstance(steps, bool) or not 2 <= steps <= MOST_VALUES:
        raise ValueError(f"steps is a whole number from 2 to {MOST_VALUES}", fix)
    part = np.arange(steps) / (steps - 1)
    if value.get("scale") == "log":
        ends = elementary.log(np.array(numbers, dtype=float))
        spread = [float(f"{one:.6g}") for one in elementary.exp(ends[0] + part * (ends[1] - ends[0])).tolist()]
    else:
        spread = [float(f"{one:.12g}") for one in (numbers[0] + part * (numbers[1] - numbers[0])).tolist()]
    return list(dict.fromkeys(round(one) for one in spread)) if whole else spread


def _refusals(space: TuningSpace, one: TunedParameter, scenario: Scenario, places: SourceLocations) -> list[Problem]:
    """Return a problem for each value that the scenario does not accept beside its own other values."""
    problems = []
    place = next((path for path in (("parameters", one.key), ("parameters", *one.path)) if path in places.by_path), ())
    for value in one.values:
        try:
            space.apply(scenario, {one.key: value})
        except ValueError as error:
            inner = error.problems[0] if isinstance(error, InvalidInput) else None
            rule, fix = (inner.rule, inner.fix) if inner else (str(error.args[0]), str(error.args[-1]))
            problems.append(replace(_problem(places, place, value, rule, fix), column=one.key))
    return problems


def _problem(places: SourceLocations, path: tuple[str, ...], value: Any, rule: str, fix: str) -> Problem:
    file, row = places.where(path)
    column = ".".join(path[1:] if len(path) > 1 else path) or None
    return Problem(file=file, row=row, column=column, value=shown(value), rule=rule, fix=fix)
