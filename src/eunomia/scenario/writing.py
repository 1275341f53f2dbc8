"""Writes a scenario as TOML, with every default."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    data = {
        name: {key: _resolved(scenario, value) for key, value in table.items()} if isinstance(table, dict) else table
        for name, table in scenario.as_dict().items()
    }
    return scenario_from_dict(data, scenario.base, scenario.name)


def _resolved(scenario: Scenario, value: Any) -> Any:
    if isinstance(value, str) and "." in value and scenario.resolve(value).is_file():
        return str(scenario.resolve(value).resolve())
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
