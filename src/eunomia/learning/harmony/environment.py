"""The Gymnasium environment `eunomia/Harmony-v0`: parameter-server jobs in slots of time, as Harmony was published.

One step is one inference: one task is put on one server. The state has the published parts, padded to N jobs; action
(n, k, m) is number (2 n + k) M + m. When nothing more can be placed, intervals are played until there is a choice
again, and their rewards Σ c / e are paid. Needs the extra `learning`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from eunomia.inputs.problems import refused
from eunomia.learning.environment import action_number
from eunomia.learning.harmony.state import PlacementState
from eunomia.learning.harmony.world import PsCluster, WorldConfig, draw_trace
from eunomia.model.answers import InvalidAnswer
from eunomia.model.arrays import Array, Bools, Ints
from eunomia.scenario import Scenario, load_scenario

ID = "eunomia/Harmony-v0"
HIGHEST = 1e6  # of an observed number


class HarmonyEnv(gymnasium.Env[dict[str, Array], Any]):
    """The simulator of `learning.harmony.world` on the cluster and workload of a scenario."""

    def __init__(self, scenario: Scenario | Path | str) -> None:
        scenario = scenario if isinstance(scenario, Scenario) else load_scenario(Path(scenario))
        self._config, self._seed = WorldConfig.of(scenario), scenario.seed
        servers, resources = self._config.capacity.shape
        jobs, types = self._config.window, len(self._config.truth.types)
        shapes = {
            "x": (jobs, types), "r": (jobs, 2 * (1 + resources)), "w": (jobs,), "p": (jobs,), "v": (servers, resources),
            "d": (servers, 2 * jobs),
        }  # fmt: skip
        boxes = {name: gymnasium.spaces.Box(0.0, HIGHEST, shape, np.float32) for name, shape in shapes.items()}
        self.observation_space = gymnasium.spaces.Dict(boxes)
        self.action_space = gymnasium.spaces.Discrete(2 * jobs * servers)
        self._cluster: PsCluster | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin a trace, by default with the scenario's seed first; later ones draw other jobs."""
        for name in options or {}:
            rule = "eunomia/Harmony-v0 has no such option: its jobs are those of the scenario, drawn by the seed"
            raise refused("environment", "options", name, rule, "leave it out")
        first = self._cluster is None
        super().reset(seed=self._seed if seed is None and first else seed)
        self._cluster = PsCluster(self._config, draw_trace(self._config, int(self.np_random.integers(2**31))))
        self._look()
        self._advance()
        return self._observation(), {"action_mask": self.action_masks()}

    def step(self, action: Any) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Put one task on one server. Raises InvalidAnswer for an action that is not feasible."""
        if self._cluster is None or self._cluster.over:
            raise RuntimeError("no decision is pending: call reset() first, as the episode has ended or not begun")
        chosen = action_number(action)
        if not 0 <= chosen < len(self._mask) or not self._mask[chosen]:
            rule = "a new job with tasks left, and a server with room for one; see action_masks()"
            raise InvalidAnswer(f"action {chosen} is not feasible: it must name {rule}")
        pair, server = divmod(chosen, len(self._config.capacity))
        self._state.place((*divmod(pair, 2), server))
        reward = self._advance()
        return self._observation(), reward, self._cluster.over, False, {"action_mask": self.action_masks()}

    def action_masks(self) -> Bools:
        """Return which actions are feasible now."""
        return self._mask.copy()

    def mean_jct(self) -> float:
        """Return the mean completion time of the jobs that have finished, in intervals."""
        assert self._cluster is not None
        return self._cluster.mean_jct()

    def _look(self) -> None:
        """Take the state of a new interval."""
        assert self._cluster is not None
        self._rows: Ints = self._cluster.present()
        self._state: PlacementState = self._cluster.state(self._rows)

    def _advance(self) -> float:
        """Play intervals until there is a choice, and return their rewards."""
        cluster, reward = self._cluster, 0.0
        assert cluster is not None
        while not cluster.over:
            actions = self._state.actions()
            if len(actions):
                self._mask = np.zeros(self.action_space.n, dtype=bool)
                n, k, m = actions.T
                self._mask[(2 * n + k) * len(self._config.capacity) + m] = True
                return reward
            if self._state.begun >= 0:
                self._state.take_back()
                continue
            whole = np.flatnonzero(~self._state.new & ~cluster.placed[self._rows])
            cluster.adopt(self._rows, self._state, whole.tolist())
            reward += cluster.play(np.flatnonzero(cluster.placed & (cluster.left > 0)))
            self._look()
        self._mask = np.zeros(self.action_space.n, dtype=bool)
        return reward

    def _observation(self) -> dict[str, Array]:
        state, n = self._state, len(self._state.x)
        found = {name: np.zeros(box.shape, np.float32) for name, box in self.observation_space.spaces.items()}
        for name in ("x", "r", "w", "p"):
            found[name][:n] = getattr(state, name)
        found["v"][:], found["d"][:, : 2 * n] = np.maximum(state.v, 0.0), state.d
        return found


if ID not in gymnasium.registry:
    gymnasium.register(id=ID, entry_point=f"{__name__}:HarmonyEnv", order_enforce=False, disable_env_checker=True)
