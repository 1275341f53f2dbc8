"""Settings of jobs and tenants that only some policies go by, and what is said where the policy is another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eunomia.model.policy import PolicyInfo
from eunomia.scenario import Scenario

# Each setting, with its default and the policies that a message names.
DEFAULTS: Mapping[str, object] = {
    "weight": 1.0, "deadline_s": None,
    "tenants.weight": 1.0, "tenants.quota": None, "tenants.may_borrow": True, "tenants.inner": "fairness",
}  # fmt: skip
GOING_BY: Mapping[str, tuple[str, ...]] = {
    "weight": ("max_min_fairness", "by_weight", "lottery"),
    "deadline_s": ("edf", "least_slack", "min_cost"),
    "tenants.weight": ("slurm_fair_share", "drf", "hierarchical"),
    "tenants.quota": ("quotas", "kueue_fair_share", "philly"),
    "tenants.may_borrow": ("quotas", "kueue_fair_share", "philly"),
    "tenants.inner": ("hierarchical",),
}


# These say something of a job or a tenant whatever the policy is, now or later: they are taken, and the answer says
# what they do not do. The others only tell a policy what to do, and are refused.
TAKEN = ("weight", "deadline_s", "tenants.weight")


def refused(info: PolicyInfo, given: Mapping[str, object]) -> list[str]:
    """Return the settings of these that have no effect, so that they are refused."""
    return [name for name in without_effect(info, given) if name not in TAKEN]


def noted(info: PolicyInfo, given: Mapping[str, object]) -> list[str]:
    """Return a note on each of these settings that is taken and changes no decision."""
    found = [name for name in without_effect(info, given) if name in TAKEN]
    return [f"{name} changes no decision: {'; '.join(described(info, name))}" for name in found]


def without_effect(info: PolicyInfo, given: Mapping[str, object]) -> list[str]:
    """Return the settings that are given, are not the default, and that the policy does not go by."""
    return [
        name
        for name, value in given.items()
        if name in DEFAULTS and value is not None and value != DEFAULTS[name] and not info.knows(name)
    ]


def described(info: PolicyInfo, setting: str) -> tuple[str, str]:
    """Return the rule that such a setting breaks, and how to fix it."""
    return (
        f"{info.name} does not go by it",
        f"leave it out, or choose a policy that does, such as {', '.join(GOING_BY[setting])}",
    )


def of_tenant(data: Mapping[str, object]) -> dict[str, object]:
    """Return what is given of a tenant by the names of the settings."""
    return {f"tenants.{key}": value for key, value in data.items()}


def notes_on_tenants(scenario: Scenario, info: PolicyInfo, owners: Iterable[str]) -> Iterable[str]:
    """Yield notes on what a scenario says of its tenants, and the policy does not go by.

    `owners` are those of jobs; of tenants that own none, others speak, unless there are no jobs yet.
    """
    found: dict[str, list[str]] = {}
    paths = [f"{owner}/" for owner in owners]
    for tenant, section in scenario.tenants.items():
        if paths and not any(path.startswith(f"{tenant}/") for path in paths):
            continue
        given = {key: getattr(section, key) for key in section.model_fields_set}
        for setting in without_effect(info, of_tenant(given)):
            found.setdefault(setting, []).append(tenant)
    for setting, tenants in found.items():
        rule, fix = described(info, setting)
        yield f"{setting} of {', '.join(tenants[:3])} changes no decision: {rule}; {fix}."
