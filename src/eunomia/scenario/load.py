"""Loads a scenario from a file or from Python, with all its problems in one error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario import toml
from eunomia.scenario.cross_checks import contradictions
from eunomia.scenario.machine_list import expand_nodes_file
from eunomia.scenario.model import Scenario
from eunomia.scenario.policy_spec import override, parse_policy, plain
from eunomia.scenario.pydantic_errors import findings
from eunomia.scenario.source_locations import Finding, KeyPath, SourceLocations, dotted, shown

AUTO = "auto"  # source of throughputs: speed 1 for a trace that needs no other, else the catalogue


def load_scenario(path: Path | str, overrides: Sequence[str] = ()) -> Scenario:
    """Read a TOML file, apply `key.path=value` overrides, and check the result.

    Relative paths start at its folder. Raises `InvalidInput` with file, line and key of every problem.
    """
    path = Path(path)
    data, places = toml.read_file(path)
    places = override(data, places, overrides)
    base = path.resolve().parent
    return _check(data, places, base).placed(path.stem, base, places)


def scenario_from_dict(data: Mapping[str, Any], base: Path, name: str = "scenario") -> Scenario:
    """Check a scenario written in Python; "inf" stands for the number, as JSON has none.

    Relative paths start at `base`. Raises `InvalidInput`, which calls the scenario `name`.
    """
    places = SourceLocations(name)
    return _check(plain(data), places, base).placed(name, base, places)


def scenario_from_parts(data: dict[str, Any], places: SourceLocations, base: Path, name: str) -> Scenario:
    """Check a scenario whose keys come from several places; `data` may be modified.

    Relative paths start at `base`. Raises `InvalidInput` with the place of every problem.
    """
    return _check(data, places, base).placed(name, base, places)


def _check(data: dict[str, Any], places: SourceLocations, base: Path) -> Scenario:
    """Return the scenario, or raise InvalidInput with its problems in the order of its lines."""
    toml.refuse_unusable_texts(data, places)
    problems = _expand_policy(data, places) + expand_nodes_file(data, places, base)
    _set_throughputs(data)
    finding_by_path: dict[KeyPath, Finding] = {}
    for finding in contradictions(data):
        finding_by_path.setdefault(finding.path, finding)
    scenario = None
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        for finding in findings(error):
            finding_by_path.setdefault(finding.path, finding)
    problems += [_problem(finding, places) for finding in finding_by_path.values()]
    if scenario is None or problems:
        raise InvalidInput(sorted(problems, key=lambda problem: (problem.file != places.file, problem.row or 0)))
    return scenario


def _expand_policy(data: dict[str, Any], places: SourceLocations) -> list[Problem]:
    """Split `name = "fifo?backfill=skip"` into name and parameters; return the problems of the spelling."""
    policy = data.get("policy")
    name = policy.get("name") if isinstance(policy, dict) else None
    if not isinstance(policy, dict) or not isinstance(name, str) or "?" not in name:
        return []
    file, row = places.where(("policy", "name"))
    try:
        policy["name"], parameters = parse_policy(name, file, row)
    except InvalidInput as refusal:
        return [replace(problem, column="policy.name") for problem in refusal.problems]
    repeated = sorted(parameters.keys() & policy.keys())
    data["policy"] = {**policy, **parameters}
    rule, fix = "is also said in the policy's name", "say it once"
    return [_problem(Finding(("policy", key), parameters[key], rule, fix), places) for key in repeated]


def _set_throughputs(data: dict[str, Any]) -> None:
    """Set keys of [throughputs] that are left out, and that the cluster or the workload decide.

    The reference type is the cluster's first where all types have one speed, since v100 may not exist. Of a trace on a
    cluster of one type, and no source, it is seen in the trace whether job types have to be known.
    """
    cluster, workload = data.get("cluster"), data.get("workload")
    throughputs = data.get("throughputs", {})
    types = _types_of(cluster) if isinstance(cluster, dict) else []
    if not types or not isinstance(throughputs, dict):
        return
    if throughputs.get("source") in ("uniform", "linear"):
        throughputs.setdefault("reference_type", types[0])
        return
    is_open = isinstance(workload, dict) and "trace" in workload and "job_types" not in workload
    if is_open and len(types) == 1 and "source" not in throughputs:
        data["throughputs"] = {**throughputs, "source": AUTO}


def _types_of(cluster: dict[str, Any]) -> list[str]:
    """Return the accelerator types of a cluster, in its order; none where it is malformed."""
    match cluster:
        case {"nodes": [*groups]} if all(isinstance(group, dict) for group in groups):
            names = [group.get("type") for group in groups]
        case {"accelerators": dict(totals)}:
            names = list(totals)
        case _:
            return []
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def _problem(finding: Finding, places: SourceLocations) -> Problem:
    file, row = places.where(finding.path)
    return Problem(
        file=file,
        row=row,
        column=dotted(finding.path) or None,
        value=shown(finding.value),
        rule=finding.rule,
        fix=finding.fix,
    )
