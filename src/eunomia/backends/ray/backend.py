"""`[world] backend = "ray"`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from eunomia.backends.engines.backend import EngineBackend
from eunomia.backends.inputs import BackendInputs
from eunomia.backends.ray.client import AgentClient
from eunomia.backends.ray.engine import Ray
from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import InvalidInput, Problem

NAMESPACE = "eunomia"


class RayBackend(EngineBackend):
    """Gangs are placement groups and actors of a Ray cluster."""

    @staticmethod
    def engine_of(options: Mapping[str, Any]) -> Ray:  # type: ignore[override]
        """Return the cluster, with the options of [world.ray]. Raises InvalidInput if Ray is not installed."""
        check_installed()
        client = AgentClient(
            str(options.get("address", "auto")),
            str(options.get("namespace", NAMESPACE)),
            float(options.get("timeout_s", 10.0)),
        )
        return Ray(client.ask, type_label=str(options.get("type_label", "")), close=client.close)

    @classmethod
    def check(cls, inputs: BackendInputs) -> None:
        """Raise InvalidInput for jobs that cannot run here, and without Ray."""
        super().check(inputs)
        check_installed()


def check_installed() -> None:
    """Raise InvalidInput without the package."""
    if find_spec("ray") is None:
        rule = "the Ray backend needs the package ray"
        raise InvalidInput([Problem(file="[world] backend", rule=rule, fix=install_command("ray"))])
