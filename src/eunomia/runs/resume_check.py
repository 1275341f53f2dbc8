"""Checks that a resumed run has the inputs with which it was started."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.records.record import header_line
from eunomia.scenario import Scenario

RESTART = "or start again with --force or another --out"


def check_same_run(recorded: Mapping[str, Any], header: Mapping[str, Any], scenario: Scenario, out: Path) -> None:
    """Raise InvalidInput with every difference between the header of a record and that of this run."""
    now = json.loads(header_line(header))
    problems = [
        _changed_key(path, old, new, scenario, out)
        for path, old, new in _differences(recorded.get("scenario", {}), now["scenario"])
    ]
    problems += _changed_files(recorded.get("inputs", {}), now["inputs"], scenario, out)
    problems = problems or [
        _changed_otherwise(name, recorded, now, out)
        for name in now
        if name != "version" and recorded.get(name, now[name]) != now[name]
    ]
    if problems:
        raise InvalidInput(problems)


def _changed_otherwise(name: str, recorded: Mapping[str, Any], now: Mapping[str, Any], out: Path) -> Problem:
    """Return the problem of a header field that changed although neither scenario nor files did."""
    rule = f"the run was begun with another {name}, by version {recorded.get('version')}; this is {now['version']}"
    return Problem(file=str(out), column=name, rule=rule, fix=f"use that version and the policy as it was, {RESTART}")


def _changed_key(path: tuple[str, ...], old: Any, new: Any, scenario: Scenario, out: Path) -> Problem:
    rule = f"the run in {out} was begun with {json.dumps(old)}"
    return scenario.problem(path, rule, f"undo the change, {RESTART}", json.dumps(new))


def _changed_files(old: Mapping[str, str], new: Mapping[str, str], scenario: Scenario, out: Path) -> Iterator[Problem]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            what = "is not there any more" if name not in new else "has changed"
            rule = f"the file {what} since the run in {out} was begun"
            yield Problem(file=str(scenario.resolve(name)), rule=rule, fix=f"put it back as it was, {RESTART}")


def _differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield path and both values of every difference between two JSON values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _differences(old.get(key), new.get(key), (*path, key))
    elif old != new:
        yield path, old, new
