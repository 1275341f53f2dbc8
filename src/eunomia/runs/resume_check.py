"""Whether a run may go on with these inputs: they must be those that it was begun with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.records.record import header_line
from eunomia.scenario import Scenario

ANEW = "or begin anew with --force or another --out"


def demand_same_run(recorded: Mapping[str, Any], header: Mapping[str, Any], scenario: Scenario, out: Path) -> None:
    """Raise InvalidInput with everything in which the header of a record differs from that of this run."""
    now = json.loads(header_line(header))
    problems = [
        _changed_key(path, old, new, scenario, out)
        for path, old, new in _differences(recorded.get("scenario", {}), now["scenario"])
    ]
    problems += _changed_files(recorded.get("inputs", {}), now["inputs"], scenario, out)
    problems = problems or [
        _changed_otherwise(name, recorded, now, out)
        for name in now
        if name != "version" and recorded.get(name) != now[name]
    ]
    if problems:
        raise InvalidInput(problems)


def _changed_otherwise(name: str, recorded: Mapping[str, Any], now: Mapping[str, Any], out: Path) -> Problem:
    """Return the problem where neither scenario nor files changed: then the policy did, or Eunomia itself."""
    rule = f"the run was begun with another {name}, by version {recorded.get('version')}; this is {now['version']}"
    return Problem(file=str(out), column=name, rule=rule, fix=f"use that version and the policy as it was, {ANEW}")


def _changed_key(path: tuple[str, ...], old: Any, new: Any, scenario: Scenario, out: Path) -> Problem:
    file, row = scenario.where(path)
    return Problem(
        file=file,
        row=row,
        column=".".join(path),
        value=json.dumps(new),
        rule=f"the run in {out} was begun with {json.dumps(old)}",
        fix=f"undo the change, {ANEW}",
    )


def _changed_files(old: Mapping[str, str], new: Mapping[str, str], scenario: Scenario, out: Path) -> Iterator[Problem]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            what = "is not there any more" if name not in new else "has changed"
            rule = f"the file {what} since the run in {out} was begun"
            yield Problem(file=str(scenario.resolve(name)), rule=rule, fix=f"put it back as it was, {ANEW}")


def _differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield the path and both values of everything in which two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _differences(old.get(key), new.get(key), (*path, key))
    elif old != new:
        yield path, old, new
