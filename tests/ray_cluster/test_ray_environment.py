"""Environments in actors of a real Ray cluster give what they give in this process."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ray_cluster.loopback import RayCluster

pytest.importorskip("gymnasium", reason="needs the extra learning")

import gymnasium

from eunomia.learning.ray_environment import NAME, RayVectorEnv
from eunomia.model.answers import InvalidAnswer

SCENARIO = {
    "cluster": {"accelerators": {"v100": 4}, "accelerators_per_node": 2},
    "workload": {"generator": "poisson", "jobs": 4, "rate_per_hour": 20.0},
    "throughputs": {"source": "uniform"},
}


def test_environments_on_ray_take_the_same_steps_as_here_beyond_the_end_of_an_episode(ray_cluster: RayCluster) -> None:
    options = {"scenario": SCENARIO, "policy_role": "grants", "jobs": 8}
    here = gymnasium.make_vec(NAME, num_envs=2, vectorization_mode="sync", **options)
    there = RayVectorEnv(2, **options)
    try:
        assert there.observation_space == here.observation_space and there.action_space == here.action_space
        first, second = here.reset(seed=3), there.reset(seed=3)
        ended = 0
        for _ in range(40):
            assert all(np.array_equal(first[0][name], second[0][name]) for name in first[0])
            assert np.array_equal(np.stack(first[1]["action_mask"]), np.stack(second[1]["action_mask"]))
            action = np.array([int(mask.argmax()) for mask in first[1]["action_mask"]])
            *first_rest, first_info = here.step(action)
            *second_rest, second_info = there.step(action)
            assert all(np.array_equal(a, b) for a, b in zip(first_rest[1:], second_rest[1:], strict=True))
            first, second = (first_rest[0], first_info), (second_rest[0], second_info)
            ended += int(first_rest[2].sum())
        assert ended >= 2
        with pytest.raises(InvalidAnswer, match="out of range"):
            there.step(np.array([31, 31]))
        with pytest.raises(ValueError, match="one for each"):
            there.reset(seed=[1, 2, 3])
    finally:
        there.close()
        here.close()
