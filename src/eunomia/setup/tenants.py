"""Who owns the jobs, with which weights and quotas: what a trace leaves open, and what a scenario says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eunomia.inputs.field_rules import WEIGHT, Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.problems import InvalidInput, Problem, Problems
from eunomia.model.arrays import Bools
from eunomia.model.job import Job
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.tenants import EMPTY_PART, NO_TENANT, WHOLE_PATH, Tenant, Tenants, is_path
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import TenantSection as Said
from eunomia.traces import Trace

_QUOTA = Rule(what="a number of accelerators, at least 0", least=0.0, fix="write it, or leave it empty", empty=math.nan)
_SPREAD = 4  # number of the seed's stream
_TOLD = 5  # names in a note
# Philly's virtual clusters by the first six digits of their names: weights of Ye et al., "ASTRAEA", TPDS 2022, in the
# configuration of its public artifact. They are relative: a quota is a part of whatever cluster is simulated.
PHILLY = {
    "6214e9": 2690.0, "7f04ca": 2568.0, "11cb48": 2666.0, "b436b2": 2600.0, "ee9e8c": 2690.0, "e13805": 2558.0,
    "6c71a0": 2670.0, "2869ce": 2558.0, "ed69ec": 1926.0, "103959": 1804.0, "0e4a51": 2578.0, "51b7ef": 544.0,
    "23dbec": 88.0, "925e2b": 80.0, "795a4c": 36.0,
}  # fmt: skip


def refuse_strange_paths(trace: Trace) -> None:
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
    """Return the trace with an owner for every job, and what was done about those that named none.

    Nothing is done where no job names one. An app is one user's: where one of its jobs names a tenant all belong to it,
    and where none does all get the same. `missing` is drop, own, spread or spread(seed).
    """
    if not any(trace.tenant) or all(trace.tenant):
        return trace, ()
    trace, notes = _as_their_apps(trace)
    nameless = np.array([not name for name in trace.tenant], dtype=bool)
    count = int(nameless.sum())
    if count == 0:
        return trace, notes
    if missing == "own":
        return trace, (*notes, f"{count:,} jobs name no tenant and belong to nobody ({NO_TENANT}).")
    if missing == "drop":
        return trace.take(np.flatnonzero(~nameless)), (*notes, f"{count:,} jobs name no tenant and are left out.")
    drawn = int(missing.removeprefix("spread(").removesuffix(")")) if "(" in missing else seed
    trace, note = _spread(trace, nameless, drawn)
    return trace, (*notes, note)


def _as_their_apps(trace: Trace) -> tuple[Trace, tuple[str, ...]]:
    """Give jobs that name no tenant the one that other jobs of their app name."""
    of_app = {app: name for app, name in zip(trace.app, trace.tenant, strict=True) if app and name}
    tenant = [name or of_app.get(app, "") for app, name in zip(trace.app, trace.tenant, strict=True)]
    count = sum(new != old for new, old in zip(tenant, trace.tenant, strict=True))
    if count == 0:
        return trace, ()
    return replace(trace, tenant=tuple(tenant)), (f"{count:,} jobs name no tenant; others of their apps do.",)


def _spread(trace: Trace, nameless: Bools, seed: int) -> tuple[Trace, str]:
    """Draw a tenant for every app and every job outside of apps that has none; return a note of it too."""
    tenant = np.array(trace.tenant, dtype=object)
    names, jobs = np.unique(tenant[~nameless].astype(str), return_counts=True)
    rows = np.flatnonzero(nameless).tolist()
    draw: dict[tuple[str, int], int] = {}  # of each app, and of each job outside of apps, which draw is its own
    mine = [draw.setdefault((trace.app[m], -1 if trace.app[m] else m), len(draw)) for m in rows]
    rng = np.random.default_rng((seed, _SPREAD))
    tenant[rows] = rng.choice(names, len(draw), p=jobs / jobs.sum())[mine]
    whole = len({trace.app[m] for m in rows} - {""})
    apps = f", {whole:,} app{'s' if whole > 1 else ''} whole" if whole else ""
    note = f"{len(rows):,} jobs name no tenant; they were spread over {len(names)} in proportion to their jobs{apps},"
    return replace(trace, tenant=tuple(map(str, tenant.tolist()))), f"{note} seed {seed}."


def without_jobs(scenario: Scenario, trace: Trace) -> tuple[str, ...]:
    """Return notes about tenants that the scenario names, and that own no job, nor does one below them."""
    owners = {f"{name or NO_TENANT}/" for name in trace.tenant}
    idle = [name for name in scenario.tenants if not any(owner.startswith(f"{name}/") for owner in owners)]
    more = f" and {len(idle) - _TOLD} more" if len(idle) > _TOLD else ""
    notes = [f"[tenants] names who owns no job of the workload: {', '.join(idle[:_TOLD])}{more}."] if idle else []
    if scenario.workload.tenant_weights is not None and not any(trace.tenant):
        name = scenario.workload.tenant_weights
        notes.append(f"The workload names no tenants, so the weights of tenant_weights = {name!r} count for nobody.")
    return tuple(notes)


def tenants_of(scenario: Scenario, jobs: Sequence[Job], capacity: float) -> dict[str, Tenant]:
    """Return what is known of every tenant, those of the jobs included.

    Raises InvalidInput for an owner without a weight where the scenario names a list of them, and for quotas that
    exceed what there is to give.
    """
    owners = dict.fromkeys(job.tenant for job in jobs)
    listed = _listed(scenario, owners)
    known = listed | {name: _said_over(listed.get(name, Tenant()), said) for name, said in scenario.tenants.items()}
    tenants = known | {name: Tenant() for name in owners if name and name not in known}
    _refuse_too_much(scenario, tenants, capacity)
    return tenants


def _said_over(listed: Tenant, said: Said) -> Tenant:
    """Return a tenant as listed, but for what the scenario says of it."""
    field = {"weight": "weight", "inner": "inner", "quota": "quota", "may_borrow": "borrows"}
    over = {field[key]: getattr(said, key) for key in field if key in said.model_fields_set}
    return replace(listed, **{key: value for key, value in over.items() if value is not None})


def _listed(scenario: Scenario, owners: Iterable[str]) -> dict[str, Tenant]:
    """Return the tenants of the list that `tenant_weights` names, by the names that the jobs know them by."""
    name = scenario.workload.tenant_weights
    if name is None:
        return {}
    table = {prefix: Tenant(weight) for prefix, weight in PHILLY.items()} if name == "philly" else _read(scenario, name)
    short = name == "philly"
    found = {owner: table[key] for owner in owners if (key := owner[:6] if short else owner) in table}
    lacking = [owner for owner in owners if owner and owner not in found and owner not in scenario.tenants]
    file, row = scenario.where(("workload", "tenant_weights"))
    problems = [
        Problem(
            file=file,
            row=row,
            column="workload.tenant_weights",
            value=owner,
            rule=f"a tenant of the workload has no weight in {name}",
            fix=f'add it there, or write [tenants] "{owner}" = {{ weight = 1 }}; {nearest(owner, list(table))}',
        )
        for owner in lacking
    ]
    if problems:
        raise InvalidInput(problems)
    return found if short else {**table, **found}


def _read(scenario: Scenario, name: str) -> dict[str, Tenant]:
    """Return the tenants of a table. Raises InvalidInput with all that is wrong with it."""
    sheet = read_table(scenario.resolve(name))
    sheet.expect(["tenant", "weight"], ["quota"], "a list of weights must hold at least one tenant")
    names = sheet.unique("tenant", "keep one of the two rows")
    weight, quota = sheet.number("weight", WEIGHT), sheet.number("quota", _QUOTA)
    sheet.raise_if_any()
    return {
        owner: Tenant(share, quota=own)
        for owner, share, own in zip(names, weight.tolist(), quota.tolist(), strict=True)
    }


def _refuse_too_much(scenario: Scenario, tenants: Mapping[str, Tenant], capacity: float) -> None:
    tree = Tenants.of((), tenants)
    quota, problems = tree.quota(capacity), []
    for parent in (-1, *range(len(tree.names))):
        mine = np.flatnonzero((tree.parent == parent) & ~np.isnan(tree.said_quota)).tolist()
        whole = capacity if parent < 0 else float(quota[parent])
        said = float(sum(tree.said_quota[mine]))
        if said > whole:
            names, last = [tree.names[row] for row in mine], tree.names[mine[-1]]
            listed = last not in scenario.tenants
            file, row = scenario.where(("workload", "tenant_weights") if listed else ("tenants", last, "quota"))
            problems.append(
                Problem(
                    file=file,
                    row=row,
                    column="workload.tenant_weights" if listed else f"tenants.{last}.quota",
                    value=str(scenario.workload.tenant_weights) if listed else f"{tree.said_quota[mine[-1]]:g}",
                    rule=f"the quotas of {', '.join(names)} add up to {said:g} accelerators, and "
                    f"{'the cluster' if parent < 0 else tree.names[parent]} has {whole:g}",
                    fix="lower one of them, or leave it out and give it a weight",
                )
            )
    if problems:
        raise InvalidInput(problems)
