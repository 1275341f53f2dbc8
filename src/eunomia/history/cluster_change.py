"""A changed scenario: accelerators added, accelerators removed, another policy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eunomia.inputs.problems import InvalidInput, refused
from eunomia.model.arrays import Bools
from eunomia.model.spelling_suggestions import nearest
from eunomia.runs.scenario_variants import varied
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia.scenario.schema_models import MOST_ACCELERATORS, whole_nodes
from eunomia.setup.stated_throughputs import resolved
from eunomia.throughputs import load
from eunomia.throughputs.catalogue import recognise
from eunomia.traces import Trace

PER_NODE = 8  # accelerators of a new machine, where the cluster has none of its type


@dataclass(frozen=True, kw_only=True)
class ClusterChange:
    """What is changed. Counts are of accelerators."""

    add: Mapping[str, int] = field(default_factory=dict)
    remove: Mapping[str, int] = field(default_factory=dict)
    policy: str | None = None

    def __str__(self) -> str:
        parts = [*(f"{n:,} {kind} more" for kind, n in self.add.items())]
        parts += [f"{n:,} {kind} fewer" for kind, n in self.remove.items()]
        parts += [f"the policy {self.policy}"] if self.policy else []
        return ", ".join(parts[:-1]) + " and " * (len(parts) > 1) + parts[-1] if parts else "no change"


def parse_counts(texts: Sequence[str], option: str) -> dict[str, int]:
    """Return the counts that `--add "h100=16"` gives; several are separated by commas. Raises InvalidInput."""
    counts: dict[str, int] = {}
    for text in texts:
        for item in text.split(","):
            name, _, number = (part.strip() for part in item.rpartition("="))
            if not name or not re.fullmatch(r"\d{1,9}", number) or not 0 < int(number) <= MOST_ACCELERATORS:
                rule = "must be TYPE=N, with N accelerators"
                raise refused("command line", option, text, rule, f'write for example {option} "h100=16"')
            counts[name] = counts.get(name, 0) + int(number)
    return counts


def known_type(scenario: Scenario, name: str) -> str:
    """Return the type as the scenario's throughputs spell it. Raises InvalidInput for one without throughputs."""
    found, section = recognise(name), scenario.throughputs
    guesses = [name, name.casefold(), found.name if found is not None else name]
    for guess in dict.fromkeys(guesses):
        try:
            load(section.source, [guess], base=scenario.base, missing=section.missing)
        except InvalidInput:
            continue
        return guess
    load(section.source, [name], base=scenario.base, missing=section.missing)  # raises, with the nearest name
    return name


def changed(scenario: Scenario, change: ClusterChange) -> Scenario:
    """Return the scenario with the change.

    New machines are of the size of those of their type, else of 8 accelerators. Raises InvalidInput for a type
    without throughputs, and for more removed than there are.
    """
    data = scenario.as_dict()
    nodes: list[dict[str, Any]] = [dict(group) for group in data["cluster"]["nodes"]]
    for name, count in change.add.items():
        kind = known_type(scenario, name)
        size = max((group["accelerators"] for group in nodes if group["type"] == kind), default=PER_NODE)
        nodes += [{"type": kind, "count": n, "accelerators": each} for n, each in whole_nodes(count, size)]
    for name, count in change.remove.items():
        nodes = _without(nodes, name, count)
    if not nodes:
        raise refused("command line", "--remove", None, "no accelerator would be left", "remove fewer")
    prices = {name: price for name, price in scenario.cluster.prices.items() if name in {n["type"] for n in nodes}}
    data["cluster"] = {"nodes": nodes, "prices": prices}
    whole = scenario_from_dict(data, scenario.base, scenario.name)
    return varied(whole, policy=change.policy)


def _without(nodes: Sequence[dict[str, Any]], name: str, count: int) -> list[dict[str, Any]]:
    """Return the groups without so many accelerators of a type: whole machines, the last ones first."""
    here = {group["type"] for group in nodes}
    kind = name if name in here else next((found.name for found in [recognise(name)] if found), name)
    total = sum(group["count"] * group["accelerators"] for group in nodes if group["type"] == kind)
    if count > total:
        fix = "remove fewer" if total else nearest(name, here)
        raise refused("command line", "--remove", f"{name}={count}", f"the cluster has {total:,} {name}", fix)
    left: list[dict[str, Any]] = []
    for group in reversed(nodes):
        if group["type"] != kind or not count:
            left.append(group)
            continue
        whole = min(group["count"], count // group["accelerators"])
        count -= whole * group["accelerators"]
        kept = group["count"] - whole
        if kept and count and count < group["accelerators"]:  # a part of one machine
            left.append({**group, "count": 1, "accelerators": group["accelerators"] - count})
            kept, count = kept - 1, 0
        if kept:
            left.append({**group, "count": kept})
    return left[::-1]


def can_run(scenario: Scenario, trace: Trace) -> Bools:
    """Return (job,): True where a job of the trace fits an accelerator type of the scenario's cluster."""
    types = scenario.cluster.types
    capacity = np.array(
        [sum(g.count * g.accelerators for g in scenario.cluster.nodes if g.type == kind) for kind in types]
    )
    if trace.job_type is None:
        return np.asarray(trace.scale_factor <= capacity.max())
    section = resolved(scenario, trace).throughputs
    speeds = load(section.source, types, base=scenario.base, capacity=capacity.tolist(), missing=section.missing)
    keys = list(zip(trace.job_type, trace.scale_factor.tolist(), strict=True))
    fits = {key: bool(((speeds.solo_throughput(*key) > 0) & (capacity >= key[1])).any()) for key in dict.fromkeys(keys)}
    return np.array([fits[key] for key in keys], dtype=np.bool_)
