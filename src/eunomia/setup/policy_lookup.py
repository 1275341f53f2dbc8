"""Finds a policy by name: built in, from an installed package, or a class in a file.

Parameters that name an accelerator type or an app that is not there are refused, as they would have no effect. What a
preset sets is no such error: it has the published type where the cluster has that type, and treats all types alike
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eunomia.inputs.declared_fields import wrong_values
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.policy import Named, Policy, PolicyInfo
from eunomia.model.spelling_suggestions import nearest
from eunomia.policies import POLICIES, build
from eunomia.policies.presets import PRESETS
from eunomia.scenario.source_locations import refused_at
from eunomia.setup.plugins import PluginLoader, Where

if TYPE_CHECKING:
    from eunomia.scenario import Scenario

EASY = "easy"  # the value of `backfill` that reserves by run times


def no_place(path: tuple[str, ...]) -> tuple[str, int | None]:
    """Return the source location of a policy that no file names."""
    return "policy", None


def known_policies(*, presets: bool = True) -> list[str]:
    """Return the names of built-in policies and presets, then those that installed packages announce."""
    return list(dict.fromkeys([*POLICIES, *(PRESETS if presets else ()), *PLUGINS.announced()]))


def policy_class(name: str) -> Callable[..., Policy]:
    """Return the class of a policy. Raises InvalidInput for an unknown name."""
    return _class_of(PRESETS.get(name, (name,))[0], Path(), no_place)


def find_policy(name: str, parameters: Mapping[str, Any], base: Path, where: Where = no_place) -> Policy:
    """Return the policy with its parameters; they override those of a preset.

    Raises InvalidInput for an unknown name or parameter, or an invalid value.
    """
    name, preset = PRESETS.get(name, (name, {}))
    parameters = {**preset, **parameters}
    cls = _class_of(name, base, where)
    known: list[str] = [field.name for field in fields(cls)] if is_dataclass(cls) else []
    unknown = [parameter for parameter in parameters if parameter not in known]
    found = [
        (
            parameter,
            f"{name} has no such parameter",
            nearest(parameter, known) if known else f"{name} has no parameters",
        )
        for parameter in unknown
    ]
    wrong = wrong_values(cls, parameters) if isinstance(cls, type) else []
    found += [(one.name, one.said, one.fix or f"see eunomia policies {name}") for one in wrong]
    if found:
        raise InvalidInput([_problem(where, *each) for each in found])
    try:
        policy = cls(**parameters)
        _check_fallback(policy.info)
        return policy
    except (TypeError, ValueError) as error:
        place, fix = where(("policy", next(iter(parameters), "name"))), f"see eunomia policies {name}"
        raise refused_at(place, "policy", None, str(error), fix) from error


def _problem(where: Where, parameter: str, rule: str, fix: str) -> Problem:
    file, row = where(("policy", parameter))
    return Problem(file=file, row=row, column=f"policy.{parameter}", rule=rule, fix=fix)


def _check_fallback(info: PolicyInfo) -> None:
    """Raise ValueError for a fallback that cannot answer in the policy's place."""
    if not info.fallback:
        return
    other = build(info.fallback).info
    if other.answer_type != info.answer_type:
        rule = f"answers with {other.answer_type}, and {info.name} with {info.answer_type}"
    elif more := sorted(other.needs - info.needs):
        rule = f"needs {', '.join(more)}, which {info.name} does not"
    else:
        return
    raise ValueError(f"the fallback {info.fallback!r} of {info.name} {rule}; name another on its card")


def changed_parameters(policy: Policy) -> dict[str, Any]:
    """Return the parameters of a policy object that differ from their defaults, by name."""
    if not is_dataclass(policy):
        return {}
    return {one.name: value for one in fields(policy) if (value := getattr(policy, one.name)) != one.default}


def _class_of(name: str, base: Path, where: Where) -> Callable[..., Policy]:
    return PLUGINS.find(name, base, where, PRESETS)


def _is_policy(value: object) -> bool:
    fits = isinstance(getattr(value, "info", None), PolicyInfo) and callable(getattr(value, "decide", None))
    return isinstance(value, type) and fits


PLUGINS = PluginLoader(
    noun="policy",
    key=("policy", "name"),
    group="eunomia.policies",
    fits=_is_policy,
    fix="give a class with an `info: ClassVar[PolicyInfo]` and a method `decide`",
    built_in=POLICIES,
)


def knows_durations(policy: Policy, scenario: Scenario) -> bool:
    """Return whether a policy goes by the true durations of simulated jobs, which a real cluster does not know.

    EASY backfilling does: what it reserves begins when running jobs are believed to end.
    """
    reserves = getattr(policy, "backfill", "") == EASY
    return (policy.info.oracle or reserves) and scenario.belief.duration == "declared"


def check_names(name: str, policy: Policy, known: Mapping[Named, Collection[str]], where: Where) -> None:
    """Raise InvalidInput for each parameter that names what is not among the `known` ones of its kind.

    `name` is that under which the policy was asked for, a preset's too. A kind without a known name is not checked, as
    the apps of a service that has no job yet.
    """
    problems = list[Problem]()
    for path, kind, value in _names(name, policy):
        if known.get(kind) and value not in known[kind]:
            file, row = where(path)
            rule, fix = f"there is no {kind} of this name here", nearest(value, known[kind])
            problems.append(Problem(file=file, row=row, column=".".join(path), value=value, rule=rule, fix=fix))
    if problems:
        raise InvalidInput(problems)


def _names(name: str, policy: Policy) -> Iterator[tuple[tuple[str, ...], Named, str]]:
    """Yield the key, the kind and the value of each name that a policy, or one inside it, was given."""
    _, preset = PRESETS.get(name, (name, {}))
    for parameter, kind in policy.info.names.items():
        value = getattr(policy, parameter)
        if value and value != preset.get(parameter):
            yield ("policy", parameter), kind, value
    inner = str(getattr(policy, "inner", ""))
    inner_name = inner.partition("?")[0]
    if inner_name in POLICIES or inner_name in PRESETS:
        yield from ((("policy", "inner"), kind, value) for _, kind, value in _names(inner_name, build(inner)))
