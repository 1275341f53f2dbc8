"""Train a stock PPO of another library on the compiled environment, and compare it with random legal actions.

    pip install '.[learning]' sb3-contrib
    python examples/learning/ppo.py 50000

Two workloads of 200 jobs that training has not seen judge it. This shows that the environment is an ordinary one, not
that PPO is a good scheduler: after 20,000 steps it is worse than random. Written for sb3-contrib 2.9.
"""

import sys

import gymnasium
import numpy as np
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy

NAME = "eunomia.learning.compiled_environment:eunomia/CompiledCluster-v0"
SCENARIO = {
    "cluster": {"accelerators": {"v100": 32}, "accelerators_per_node": 4},
    "workload": {"generator": "poisson", "jobs": 200, "rate_per_hour": 40.0},
    "throughputs": {"source": "uniform"},
}
HOUR_S = 3600.0


def environment():
    """Return the environment with rewards in hours, which suit the usual learning rates."""
    made = gymnasium.make(NAME, scenario=SCENARIO, policy_role="grants", jobs=32, window="oldest")
    return gymnasium.wrappers.TransformReward(made, lambda reward: reward / HOUR_S)


def mean_jct_h(choose, seed):
    """Return the mean completion time of one workload under `choose(observation, mask)`."""
    env = environment()
    observation, info = env.reset(seed=seed)
    ended = False
    while not ended:
        observation, _, ended, _, info = env.step(choose(observation, info["action_mask"]))
    return env.unwrapped.result().summary["jct_mean_s"] / HOUR_S


def main(steps):
    model = MaskablePPO(MaskableMultiInputActorCriticPolicy, environment(), seed=0, gamma=0.999, verbose=0)
    model.learn(steps)
    rng = np.random.default_rng(0)
    for name, choose in (
        ("random", lambda observation, mask: rng.choice(np.flatnonzero(mask))),
        ("ppo", lambda observation, mask: model.predict(observation, action_masks=mask, deterministic=True)[0]),
    ):
        print(name, [round(mean_jct_h(choose, seed), 2) for seed in (1001, 1002)], "h mean completion time")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
