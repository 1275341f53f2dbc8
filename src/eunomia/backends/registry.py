"""The registry of backends by name; a backend is loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

BACKENDS: dict[str, str] = {
    "simulated": "eunomia.backends.simulated.choice:SimulatedBackend",
    "local": "eunomia.backends.processes.backend:LocalBackend",
    "slurm": "eunomia.backends.slurm.backend:SlurmBackend",
    "ray": "eunomia.backends.ray.backend:RayBackend",
    "kubernetes": "eunomia.backends.kubernetes.backend:KubernetesBackend",
}
DEFAULT = "simulated"
BACKENDS_OF_PACKAGES = "eunomia.backends"  # entry points of packages' backends


def load(name: str) -> Any:
    """Return the class behind a name of `BACKENDS`, a `BackendClass`. Raises KeyError for another name."""
    module, _, attribute = BACKENDS[name].partition(":")
    return getattr(import_module(module), attribute)


def runs_processes(name: object) -> bool:
    """Whether the registered backend of that name runs in real time; not known of others before they are loaded."""
    return name != DEFAULT and name in BACKENDS and bool(load(str(name)).real_time)
