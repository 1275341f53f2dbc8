"""What a workload of apps must be for a run: one owner for each app, and speeds for the models of made-up searches."""

from __future__ import annotations

from collections.abc import Iterable

from eunomia.inputs.problems import InvalidInput, Problem, Problems
from eunomia.scenario import Scenario
from eunomia.throughputs import Throughputs
from eunomia.traces import Trace

_TOLD = 5  # names in a message


def refuse_shared_apps(trace: Trace) -> None:
    """Raise InvalidInput for every app whose jobs belong to several tenants: it is one user's, and judged as one."""
    owners: dict[str, dict[str, int]] = {}  # app → tenant → its first job there
    for m, (app, tenant) in enumerate(zip(trace.app, trace.tenant, strict=True)):
        if app and tenant:
            owners.setdefault(app, {}).setdefault(tenant, m)
    problems = Problems(trace.source)
    for app, first in owners.items():
        if len(first) > 1:
            problems.add(
                f"its jobs belong to several tenants ({_listed(first)}), and an app is one user's",
                "give the jobs of each tenant an app of their own, or all of them one tenant",
                row=int(trace.row[list(first.values())[1]]),
                column="app",
                value=app,
            )
    problems.raise_if_any()


def demand_speeds_of_searches(scenario: Scenario, job_type: Iterable[str], speeds: Throughputs) -> None:
    """Raise InvalidInput where the generator `searches` names models that the throughputs do not know."""
    if scenario.workload.generator != "searches" or not speeds.job_types:
        return
    lacking = sorted(set(job_type) - set(speeds.job_types))
    if not lacking:
        return
    file, row = scenario.where(("throughputs", "source"))
    rule = f"the generator searches draws models that it has no throughputs for ({_listed(lacking)})"
    fix = 'write [throughputs] source = "linear", which every model can use, or name a table that has them'
    value = scenario.throughputs.source
    raise InvalidInput([Problem(file=file, row=row, column="throughputs.source", value=value, rule=rule, fix=fix)])


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _TOLD} more" if len(known) > _TOLD else ""
    return ", ".join(known[:_TOLD]) + more
