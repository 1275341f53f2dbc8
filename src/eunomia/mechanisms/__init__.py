"""How time is cut: when the policy is asked, which seats may be given anew, and until when they are given.

This registry holds names; a mechanism is loaded when it is used. `core.mechanism` is the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any, cast

from eunomia.core.mechanism import MechanismConfig

MECHANISMS: dict[str, str] = {
    "leases": "eunomia.mechanisms.leases:Leases",
    "gavel": "eunomia.mechanisms.gavel_rounds:GavelRounds",
    "ideal": "eunomia.mechanisms.fluid:Fluid",
}
DEFAULT = "leases"  # also what a record without a name means


def load(name: str) -> type[MechanismConfig]:
    """Return the configuration behind a name of `MECHANISMS`. Raises KeyError for another name."""
    module, _, attribute = MECHANISMS[name].partition(":")
    return cast(type[MechanismConfig], getattr(import_module(module), attribute))


def as_dict(config: MechanismConfig) -> dict[str, Any]:
    """Return a configuration as a record's header holds it."""
    return {**asdict(cast(Any, config)), **({} if config.name == DEFAULT else {"name": config.name})}


def from_dict(said: Mapping[str, Any]) -> MechanismConfig:
    """Return the configuration that `as_dict` described. Raises KeyError, TypeError or ValueError for another."""
    settings = dict(said)
    config: MechanismConfig = load(settings.pop("name", DEFAULT))(**settings)
    return config
