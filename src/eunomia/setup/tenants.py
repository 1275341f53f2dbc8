"""Tenants of a run: owners of jobs without one, weights and quotas from a scenario or a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eunomia.inputs.field_rules import WEIGHT, Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.problems import InvalidInput, Problems
from eunomia.model.arrays import Bools
from eunomia.model.job import Job
from eunomia.model.job_table import job_values
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.tenant_names import EMPTY_PART, WHOLE_PATH, is_path
from eunomia.model.tenants import NO_TENANT, Tenant, Tenants
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import TenantSection
from eunomia.traces import Trace

_QUOTA = Rule(what="a number of accelerators, at least 0", least=0.0, fix="write it, or leave it empty", empty=math.nan)
_SPREAD_STREAM = 4  # of the seed
SHOWN_NAMES = 5  # in a message
# Philly's virtual clusters by the first six digits of their names: weights of Ye et al., "ASTRAEA", TPDS 2022, in the
# configuration of its public artifact. They are relative: a quota is a part of whatever cluster is simulated.
PHILLY = {
    "6214e9": 2690.0, "7f04ca": 2568.0, "11cb48": 2666.0, "b436b2": 2600.0, "ee9e8c": 2690.0, "e13805": 2558.0,
    "6c71a0": 2670.0, "2869ce": 2558.0, "ed69ec": 1926.0, "103959": 1804.0, "0e4a51": 2578.0, "51b7ef": 544.0,
    "23dbec": 88.0, "925e2b": 80.0, "795a4c": 36.0,
}  # fmt: skip


def check_tenant_paths(trace: Trace) -> None:
    """Raise InvalidInput for every tenant whose name is a path with an empty part."""
    problems = Problems(trace.source)
    first: dict[str, int] = {}
    for m, name in enumerate(trace.tenant):
        first.setdefault(name, m)
    for name, m in first.items():
        if name and not is_path(name):
            problems.add(EMPTY_PART, WHOLE_PATH, row=int(trace.row[m]), column="tenant", value=name)
    problems.raise_if_any()


def owned(trace: Trace, missing: str, seed: int) -> tuple[Trace, tuple[str, ...]]:
    """Return the trace with a tenant for every job, and notes about the jobs that named none.

    A trace without any tenant is unchanged. All jobs of an app get one tenant: the one that some of its jobs name, or
    else one for all of them. `missing` is drop, own, spread or spread(seed).
    """
    if not any(trace.tenant) or all(trace.tenant):
        return trace, ()
    trace, notes = _tenants_from_apps(trace)
    nameless = np.array([not name for name in trace.tenant], dtype=bool)
    count = int(nameless.sum())
    if count == 0:
        return trace, notes
    if missing == "own":
        return trace, (*notes, f"{count:,} jobs name no tenant and belong to {NO_TENANT}.")
    if missing == "drop":
        return trace.take(np.flatnonzero(~nameless)), (*notes, f"{count:,} jobs name no tenant and are left out.")
    spread_seed = int(missing.removeprefix("spread(").removesuffix(")")) if "(" in missing else seed
    trace, note = _spread(trace, nameless, spread_seed)
    return trace, (*notes, note)


def _tenants_from_apps(trace: Trace) -> tuple[Trace, tuple[str, ...]]:
    """Assign jobs without a tenant to the tenant that other jobs of their app name; return a note."""
    of_app = {app: name for app, name in zip(trace.app, trace.tenant, strict=True) if app and name}
    tenant = [name or of_app.get(app, "") for app, name in zip(trace.app, trace.tenant, strict=True)]
    count = sum(new != old for new, old in zip(tenant, trace.tenant, strict=True))
    if count == 0:
        return trace, ()
    return replace(trace, tenant=tuple(tenant)), (f"{count:,} jobs name no tenant; others of their apps do.",)


def _spread(trace: Trace, nameless: Bools, seed: int) -> tuple[Trace, str]:
    """Draw a tenant for every app without one and every job without app and tenant; return a note."""
    tenant = np.array(trace.tenant, dtype=object)
    names, jobs = np.unique(tenant[~nameless].astype(str), return_counts=True)
    rows = np.flatnonzero(nameless).tolist()
    draw: dict[tuple[str, int], int] = {}  # (app, -1) or ("", row) → number of the draw
    draw_of_row = [draw.setdefault((trace.app[m], -1 if trace.app[m] else m), len(draw)) for m in rows]
    rng = np.random.default_rng((seed, _SPREAD_STREAM))
    tenant[rows] = rng.choice(names, len(draw), p=jobs / jobs.sum())[draw_of_row]
    whole = len({trace.app[m] for m in rows} - {""})
    apps = f", {whole:,} app{'s' if whole > 1 else ''} whole" if whole else ""
    note = f"{len(rows):,} jobs name no tenant; they were spread over {len(names)} in proportion to their jobs{apps},"
    return replace(trace, tenant=tuple(map(str, tenant.tolist()))), f"{note} seed {seed}."


def notes_on_idle_tenants(scenario: Scenario, trace: Trace) -> tuple[str, ...]:
    """Return notes about tenants of the scenario that own no job, directly or through nested tenants."""
    owners = {f"{name or NO_TENANT}/" for name in trace.tenant}
    idle = [name for name in scenario.tenants if not any(owner.startswith(f"{name}/") for owner in owners)]
    notes = [f"[tenants] names tenants that own no job of the workload: {list_names(idle)}."] if idle else []
    if scenario.workload.tenant_weights is not None and not any(trace.tenant):
        name = scenario.workload.tenant_weights
        notes.append(f"The workload names no tenants, so the weights of tenant_weights = {name!r} have no effect.")
    return tuple(notes)


def list_names(names: Iterable[str]) -> str:
    """Return the first names and the count of the others, for a message."""
    all_names = list(names)
    more = f" and {len(all_names) - SHOWN_NAMES} more" if len(all_names) > SHOWN_NAMES else ""
    return ", ".join(all_names[:SHOWN_NAMES]) + more


def tenants_of(scenario: Scenario, jobs: Sequence[Job], capacity: float) -> dict[str, Tenant]:
    """Return weight and quota of every tenant of the jobs and of the scenario, by name.

    Raises InvalidInput for an owner that the scenario's table of weights lacks, and for quotas that exceed the capacity
    of the parent tenant or of the cluster.
    """
    owners = dict.fromkeys(job_values(jobs, "tenant"))
    listed = _listed(scenario, owners)
    known = listed | {name: _override(listed.get(name, Tenant()), own) for name, own in scenario.tenants.items()}
    tenants = known | {name: Tenant() for name in owners if name and name not in known}
    _check_quotas(scenario, tenants, capacity)
    return tenants


def _override(listed: Tenant, section: TenantSection) -> Tenant:
    """Return a listed tenant with the values that the scenario sets."""
    field = {"weight": "weight", "inner": "inner", "quota": "quota", "may_borrow": "borrows"}
    values = {field[key]: getattr(section, key) for key in field if key in section.model_fields_set}
    return replace(listed, **{key: value for key, value in values.items() if value is not None})


def _listed(scenario: Scenario, owners: Iterable[str]) -> dict[str, Tenant]:
    """Return the tenants of the table that `tenant_weights` names, by their names in the jobs."""
    name = scenario.workload.tenant_weights
    if name is None:
        return {}
    table = {prefix: Tenant(weight) for prefix, weight in PHILLY.items()} if name == "philly" else _read(scenario, name)
    short = name == "philly"
    matched = {owner: table[key] for owner in owners if (key := owner[:6] if short else owner) in table}
    lacking = [owner for owner in owners if owner and owner not in matched and owner not in scenario.tenants]
    path = ("workload", "tenant_weights")
    problems = [
        scenario.problem(
            path,
            f"a tenant of the workload has no weight in {name}",
            f'add it there, or write [tenants] "{owner}" = {{ weight = 1 }}; {nearest(owner, list(table))}',
            owner,
        )
        for owner in lacking
    ]
    if problems:
        raise InvalidInput(problems)
    return matched if short else {**table, **matched}


def _read(scenario: Scenario, name: str) -> dict[str, Tenant]:
    """Return the tenants of a table, by name. Raises InvalidInput with everything that is wrong with it."""
    sheet = read_table(scenario.resolve(name))
    sheet.expect(["tenant", "weight"], ["quota"], "a list of weights must hold at least one tenant")
    names = sheet.unique("tenant", "keep one of the two rows")
    weight, quota = sheet.number("weight", WEIGHT), sheet.number("quota", _QUOTA)
    sheet.raise_if_any()
    return {
        owner: Tenant(share, quota=own)
        for owner, share, own in zip(names, weight.tolist(), quota.tolist(), strict=True)
    }


def _check_quotas(scenario: Scenario, tenants: Mapping[str, Tenant], capacity: float) -> None:
    """Raise InvalidInput for tenants whose quotas add up to more than their parent, or the cluster, has."""
    tree = Tenants.of((), tenants)
    quota, problems = tree.quota(capacity), []
    for parent in (-1, *range(len(tree.names))):
        children = np.flatnonzero((tree.parent == parent) & ~np.isnan(tree.said_quota)).tolist()
        available = capacity if parent < 0 else float(quota[parent])
        total = float(sum(tree.said_quota[children]))
        if total > available:
            names, last = [tree.names[row] for row in children], tree.names[children[-1]]
            listed = last not in scenario.tenants
            owner = "the cluster" if parent < 0 else tree.names[parent]
            rule = f"the quotas of {', '.join(names)} add up to {total:g} accelerators, and {owner} has {available:g}"
            fix = "lower one of them, or leave it out and give it a weight"
            value = scenario.workload.tenant_weights if listed else f"{tree.said_quota[children[-1]]:g}"
            path = ("workload", "tenant_weights") if listed else ("tenants", last, "quota")
            problems.append(scenario.problem(path, rule, fix, value))
    if problems:
        raise InvalidInput(problems)
