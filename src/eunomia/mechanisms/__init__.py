"""How time is cut: when the policy is asked, which seats may be given anew, and until when they are given.

This registry holds names; a mechanism is loaded when it is used. `core.mechanism` is the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from eunomia.core.mechanism import MechanismConfig
from eunomia.model.registry import Registry

MECHANISMS: Registry[type[MechanismConfig]] = Registry(
    {
        "leases": "eunomia.mechanisms.leases:Leases",
        "gavel": "eunomia.mechanisms.gavel_rounds:GavelRounds",
        "ideal": "eunomia.mechanisms.fluid:Fluid",
    }
)
load = MECHANISMS.load
DEFAULT = "leases"  # also what a record without a name means


def as_dict(config: MechanismConfig) -> dict[str, Any]:
    """Return a configuration as a record's header holds it."""
    return {**asdict(cast(Any, config)), **({} if config.name == DEFAULT else {"name": config.name})}


def from_dict(said: Mapping[str, Any]) -> MechanismConfig:
    """Return the configuration that `as_dict` described. Raises KeyError, TypeError or ValueError for another."""
    settings = dict(said)
    config: MechanismConfig = load(settings.pop("name", DEFAULT))(**settings)
    return config
