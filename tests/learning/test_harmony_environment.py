"""`eunomia/Harmony-v0`: the published state and actions, one task a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra learning")

from gymnasium.utils.env_checker import check_reset_seed_determinism  # noqa: E402

from eunomia.inputs.problems import InvalidInput  # noqa: E402
from eunomia.learning.harmony.baselines import load_balancing  # noqa: E402
from eunomia.learning.harmony.environment import HarmonyEnv  # noqa: E402
from eunomia.learning.harmony.world import WorldConfig, draw_trace, run_trace  # noqa: E402
from eunomia.model.answers import InvalidAnswer  # noqa: E402
from eunomia.scenario import load_scenario  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "harmony.toml"


def test_a_placer_played_through_it_has_the_jct_of_a_run_and_every_job_pays_one() -> None:
    env = gymnasium.make("eunomia/Harmony-v0", scenario=EXAMPLE).unwrapped
    seen, info = env.reset(seed=4)
    total, over = 0.0, False
    while not over:
        assert env.observation_space.contains(seen)
        chosen = load_balancing(env._state, env._state.actions())
        n, k, m = env._state.actions()[chosen]
        seen, reward, over, _, info = env.step((2 * n + k) * 6 + m)
        total += reward
    config = WorldConfig.of(load_scenario(EXAMPLE))
    trace = draw_trace(config, int(np.random.Generator(np.random.PCG64(np.random.SeedSequence(4))).integers(2**31)))
    assert total == pytest.approx(60)
    assert env.mean_jct() == run_trace(config, trace, load_balancing).mean_jct()
    assert not info["action_mask"].any()


def test_it_can_be_seeded_and_an_infeasible_action_is_refused() -> None:
    env = HarmonyEnv(EXAMPLE)
    check_reset_seed_determinism(env)
    _, info = env.reset(seed=0)
    with pytest.raises(InvalidAnswer, match="not feasible"):
        env.step(int(np.flatnonzero(~info["action_mask"])[0]))
    for action in (float("nan"), 1.5, None):
        with pytest.raises(InvalidAnswer, match="must be a whole number"):
            env.step(action)
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"])
    with pytest.raises(InvalidInput, match="no such option"):
        env.reset(options={"load": 2.0})
    assert not HarmonyEnv(EXAMPLE).reset()[1]["action_mask"].all()
