"""Refuses parameters of a policy that name an accelerator type or an app that is not there.

Such a parameter would have no effect. What a preset sets is no such error: it has the published type where the cluster
has that type, and treats all types alike elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.policy import Named, Policy
from eunomia.model.spelling_suggestions import nearest
from eunomia.policies import POLICIES, build
from eunomia.policies.presets import PRESETS
from eunomia.setup.plugins import Where


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
