"""How time is cut, from a scenario: as it says, else as the policy wants it; and who keeps that time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from eunomia.core.mechanisms.gavel.settings import DEFAULT_VISIT, GavelRounds
from eunomia.core.mechanisms.ideal.settings import Ideal
from eunomia.core.mechanisms.leases import Leases
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.nearest import nearest
from eunomia.model.policy import Policy, check_values
from eunomia.scenario import Scenario
from eunomia.scenario.places import shown
from eunomia.scenario.sections import Physics

Mechanism = Leases | GavelRounds | Ideal
NAMES = ("leases", "gavel", "ideal")
_OFF = Physics()
# Gavel asks whether a policy's own name holds "Perf" or "Packing"; these do, though their names here do not show it.
_AWARE = frozenset({"allox", "gandiva", "proportional", "max_min_fairness_strategy_proof"})


def mechanism_of(scenario: Scenario, policy: Policy, jobs: int) -> Mechanism:
    """Return how time is cut for this policy and so many jobs. Raises InvalidInput for what is not possible."""
    asked, own = scenario.mechanism, policy.info.mechanism
    if asked is not None and asked.name == "gavel":
        return _gavel(scenario, policy, asked.parameters, jobs)
    if asked is not None and asked.name == "ideal":
        return _ideal(scenario, policy, asked.parameters)
    if asked is not None and asked.name != "leases":
        mend = nearest(asked.name, NAMES)
        raise InvalidInput([_problem(scenario, "name", "there is no such mechanism", mend, asked.name)])
    try:
        if asked is None:
            return Leases(length=own.length_s, aligned=own.aligned, recall=own.recall)
        return Leases(length=asked.length_s, aligned=asked.aligned, recall=asked.recall, solve_gap=asked.solve_gap_s)
    except ValueError as error:
        raise InvalidInput([_problem(scenario, "", str(error), "mend [mechanism]")]) from error


def _gavel(scenario: Scenario, policy: Policy, said: Mapping[str, Any], jobs: int) -> GavelRounds:
    """Return Gavel's clock as this policy has it there, and as the scenario says otherwise."""
    known = [field.name for field in fields(GavelRounds) if field.name != "expected"]
    problems = [
        _problem(scenario, key, "the mechanism gavel has no such key", nearest(key, known))
        for key in said
        if key not in known
    ]
    problems += _impossible(scenario, policy)
    problems += _unvisited(scenario, said.get("visit", DEFAULT_VISIT))
    problems += _wrong_values(scenario, GavelRounds, {key: said[key] for key in said if key != "visit"}, known)
    if problems:
        raise InvalidInput(problems)
    parameters = _habits(scenario.policy.name, policy) | dict(said)
    if "visit" in parameters:
        parameters["visit"] = tuple(parameters["visit"])
    return GavelRounds(**parameters, expected=jobs)


def _wrong_values(
    scenario: Scenario, settings: type[Mechanism], said: Mapping[str, Any], known: Sequence[str]
) -> list[Problem]:
    """Return each key whose value these settings cannot have; none of their rules is about two keys at once."""
    problems = []
    for key in (key for key in said if key in known):
        try:
            check_values(settings, {key: said[key]})
            settings(**{key: said[key]})
        except ValueError as error:
            rule = str(error).removeprefix(f"{key} is {said[key]!r}; ")
            problems.append(_problem(scenario, key, rule, "give such a value, or leave it out", shown(said[key])))
    return problems


def _ideal(scenario: Scenario, policy: Policy, said: Mapping[str, Any]) -> Ideal:
    """Return the mechanism whose shares are received as they are answered."""
    known = [field.name for field in fields(Ideal)]
    problems = [
        _problem(scenario, key, "the mechanism ideal has no such key: it has neither leases nor rounds", "leave it out")
        for key in said
        if key not in known
    ]
    if policy.info.door != "shares":
        answered = "an order" if policy.info.door == "order" else "grants of seats"
        rule = f"{policy.info.name} answers {answered}, and only shares of time can be received as a fluid"
        problems.append(_problem(scenario, "name", rule, "choose a policy that answers shares, or another mechanism"))
    what_needs_seats = scenario.physics.model_copy(update={"pairs": _OFF.pairs, "believed": _OFF.believed})
    problems += _undone(
        scenario,
        _troubles(scenario) | {"[physics] says more than pairs": what_needs_seats != _OFF},
        "under the mechanism ideal nobody sits, so nothing is started, moved or lost with a machine",
    )
    problems += _wrong_values(scenario, Ideal, said, known)
    if problems:
        raise InvalidInput(problems)
    return Ideal(**said)


def _unvisited(scenario: Scenario, visit: Any) -> list[Problem]:
    """Return what is wrong with the order in which types are filled: one that is not named is never used."""
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
    """Return a note about types of the cluster that Gavel's clock never visits."""
    if not isinstance(mechanism, GavelRounds) or not mechanism.visit:
        return ()
    idle = [name for name in types if name not in mechanism.visit]
    return (f"mechanism.visit names no {', '.join(idle)}: nobody ever runs there.",) if idle else ()


def _habits(name: str, policy: Policy) -> dict[str, Any]:
    """Return what Gavel's clock does differently from policy to policy."""
    spelled = name.partition("?")[0].removeprefix("gavel:")
    blind = name.startswith("gavel:") and "perf" not in spelled and "packed" not in spelled and spelled not in _AWARE
    return {
        "shuffled": blind,
        "pairs": "paired" in policy.info.needs,
        "fill": not policy.info.name.startswith("fifo"),
    }


def _impossible(scenario: Scenario, policy: Policy) -> list[Problem]:
    """Return what Gavel's books have no page for: they hold true speeds, and rounds in which nothing goes wrong."""
    problems = []
    if policy.info.door == "grants":
        mend = "choose a policy that answers shares or an order"
        problems.append(_problem(scenario, "name", f"{policy.info.name} grants seats, which Gavel's rounds do", mend))
    wrong = _troubles(scenario) | {
        "[belief] is noisy": scenario.belief.kind != "oracle",
        "[physics] says something": scenario.physics != _OFF,
    }
    reason = "the mechanism gavel books rounds as Gavel's simulator does, which knows nothing of that"
    return problems + _undone(scenario, wrong, reason)


def _troubles(scenario: Scenario) -> dict[str, bool]:
    """Return what goes wrong, or costs time, in this scenario."""
    world, costs = scenario.world, scenario.overheads
    return {
        "[world] backend is not simulated": world.backend != "simulated",
        "[overheads] are not 0": costs != type(costs)(),
        "[world] replay_status is true": world.replay_status,
        "[world] has failures": bool(world.job_failures_per_hour or world.node_failures_per_hour),
    }


def _undone(scenario: Scenario, wrong: Mapping[str, bool], reason: str) -> list[Problem]:
    mend = "leave that out, or choose the mechanism leases"
    return [_problem(scenario, "name", f"{what}; {reason}", mend) for what, is_so in wrong.items() if is_so]


def _problem(scenario: Scenario, key: str, rule: str, mend: str, value: str | None = None) -> Problem:
    path = ("mechanism", key) if key else ("mechanism",)
    file, row = scenario.where(path)
    return Problem(file=file, row=row, column=".".join(path), value=value, rule=rule, mend=mend)
