"""Builds the mechanism of a scenario: the one that it names, or else the default of its policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np

from eunomia.core.mechanism import MechanismConfig
from eunomia.inputs.declared_fields import wrong_values
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.mechanisms import DEFAULT, MECHANISMS
from eunomia.mechanisms.leases import Leases
from eunomia.model.job import Job
from eunomia.model.job_table import job_array
from eunomia.model.policy import AnswerType, Policy
from eunomia.model.spelling_suggestions import nearest
from eunomia.policies.presets import PRESET_MECHANISMS
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import PhysicsSection
from eunomia.scenario.source_locations import shown

_OFF = PhysicsSection(placement="off")
_ANSWERS: dict[AnswerType, str] = {"shares": "shares of time", "order": "an order", "grants": "grants of seats"}


def mechanism_of(scenario: Scenario, policy: Policy, jobs: Sequence[Job], *, real_time: bool) -> MechanismConfig:
    """Return the mechanism for a policy and these jobs. Raises InvalidInput for a wrong or impossible one."""
    asked, own = scenario.mechanism, policy.info.mechanism
    if asked is not None and asked.name not in MECHANISMS:
        fix = nearest(asked.name, tuple(MECHANISMS))
        raise InvalidInput([_problem(scenario, "name", "there is no such mechanism", fix, asked.name)])
    try:
        if asked is not None and asked.name != DEFAULT:
            return _configured(scenario, policy, MECHANISMS.load(asked.name), asked.parameters, jobs, real_time)
        if asked is None:
            return Leases(length=own.length_s, aligned=own.aligned, recall=own.recall)
        return Leases(
            length=asked.length_s,
            aligned=asked.aligned,
            recall=asked.recall,
            solve_gap=asked.solve_gap_s,
            ask_every=math.inf if asked.ask_every_s is None else asked.ask_every_s,
        )
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput([_problem(scenario, "", str(error), "fix [mechanism]")]) from error


def notes_on_endless_shares(policy: Policy, mechanism: MechanismConfig) -> tuple[str, ...]:
    """Return a note where a policy shares time and leases have no end, so that few of its shares come about."""
    if policy.info.answer_type != "shares" or mechanism.divides_time or math.isfinite(mechanism.lease_s):
        return ()
    return (
        f"{policy.info.name} shares time, and its leases have no end: accelerators change hands only when a job ends "
        "(with recall, also when one comes), so jobs do not get their shares. Give [mechanism] length_s, such as 360, "
        "for rounds.",
    )


def _configured(
    scenario: Scenario,
    policy: Policy,
    config: type[MechanismConfig],
    given: Mapping[str, Any],
    jobs: Sequence[Job],
    real_time: bool,
) -> MechanismConfig:
    """Return a mechanism with the settings of the policy, of its preset and of the scenario; the later override."""
    known = [field.name for field in fields(cast(Any, config)) if field.name not in config.not_settable]
    problems = [
        _problem(scenario, key, f"the mechanism {config.name} has no such key{config.no_such_key}", nearest(key, known))
        for key in given
        if key not in known
    ]
    problems += _wrong_door(scenario, policy, config)
    problems += [
        _problem(scenario, "name", f"{text}; {config.because}", "leave that out, or choose the mechanism leases")
        for code, (text, is_set) in _features(scenario, jobs, real_time=real_time).items()
        if is_set and code in config.unsupported
    ]
    by_config = config.wrong(given, scenario.cluster.types)
    problems += [_problem(scenario, *found) for found in by_config]
    checked = {key: given[key] for key in given if key in known and key not in {key for key, *_ in by_config}}
    problems += _wrong_values(scenario, config, checked)
    if problems:
        raise InvalidInput(problems)
    preset = PRESET_MECHANISMS.get(scenario.policy.name.partition("?")[0], {}).get(config.name, {})
    return config.of({**config.for_policy(policy.info), **preset, **given}, len(jobs))


def _wrong_door(scenario: Scenario, policy: Policy, config: type[MechanismConfig]) -> list[Problem]:
    """Return a problem if the mechanism does not take what the policy answers."""
    if policy.info.answer_type in config.answers:
        return []
    taken = " or ".join(text for kind, text in _ANSWERS.items() if kind in config.answers)
    rule = (
        f"{policy.info.name} answers {_ANSWERS[policy.info.answer_type]}, and the mechanism {config.name} takes {taken}"
    )
    return [_problem(scenario, "name", rule, f"choose a policy that answers {taken}, or another mechanism")]


def _wrong_values(scenario: Scenario, config: type[MechanismConfig], given: Mapping[str, Any]) -> list[Problem]:
    """Return a problem for each key whose value is invalid; no rule concerns two keys at once."""
    return [
        _problem(
            scenario, one.name, f"it is {one.rule}", one.fix or "give such a value, or leave it out", shown(one.value)
        )
        for one in wrong_values(config, given)
    ]


def _features(scenario: Scenario, jobs: Sequence[Job], *, real_time: bool) -> dict[str, tuple[str, bool]]:
    """Return, by the code in `MechanismConfig.unsupported`, a text and whether the scenario has the feature."""
    world, costs = scenario.world, scenario.overheads
    with_seats = scenario.physics.model_copy(update={"pairs": _OFF.pairs, "believed": _OFF.believed})
    return {
        "backend": ("[world] backend is not simulated", real_time),
        "overheads": ("[overheads] says something", costs != type(costs)()),
        "status": ("[world] replay_status is true", world.replay_status),
        "failures": ("[world] has failures", bool(world.job_failures_per_hour or world.node_failures_per_hour)),
        "noise": ("[belief] is not the truth", scenario.belief != type(scenario.belief)()),
        "measuring": ('[belief] kind is "measured"', scenario.belief.kind == "measured"),
        "physics": ("[physics] says something", scenario.physics != _OFF),
        "uninterruptible": ("jobs cannot be interrupted", not job_array(jobs, "interruptible", np.bool_).all()),
        "seats": ("[physics] says more than pairs", with_seats != _OFF),
    }


def _problem(scenario: Scenario, key: str, rule: str, fix: str, value: str | None = None) -> Problem:
    return scenario.problem(("mechanism", key) if key else ("mechanism",), rule, fix, value)
