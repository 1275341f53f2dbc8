"""The Gymnasium environment `eunomia/CompiledCluster-v0`: plain scenarios, fifty times as fast as `eunomia/Cluster-v0`.

The same actions give the same observations, masks, rewards and completion times, to the bit. There is no view, so no
policy can be played through it. Needs the extra `learning`. Importing this module registers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium

from eunomia.inputs.problems import refused
from eunomia.learning.compiled_cluster import ACTIVE, JCT, MAKESPAN, CompiledCluster, unsupported
from eunomia.learning.environment import ClusterEnv, action_number, check_name
from eunomia.model.answers import InvalidAnswer
from eunomia.model.arrays import Array, Bools
from eunomia.runs.simulation import Result
from eunomia.scenario import Scenario
from eunomia.setup.run_objects import RunConfig

ID = "eunomia/CompiledCluster-v0"
REWARDS = {"jct": JCT, "makespan": MAKESPAN}


class CompiledClusterEnv(ClusterEnv):
    """A cluster of gangs that run to their end. The arguments are those of `ClusterEnv`.

    policy_role: `grants` or `placement`; reward: `jct` or `makespan`. Scenarios with failures, physics, elastic jobs,
    estimated beliefs or a measured window are refused by name, as are leases that end.
    """

    def __init__(
        self,
        scenario: Scenario | Path | str | Mapping[str, Any],
        policy_role: str = "placement",
        reward: str = "jct",
        *,
        jobs: int = 64,
        window: str = "refuse",
        illegal: str = "raise",
    ) -> None:
        check_name("policy_role", policy_role, ("grants", "placement"))
        check_name("reward", reward, tuple(REWARDS))
        super().__init__(scenario, policy_role, reward, jobs=jobs, window=window, illegal=illegal)
        self._cluster: CompiledCluster | None = None
        self._is_over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin an episode, as `ClusterEnv.reset`. Raises InvalidInput for a scenario that is not plain."""
        self._setup: RunConfig = self._drawn(seed, options or {})
        if what := unsupported(self._setup):
            rule = f"the compiled environment does not have {what}"
            raise refused(str(self._scenario.base), "scenario", None, rule, "use eunomia/Cluster-v0 for this scenario")
        self._cluster = CompiledCluster(self._setup, self._rows, placement=self.role == "placement")
        self._actions, self._run, self._total = list[int](), None, 0.0
        self._go_on(-1)
        self._pay()
        return self._observed(), {"action_mask": self.action_masks()}

    def step(self, action: Any) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Answer one ask. Raises InvalidAnswer for an illegal action, and RuntimeError where none is pending."""
        if self._cluster is None or self._is_over:
            raise RuntimeError("no decision is pending: call reset() first, as the episode has ended or not begun")
        chosen, legal, penalty = action_number(action), self._cluster.legal, 0.0
        if not (0 <= chosen < len(legal) and legal[chosen]):
            self._mask = legal
            if self._illegal == "raise":
                raise InvalidAnswer(self._illegal_reason(chosen))
            chosen, penalty = len(legal) - 1, -1.0
        self._actions.append(chosen)
        self._go_on(chosen)
        return self._observed(), self._pay() + penalty, self._is_over, False, {"action_mask": self.action_masks()}

    def _go_on(self, action: int) -> None:
        assert self._cluster is not None
        self._is_over = not self._cluster.step(action)
        if not self._is_over:
            jobs = int(self._cluster.numbers[ACTIVE])
            self._is_over = jobs > self._rows and self._window == "refuse"
            self._check_rows(jobs)

    def _pay(self) -> float:
        """Return the reward since the last call."""
        assert self._cluster is not None
        total = float(self._cluster.clock[REWARDS[self.reward_name]])
        paid, self._total = total - self._total, total
        return paid

    def _observed(self) -> dict[str, Array]:
        seen = self._cluster
        assert seen is not None
        if self._is_over:
            seen.jobs[:], seen.job_mask[:], seen.servers[:], seen.cluster[:] = 0, 0, 0, 0
        return {
            "jobs": seen.jobs.copy(), "job_mask": seen.job_mask.copy(), "servers": seen.servers.copy(),
            "cluster": seen.cluster.copy(),
        }  # fmt: skip

    def action_masks(self) -> Bools:
        """Return which actions are legal now."""
        assert self._cluster is not None
        return self._cluster.legal.copy()

    def result(self) -> Result:
        """Return the results of the episode, by playing its actions through the core. Raises RuntimeError before."""
        if self._cluster is None or not self._is_over:
            raise RuntimeError("the episode has not ended, so it has no results yet")
        if self._run is None:
            self._open(self._setup)
            self._info()
            for action in self._actions:
                super().step(action)
        return super().result()


if ID not in gymnasium.registry:
    gymnasium.register(
        id=ID, entry_point=f"{__name__}:CompiledClusterEnv", order_enforce=False, disable_env_checker=True
    )
