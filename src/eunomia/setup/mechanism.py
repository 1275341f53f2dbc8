"""Builds the mechanism of a scenario: the one that it names, or else the default of its policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from eunomia.core.mechanisms.gavel.settings import DEFAULT_VISIT, GavelRounds
from eunomia.core.mechanisms.ideal.settings import Ideal
from eunomia.core.mechanisms.leases import Leases
from eunomia.model.policy import Policy, check_values
from eunomia.model.problems import InvalidInput, Problem
from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import PhysicsSection
from eunomia.scenario.source_locations import shown

Mechanism = Leases | GavelRounds | Ideal
NAMES = ("leases", "gavel", "ideal")
_OFF = PhysicsSection()
# Gavel tests whether its own name of a policy contains "Perf" or "Packing". These contain one; our names do not.
_AWARE = frozenset({"allox", "gandiva", "proportional", "max_min_fairness_strategy_proof"})


def mechanism_of(scenario: Scenario, policy: Policy, jobs: int) -> Mechanism:
    """Return the mechanism for a policy and a number of jobs. Raises InvalidInput for a wrong or impossible one."""
    asked, own = scenario.mechanism, policy.info.mechanism
    if asked is not None and asked.name == "gavel":
        return _gavel(scenario, policy, asked.parameters, jobs)
    if asked is not None and asked.name == "ideal":
        return _ideal(scenario, policy, asked.parameters)
    if asked is not None and asked.name != "leases":
        fix = nearest(asked.name, NAMES)
        raise InvalidInput([_problem(scenario, "name", "there is no such mechanism", fix, asked.name)])
    try:
        if asked is None:
            return Leases(length=own.length_s, aligned=own.aligned, recall=own.recall)
        return Leases(length=asked.length_s, aligned=asked.aligned, recall=asked.recall, solve_gap=asked.solve_gap_s)
    except ValueError as error:
        raise InvalidInput([_problem(scenario, "", str(error), "fix [mechanism]")]) from error


def _gavel(scenario: Scenario, policy: Policy, given: Mapping[str, Any], jobs: int) -> GavelRounds:
    """Return Gavel's rounds with the settings that Gavel uses for this policy, overridden by the scenario's."""
    known = [field.name for field in fields(GavelRounds) if field.name != "expected"]
    problems = [
        _problem(scenario, key, "the mechanism gavel has no such key", nearest(key, known))
        for key in given
        if key not in known
    ]
    problems += _unsupported_by_gavel(scenario, policy)
    problems += _wrong_visit(scenario, given.get("visit", DEFAULT_VISIT))
    problems += _wrong_values(scenario, GavelRounds, {key: given[key] for key in given if key != "visit"}, known)
    if problems:
        raise InvalidInput(problems)
    parameters = _gavel_defaults(scenario.policy.name, policy) | dict(given)
    if "visit" in parameters:
        parameters["visit"] = tuple(parameters["visit"])
    return GavelRounds(**parameters, expected=jobs)


def _wrong_values(
    scenario: Scenario, settings: type[Mechanism], given: Mapping[str, Any], known: Sequence[str]
) -> list[Problem]:
    """Return a problem for each key whose value is invalid; no rule concerns two keys at once."""
    problems = []
    for key in (key for key in given if key in known):
        try:
            check_values(settings, {key: given[key]})
            settings(**{key: given[key]})
        except ValueError as error:
            rule = str(error).removeprefix(f"{key} is {given[key]!r}; ")
            problems.append(_problem(scenario, key, rule, "give such a value, or leave it out", shown(given[key])))
    return problems


def _ideal(scenario: Scenario, policy: Policy, given: Mapping[str, Any]) -> Ideal:
    """Return the fluid mechanism: jobs receive exactly the shares that the policy answers."""
    known = [field.name for field in fields(Ideal)]
    problems = [
        _problem(scenario, key, "the mechanism ideal has no such key: it has neither leases nor rounds", "leave it out")
        for key in given
        if key not in known
    ]
    if policy.info.door != "shares":
        answered = "an order" if policy.info.door == "order" else "grants of seats"
        rule = f"{policy.info.name} answers {answered}, and only shares of time can be received as a fluid"
        problems.append(_problem(scenario, "name", rule, "choose a policy that answers shares, or another mechanism"))
    needs_seats = scenario.physics.model_copy(update={"pairs": _OFF.pairs, "believed": _OFF.believed})
    reason = "the mechanism ideal assigns no accelerators, so nothing is started, moved or lost with a machine"
    unsupported = _unsupported(scenario) | {"[physics] says more than pairs": needs_seats != _OFF}
    problems += _unsupported_problems(scenario, unsupported, reason)
    problems += _wrong_values(scenario, Ideal, given, known)
    if problems:
        raise InvalidInput(problems)
    return Ideal(**given)


def _wrong_visit(scenario: Scenario, visit: Any) -> list[Problem]:
    """Return what is wrong with the order in which types are filled; a type that it does not name is never used."""
    types = scenario.cluster.types
    if not isinstance(visit, list | tuple) or not all(isinstance(name, str) for name in visit):
        return [_problem(scenario, "visit", "must be a list of accelerator types", 'give ["v100", "k80"]', str(visit))]
    if len(set(visit)) < len(visit):
        twice = next(name for name in visit if list(visit).count(name) > 1)
        return [_problem(scenario, "visit", "names a type twice", "name each type once", twice)]
    if tuple(visit) != DEFAULT_VISIT:
        return [
            _problem(scenario, "visit", "the cluster has no such type", nearest(name, types), name)
            for name in visit
            if name not in types
        ]
    if set(visit) & set(types):
        return []
    rule = f"no type of the cluster is ever used: Gavel visits {', '.join(visit)} alone"
    return [_problem(scenario, "visit", rule, "give visit = [], which is the cluster's order", ", ".join(types))]


def unused_types(mechanism: Mechanism, types: Sequence[str]) -> tuple[str, ...]:
    """Return a note about types of the cluster that Gavel's rounds never visit."""
    if not isinstance(mechanism, GavelRounds) or not mechanism.visit:
        return ()
    idle = [name for name in types if name not in mechanism.visit]
    return (f"mechanism.visit names no {', '.join(idle)}: no job ever runs there.",) if idle else ()


def _gavel_defaults(name: str, policy: Policy) -> dict[str, Any]:
    """Return the settings of the rounds that depend on the policy in Gavel."""
    spelled = name.partition("?")[0].removeprefix("gavel:")
    blind = name.startswith("gavel:") and "perf" not in spelled and "packed" not in spelled and spelled not in _AWARE
    return {
        "shuffled": blind,
        "pairs": "paired" in policy.info.needs,
        "fill": not policy.info.name.startswith("fifo"),
    }


def _unsupported_by_gavel(scenario: Scenario, policy: Policy) -> list[Problem]:
    """Return options that Gavel's rounds do not support: noisy throughputs, failures, overheads."""
    problems = []
    if policy.info.door == "grants":
        fix = "choose a policy that answers shares or an order"
        problems.append(_problem(scenario, "name", f"{policy.info.name} grants seats, which Gavel's rounds do", fix))
    unsupported = _unsupported(scenario) | {
        "[belief] is noisy": scenario.belief.kind != "oracle",
        "[physics] says something": scenario.physics != _OFF,
    }
    reason = "the mechanism gavel accounts rounds as Gavel's simulator does, which does not model that"
    return problems + _unsupported_problems(scenario, unsupported, reason)


def _unsupported(scenario: Scenario) -> dict[str, bool]:
    """Return whether the scenario has each option that only leases support: real jobs, overheads, failures."""
    world, costs = scenario.world, scenario.overheads
    return {
        "[world] backend is not simulated": world.backend != "simulated",
        "[overheads] are not 0": costs != type(costs)(),
        "[world] replay_status is true": world.replay_status,
        "[world] has failures": bool(world.job_failures_per_hour or world.node_failures_per_hour),
    }


def _unsupported_problems(scenario: Scenario, options: Mapping[str, bool], reason: str) -> list[Problem]:
    fix = "leave that out, or choose the mechanism leases"
    return [_problem(scenario, "name", f"{option}; {reason}", fix) for option, is_set in options.items() if is_set]


def _problem(scenario: Scenario, key: str, rule: str, fix: str, value: str | None = None) -> Problem:
    return scenario.problem(("mechanism", key) if key else ("mechanism",), rule, fix, value)
