"""The registry of policies by name; a policy is loaded when it is used."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

from eunomia.inputs.declared_fields import check_values
from eunomia.model.policy import Policy
from eunomia.model.registry import Registry
from eunomia.model.spelling_suggestions import nearest
from eunomia.policies.presets import PRESETS

POLICIES: Registry[type[Policy]] = Registry(
    {
        "fifo": "eunomia.policies.order.fifo:Fifo",
        "srtf": "eunomia.policies.order.srtf:Srtf",
        "las": "eunomia.policies.order.las:Las",
        "smallest_first": "eunomia.policies.order.smallest_first:SmallestFirst",
        "tiresias": "eunomia.policies.order.tiresias:Tiresias",
        "optimus": "eunomia.policies.order.optimus:Optimus",
        "slaq": "eunomia.policies.order.slaq:Slaq",
        "metis": "eunomia.learning.metis.policy:Metis",
        "learned_order": "eunomia.learning.order.policy:LearnedOrder",
        "allox": "eunomia.policies.order.allox:Allox",
        "by_weight": "eunomia.policies.order.by_weight:ByWeight",
        "edf": "eunomia.policies.order.edf:Edf",
        "least_slack": "eunomia.policies.order.least_slack:LeastSlack",
        "slurm_fair_share": "eunomia.policies.order.slurm_fair_share:SlurmFairShare",
        "drf": "eunomia.policies.order.drf:Drf",
        "drf_divisible": "eunomia.policies.shares.drf_divisible:DrfDivisible",
        "kueue_fair_share": "eunomia.policies.order.kueue_fair_share:KueueFairShare",
        "stride": "eunomia.policies.shares.stride:Stride",
        "lottery": "eunomia.policies.order.lottery:Lottery",
        "gandiva_fair": "eunomia.policies.shares.gandiva_fair:GandivaFair",
        "quotas": "eunomia.policies.wrappers.quota:Quotas",
        "shrinking": "eunomia.policies.wrappers.shrinking:Shrinking",
        "max_min_fairness": "eunomia.policies.shares.max_min_fairness:MaxMinFairness",
        "water_filling": "eunomia.policies.shares.water_filling:WaterFilling",
        "hierarchical": "eunomia.policies.wrappers.hierarchical:Hierarchical",
        "finish_time_fairness": "eunomia.policies.shares.finish_time_fairness:FinishTimeFairness",
        "makespan": "eunomia.policies.shares.makespan:Makespan",
        "max_throughput": "eunomia.policies.shares.max_throughput:MaxThroughput",
        "throughput_per_cost": "eunomia.policies.shares.throughput_per_cost:ThroughputPerCost",
        "min_cost": "eunomia.policies.shares.min_cost:MinCost",
        "proportional_fairness": "eunomia.policies.shares.proportional_fairness:ProportionalFairness",
        "strategy_proof": "eunomia.policies.shares.strategy_proof:StrategyProof",
        "isolated": "eunomia.policies.shares.isolated:Isolated",
        "proportional": "eunomia.policies.shares.proportional:Proportional",
        "carbyne": "eunomia.policies.shares.carbyne:Carbyne",
        "fifo_packed": "eunomia.policies.shares.fifo_packed:FifoPacked",
        "gandiva": "eunomia.policies.shares.gandiva:Gandiva",
        "learned_pairs": "eunomia.learning.pairs.policy:LearnedPairs",
        "pop": "eunomia.policies.wrappers.pop:Pop",
        "locality": "eunomia.policies.grants.locality:Locality",
        "consolidated": "eunomia.policies.grants.consolidated:Consolidated",
        "philly": "eunomia.policies.grants.philly:Philly",
        "quincy": "eunomia.policies.grants.quincy.quincy:Quincy",
        "gandiva_original": "eunomia.policies.grants.gandiva.gandiva:GandivaOriginal",
        "themis": "eunomia.policies.grants.themis.themis:Themis",
        "astraea": "eunomia.policies.grants.astraea.astraea:Astraea",
        "harmony": "eunomia.learning.harmony.policy:Harmony",
    }
)
load = POLICIES.load


def build(spelling: str) -> Policy:
    """Return a registered policy, such as `max_throughput?normalised=false`. Raises ValueError for a wrong spelling."""
    name, _, rest = spelling.partition("?")
    policy, parameters = PRESETS.get(name, (name, {}))
    if policy not in POLICIES:
        raise ValueError(f"there is no policy {name!r}; there are {', '.join([*POLICIES, *PRESETS])}")
    pairs = dict(part.partition("=")[::2] for part in rest.split("&") if part)
    values = {**parameters, **{key: _parse_value(text) for key, text in pairs.items()}}
    cls = load(policy)
    known = [field.name for field in fields(cast(Any, cls))]
    if unknown := next((key for key in values if key not in known), None):
        raise ValueError(f"policy {name!r} has no parameter {unknown!r}; {nearest(unknown, known)}")
    check_values(cls, values)
    return cls(**values)


def _parse_value(text: str) -> Any:
    """Return a boolean, a number, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
