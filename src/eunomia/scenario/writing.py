"""Writes a scenario as TOML, with every default."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eunomia.scenario.load import scenario_from_dict
from eunomia.scenario.model import Scenario


def as_toml(scenario: Scenario) -> str:
    """Return TOML text; reading it gives the same scenario."""
    data = scenario.as_dict()
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if not isinstance(value, dict)]
    for name, table in data.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def with_absolute_paths(scenario: Scenario) -> Scenario:
    """Return the scenario for a file in another folder: the files that it names, such as its trace, by whole paths."""
    data = {name: _resolved(scenario, table) for name, table in scenario.as_dict().items()}
    if scenario.workload.trace is not None:
        data["workload"] = {**data["workload"], "trace": str(scenario.resolve(scenario.workload.trace).resolve())}
    return scenario_from_dict(data, scenario.base, scenario.name)


def _resolved(scenario: Scenario, value: Any) -> Any:
    """Return a value with the paths in it whole: a file, or a class in one, `policy.py:Class`."""
    match value:
        case Mapping():
            return {key: _resolved(scenario, part) for key, part in value.items()}
        case list() | tuple():
            return [_resolved(scenario, part) for part in value]
        case str():
            file, colon, class_ = value.rpartition(":") if ".py:" in value else (value, "", "")
            places = (scenario.resolve(file), Path(file)) if colon else (scenario.resolve(file),)
            found = next((place for place in places if "." in file and place.is_file()), None)
            return value if found is None else f"{found.resolve()}{colon}{class_}"
    return value


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value if value in ("inf", "-inf") else json.dumps(value, ensure_ascii=False)
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(_value(part) for part in value) + "]"
    return repr(value)
