"""Applies `--policy`, `--load`, `--seed` and `--check` to a scenario."""

from __future__ import annotations

import math
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.runs.as_it_was import AS_IT_WAS
from eunomia.scenario import Scenario
from eunomia.setup.policy_lookup import find_policy, knows_durations


def varied(
    scenario: Scenario,
    *,
    policy: str | None = None,
    load: float | None = None,
    seed: int | None = None,
    check: bool | None = None,
) -> Scenario:
    """Return the scenario with the given values. Raises InvalidInput for a value out of range."""
    changed = scenario if policy is None else scenario.with_policy(policy)
    update: dict[str, Any] = {}
    if load is not None:
        _check(0 < load < math.inf, "--load", load, "a load is a finite number above 0", "give for example 1.3")
        update["workload"] = changed.workload.model_copy(update={"load": float(load)})
    if seed is not None:
        _check(0 <= seed < 2**63, "--seed", seed, "a seed is a whole number from 0 to 2⁶³ - 1", "give for example 0")
        update["seed"] = seed
    if check is not None:
        update["check"] = check
    return changed.model_copy(update=update) if update else changed


def spelling(scenario: Scenario) -> str:
    """Return the scenario's policy as `--policy` spells it: `fifo?backfill=skip`."""
    parameters = "&".join(f"{key}={_format(value)}" for key, value in scenario.policy.parameters.items())
    return f"{scenario.policy.name}?{parameters}" if parameters else scenario.policy.name


def uses_known_durations(scenario: Scenario) -> bool:
    """Return whether the scenario's policy goes by durations that a real cluster does not know."""
    policy = scenario.policy
    if policy.name == AS_IT_WAS:
        return False
    return knows_durations(find_policy(policy.name, policy.parameters, scenario.base, scenario.where), scenario)


def _format(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(holds: bool, option: str, value: object, rule: str, fix: str) -> None:
    if not holds:
        raise InvalidInput([Problem(file="command line", column=option, value=str(value), rule=rule, fix=fix)])
