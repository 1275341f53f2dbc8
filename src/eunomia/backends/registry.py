"""The registry of backends by name; a backend is loaded when it is used."""

from __future__ import annotations

from typing import Any

from eunomia.model.registry import Registry

BACKENDS: Registry[Any] = Registry(
    {  # each a `BackendClass`
        "simulated": "eunomia.backends.simulated.choice:SimulatedBackend",
        "local": "eunomia.backends.processes.backend:LocalBackend",
        "slurm": "eunomia.backends.slurm.backend:SlurmBackend",
        "ray": "eunomia.backends.ray.backend:RayBackend",
        "kubernetes": "eunomia.backends.kubernetes.backend:KubernetesBackend",
    }
)
DEFAULT = "simulated"
BACKENDS_OF_PACKAGES = "eunomia.backends"  # entry points of packages' backends


def runs_processes(name: object) -> bool:
    """Whether the registered backend of that name runs in real time; not known of others before they are loaded."""
    return name != DEFAULT and name in BACKENDS and bool(BACKENDS.load(str(name)).real_time)
