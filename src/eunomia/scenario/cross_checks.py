"""Checks of keys against each other: contradictions, and keys of the wrong table.

Every check reads the values as written, of any type, so that it works even when other keys are invalid.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

from eunomia.backends.registry import BACKENDS, BACKENDS_OF_PACKAGES, DEFAULT
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.tenant_names import EMPTY_PART, WHOLE_PATH, is_path
from eunomia.scenario.schema_models import MOST_ACCELERATORS, MechanismSection, PolicySection, Section, WorkloadSection
from eunomia.scenario.section_rules import (
    apps_findings,
    belief_findings,
    outage_findings,
    overheads_findings,
    physics_findings,
)
from eunomia.scenario.source_locations import Finding, KeyPath, dotted

TOO_LARGE = 2**63  # TOML's whole numbers have 64 bits
MISSPELT = 0.75  # likeness from which a key is taken for a misspelling: "laod" is 0.75 like "load"
NOT_MISSPELT = ("job_type",)  # a generator's parameter, though similar to a key of the scenario
TOP_LEVEL = ("seed", "check")  # keys outside tables, which users write below a [table] by mistake


def contradictions(data: dict[str, Any]) -> Iterator[Finding]:
    """Yield every finding in the scenario as written."""
    yield from _check_values(data, ())
    if isinstance(data.get("cluster"), dict):
        yield from _check_cluster(data["cluster"])
    if isinstance(data.get("workload"), dict):
        yield from _check_workload(data["workload"])
    yield from _check_mechanism(_table(data, "mechanism"))
    yield from _check_measure(_table(data, "measure"))
    yield from physics_findings(_table(data, "physics"), _table(data, "world").get("backend"))
    yield from overheads_findings(_table(data, "overheads"), _table(data, "world").get("backend"))
    yield from outage_findings(data)
    yield from apps_findings(_table(data, "apps"), _table(data, "world"), _table(data, "mechanism"))
    backend = _table(data, "world").get("backend", DEFAULT)
    if isinstance(backend, str) and ".py" not in backend:
        known = [*BACKENDS, *(point.name for point in entry_points(group=BACKENDS_OF_PACKAGES))]
        if backend not in known:
            yield Finding(("world", "backend"), backend, "there is no such backend", nearest(backend, known))
    for name in _table(data, "tenants"):
        if not is_path(name):
            yield Finding(("tenants", name), name, EMPTY_PART, WHOLE_PATH)
    yield from _check_spelling(_table(data, "policy"), "policy", PolicySection)
    yield from belief_findings(_table(data, "belief"), _table(data, "physics"), backend)


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _is_number(value: Any) -> bool:
    """Say whether a value is a number that other checks can compare."""
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < TOO_LARGE


def _check_values(value: Any, path: KeyPath) -> Iterator[Finding]:
    """Yield values that TOML can write and no key can have."""
    match value:
        case dict():
            for key, each in value.items():
                yield from _check_values(each, (*path, key))
        case list():
            for index, each in enumerate(value):
                yield from _check_values(each, (*path, index))
        case float() if math.isnan(value):
            yield Finding(path, value, "nan is not a number", f"give {dotted(path)} a number")
        case int() if abs(value) >= TOO_LARGE:
            yield Finding(path, value, "a whole number has at most 64 bits", "write a smaller number, or 1e30 for 10³⁰")
        case bool() | int() | float() | str():
            return
        case _:
            yield Finding(path, value, "no key is a date, a time or an object", "write a number or a quoted text")


def _check_cluster(cluster: dict[str, Any]) -> Iterator[Finding]:
    nodes, totals = cluster.get("nodes"), cluster.get("accelerators")
    yield from _exactly_one(cluster, "cluster", "nodes", "accelerators", "accelerators = { v100 = 8 }")
    if nodes is not None and "accelerators_per_node" in cluster:
        fix = "leave it out: each group of nodes says its accelerators"
        path = ("cluster", "accelerators_per_node")
        yield Finding(path, cluster["accelerators_per_node"], "belongs to the shorthand accelerators", fix)
    groups = [group for group in nodes if isinstance(group, dict)] if isinstance(nodes, list) else []
    named = totals if isinstance(totals, dict) else {}
    types = {str(group["type"]) for group in groups if "type" in group} | set(named)
    for name, price in _table(cluster, "prices").items():
        if types and name not in types:
            rule = "a price is for a type of this cluster"
            yield Finding(("cluster", "prices", name), price, rule, nearest(name, types))
    total = sum(_count(size) for size in named.values())
    total += sum(_count(group.get("count", 1)) * _count(group.get("accelerators")) for group in groups)
    if total > MOST_ACCELERATORS:
        rule = f"a cluster has at most {MOST_ACCELERATORS} accelerators, and this one has {total}"
        yield Finding(("cluster", "nodes" if groups else "accelerators"), total, rule, "describe fewer")


def _count(value: Any) -> int:
    """Return a valid count; 0 for an invalid one, which has its own finding."""
    return value if type(value) is int and 0 < value <= MOST_ACCELERATORS else 0


def _exactly_one(table: dict[str, Any], section: str, first: str, second: str, example: str) -> Iterator[Finding]:
    if first not in table and second not in table:
        rule = f"a {section} needs {first} or {second}"
        yield Finding((section, first), None, rule, f"add one of them to [{section}], such as {example}")
    if first in table and second in table:
        rule = f"a {section} has {first} or {second}, never both"
        yield Finding((section, second), table[second], rule, f"leave out {first} or {second}")


def _check_workload(workload: dict[str, Any]) -> Iterator[Finding]:
    yield from _exactly_one(workload, "workload", "trace", "generator", 'trace = "jobs.csv"')
    if "generator" in workload and "trace" not in workload and "resample" in workload:
        rule = "a generator draws its jobs by the seed already"
        yield Finding(("workload", "resample"), workload["resample"], rule, "leave out resample")
    if "generator" in workload and "trace" not in workload and "format" in workload:
        rule = "a format is for a trace, and a generator writes none"
        yield Finding(("workload", "format"), workload["format"], rule, "leave out format, or generator")
    start, end = workload.get("start_s", 0.0), workload.get("end_s", math.inf)
    if _is_number(start) and _is_number(end) and 0 < end <= start:
        rule = f"must be above start_s, which is {start:g}"
        yield Finding(("workload", "end_s"), end, rule, "give a later end, or leave it out for inf")
    yield from _check_spelling(workload, "workload", WorkloadSection)
    for key in TOP_LEVEL:
        if key in workload:
            fix = "it belongs at the top of the scenario, before the first [table]"
            yield Finding(("workload", key), workload[key], "is no key of [workload]", fix)


def _check_mechanism(mechanism: dict[str, Any]) -> Iterator[Finding]:
    name = mechanism.get("name", "leases")
    if name != "leases":
        if difflib.get_close_matches(str(name), ["leases"], cutoff=MISSPELT):
            yield Finding(("mechanism", "name"), name, "there is no such mechanism", nearest(str(name), ["leases"]))
        return
    for key in mechanism.keys() - MechanismSection.model_fields.keys():
        fix = nearest(key, MechanismSection.model_fields)
        yield Finding(("mechanism", key), mechanism[key], "is no key of the mechanism leases", fix)


def _check_measure(measure: dict[str, Any]) -> Iterator[Finding]:
    for first, last, may_equal in (("first_job", "last_job", True), ("from_s", "to_s", False)):
        begin, end = measure.get(first, 0), measure.get(last, math.inf)
        if _is_number(begin) and _is_number(end) and (0 <= end < begin or (end == begin > 0 and not may_equal)):
            rule = f"must be {'at least' if may_equal else 'above'} {first}, which is {begin:g}"
            yield Finding(("measure", last), end, rule, f"give a greater {last}, or leave it out for all that follow")


def _check_spelling(table: dict[str, Any], section: str, model: type[Section]) -> Iterator[Finding]:
    """Yield keys of an open table that nearly match one of its own: they would pass for a parameter."""
    missing = model.model_fields.keys() - table.keys()
    for key in table.keys() - model.model_fields.keys():
        if key not in NOT_MISSPELT and difflib.get_close_matches(key, missing, n=1, cutoff=MISSPELT):
            yield Finding((section, key), table[key], f"is no key of [{section}]", nearest(key, missing))
