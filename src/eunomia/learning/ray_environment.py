"""Several environments in actors of Ray, stepped at once: `RayVectorEnv`, for machines beyond this one.

Needs both extras, `learning` and `ray`. A process that has not called `ray.init` joins the cluster of
RAY_ADDRESS, or starts one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import refused
from eunomia.learning.environment import ID, ClusterEnv
from eunomia.model.arrays import Array, Bools, Floats

NAME = f"{ClusterEnv.__module__}:{ID}"
_Step = tuple[dict[str, Array], float, bool, bool, dict[str, Any]]


class _Worker:
    """One environment in an actor; after the end of an episode the next step begins another one."""

    def __init__(self, name: str, options: dict[str, Any]):
        self._env, self._ended = gymnasium.make(name, **options), False

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> tuple[dict[str, Array], dict[str, Any]]:
        self._ended = False
        found: tuple[dict[str, Array], dict[str, Any]] = self._env.reset(seed=seed, options=options)
        return found

    def step(self, action: Any) -> _Step:
        if self._ended:
            observation, info = self.reset(None, None)
            return observation, 0.0, False, False, info
        observation, reward, terminated, truncated, info = self._env.step(action)
        self._ended = terminated or truncated
        return observation, float(reward), terminated, truncated, info


class RayVectorEnv(VectorEnv[Any, Any, Any]):
    """`num_envs` environments of `name`, each in an actor of Ray that takes one CPU.

    options: those of the environment, which every node must be able to read. Observations, rewards and infos are those
    of `gymnasium.make_vec(name, num_envs=…, vectorization_mode="sync")`. Raises InvalidInput where Ray is missing.
    """

    def __init__(self, num_envs: int, name: str = NAME, **options: Any):
        try:
            import ray
        except ModuleNotFoundError as error:
            raise refused("environment", "ray", None, "Ray is not installed", install_command("ray")) from error
        self._ray = ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        single = gymnasium.make(name, **options)
        self.single_observation_space, self.single_action_space = single.observation_space, single.action_space
        self.metadata = {**single.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        single.close()
        self.num_envs = num_envs
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        actor = ray.remote(num_cpus=1)(_Worker)
        self._workers = [actor.remote(name, options) for _ in range(num_envs)]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in each; a number seeds them in turn, counting from it."""
        seeds = [seed + k for k in range(self.num_envs)] if isinstance(seed, int) else seed or [None] * self.num_envs
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds are given for {self.num_envs} environments; give one for each")
        asked = [worker.reset.remote(one, options) for worker, one in zip(self._workers, seeds, strict=True)]
        observations, infos = zip(*self._ray.get(asked), strict=True)
        return self._batch(observations), self._merge(infos)

    def step(self, actions: Any) -> tuple[Any, Floats, Bools, Bools, dict[str, Any]]:
        """Take one step in each at once. An error of one is raised."""
        each = iterate(self.action_space, actions)
        asked = [worker.step.remote(action) for worker, action in zip(self._workers, each, strict=True)]
        observations, rewards, terminated, truncated, infos = zip(*self._ray.get(asked), strict=True)
        ends = np.array(terminated, dtype=bool), np.array(truncated, dtype=bool)
        return self._batch(observations), np.array(rewards), *ends, self._merge(infos)

    def close_extras(self, **kwargs: Any) -> None:
        """End the actors."""
        for worker in self._workers:
            self._ray.kill(worker)

    def _batch(self, observations: Sequence[Any]) -> Any:
        space = self.single_observation_space
        return concatenate(space, observations, create_empty_array(space, n=self.num_envs))

    def _merge(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for k, info in enumerate(infos):
            found = self._add_info(found, info, k)
        return found
