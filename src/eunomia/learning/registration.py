"""Names the environments for `gymnasium.make`; Gymnasium calls `register_all` through an entry point when imported."""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

ENVIRONMENTS = {
    "eunomia/Cluster-v0": "eunomia.learning.environment:ClusterEnv",
    "eunomia/Harmony-v0": "eunomia.learning.harmony.environment:HarmonyEnv",
}


def register_all() -> None:
    """Register every environment that has not been registered yet."""
    for name, place in ENVIRONMENTS.items():
        if name not in registry:
            register(id=name, entry_point=place, order_enforce=False, disable_env_checker=True)
