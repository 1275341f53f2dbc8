"""The set-up of a site with another policy or more nodes, for what-if."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eunomia.inputs.problems import refused
from eunomia.mechanisms import DEFAULT
from eunomia.runs.scenario_variants import varied
from eunomia.scenario import scenario_from_dict
from eunomia.service.site import Site, policy_of
from eunomia.service.typed_speeds import TypedSpeeds
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig
from eunomia.setup.workload import Workload

MOST_NODES = 10_000  # added in one what-if


def changed_setup(site: Site, policy: str | None, more: Mapping[str, int]) -> RunConfig:
    """Return the set-up with another policy, if it is given, and so many nodes more of each type, behind the others.

    A new node is as large as the largest of its type. Raises InvalidInput for an unknown policy or type, and for a
    policy that the service cannot run.
    """
    scenario = site.setup.scenario
    data = scenario.as_dict()
    nodes: list[dict[str, Any]] = [dict(group) for group in data["cluster"]["nodes"]]
    for kind, count in more.items():
        sizes = [group["accelerators"] for group in nodes if group["type"] == kind]
        if not sizes or count > MOST_NODES:
            known = ", ".join(dict.fromkeys(group["type"] for group in nodes))
            rule = f"must be one of the cluster's types ({known}), with at most {MOST_NODES:,} nodes more"
            raise refused("what-if", "nodes", f"{kind}={count}", rule, "name another type, or fewer nodes")
        nodes.append({"type": kind, "count": count, "accelerators": max(sizes)})
    data["cluster"] = {**data["cluster"], "nodes": nodes}
    whole = varied(scenario_from_dict(data, scenario.base, "what-if"), policy=policy)
    setup = set_up(whole, Workload(jobs=(), notes=()), policy_of(whole, site.service))
    if setup.mechanism.name != DEFAULT:
        rule = f"the service cuts time with leases, not with {setup.mechanism.name}"
        raise refused("what-if", "policy", policy, rule, "name another policy: eunomia policies lists them")
    return replace(setup, believed=TypedSpeeds(setup.believed, site.service.accelerator_memory_gib))
