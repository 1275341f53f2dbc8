"""Applies `--policy`, `--load`, `--seed` and `--check` to a scenario."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.finish_time import SHARE, IdealTime
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


def goes_by(scenario: Scenario) -> IdealTime | None:
    """Return the reading of T_id by which the scenario's policy goes; None = it goes by none.

    Raises InvalidInput for a policy that is not known, and for its parameters.
    """
    policy = scenario.policy
    if policy.name == AS_IT_WAS:
        return None
    return find_policy(policy.name, policy.parameters, scenario.base, scenario.where).info.ideal


def measured_alike(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return scenarios that are compared, with one reading of T_id where their policies would be measured by several.

    It is that of the policies that go by one, `share` where these differ. A scenario that names one keeps it.
    """
    free = {spelling(scenario): scenario for scenario in scenarios if scenario.measure.ideal == "policy"}
    readings = {goes_by(scenario) for scenario in free.values()}
    if len({reading or SHARE for reading in readings}) <= 1:
        return list(scenarios)
    named = [reading for reading in readings if reading is not None]
    ideal = named[0] if len(named) == 1 else SHARE
    return [_measured_by(scenario, ideal) for scenario in scenarios]


def _measured_by(scenario: Scenario, ideal: IdealTime) -> Scenario:
    if scenario.measure.ideal != "policy":
        return scenario
    return scenario.model_copy(update={"measure": scenario.measure.model_copy(update={"ideal": ideal})})


def _format(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(holds: bool, option: str, value: object, rule: str, fix: str) -> None:
    if not holds:
        raise InvalidInput([Problem(file="command line", column=option, value=str(value), rule=rule, fix=fix)])
