"""The maths: a view in, an answer out. This registry holds names; a policy is loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from eunomia.model.policy import Policy

POLICIES: dict[str, str] = {
    "fifo": "eunomia.policies.order.fifo:Fifo",
    "srtf": "eunomia.policies.order.srtf:Srtf",
    "las": "eunomia.policies.order.las:Las",
    "max_min_fairness": "eunomia.policies.shares.max_min_fairness:MaxMinFairness",
    "max_min_fairness_agnostic": "eunomia.policies.shares.max_min_fairness:MaxMinFairnessAgnostic",
    "locality": "eunomia.policies.grants.locality:Locality",
}


def load(name: str) -> type[Policy]:
    """Return the class behind a name of `POLICIES`. Raises KeyError for another name."""
    module, _, attribute = POLICIES[name].partition(":")
    return cast(type[Policy], getattr(import_module(module), attribute))
