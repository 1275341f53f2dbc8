"""`eunomia/CompiledCluster-v0`: what `eunomia/Cluster-v0` shows and pays, to the bit, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eunomia import InvalidInput

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra learning")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from eunomia.learning.compiled_environment import CompiledClusterEnv  # noqa: E402
from eunomia.learning.environment import ClusterEnv  # noqa: E402
from eunomia.model.answers import InvalidAnswer  # noqa: E402

SCENARIO: dict[str, Any] = {
    "seed": 3,
    "cluster": {"accelerators": {"v100": 8, "k80": 4}, "accelerators_per_node": 4},
    "workload": {"generator": "philly-like", "jobs": 25, "rate_per_hour": 6.0, "job_types": "mix:default"},
    "throughputs": {"source": "catalogue"},
    "overheads": {"start_s": 30.0},
}


@pytest.mark.parametrize("role", ["grants", "placement"])
@pytest.mark.parametrize("reward", ["jct", "makespan"])
def test_the_same_actions_give_the_steps_and_the_jobs_csv_of_the_core(role: str, reward: str, tmp_path: Any) -> None:
    made = [cls(SCENARIO, role, reward, jobs=8, window="oldest") for cls in (ClusterEnv, CompiledClusterEnv)]
    (seen, info), (ours, our_info) = (env.reset(seed=4) for env in made)
    rng, ended, steps = np.random.default_rng(0), False, 0
    while True:
        for name, array in seen.items():
            np.testing.assert_array_equal(ours[name], array, f"{name}, step {steps}")
        if ended:
            break
        np.testing.assert_array_equal(our_info["action_mask"], info["action_mask"])
        action = rng.choice(np.flatnonzero(info["action_mask"]))
        seen, paid, ended, _, info = made[0].step(action)
        ours, our_paid, our_ended, _, our_info = made[1].step(action)
        assert (our_paid, our_ended) == (paid, ended)
        steps += 1
    assert steps > 50
    for folder, env in zip("ab", made, strict=True):
        (tmp_path / folder).mkdir()
        env.result().write(tmp_path / folder)
    assert (tmp_path / "a" / "jobs.csv").read_bytes() == (tmp_path / "b" / "jobs.csv").read_bytes()


def test_it_passes_the_checker_of_gymnasium() -> None:
    env = gymnasium.make("eunomia/CompiledCluster-v0", scenario=SCENARIO, jobs=25, illegal="penalise")
    check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)


def test_an_illegal_action_raises_with_the_rule_and_changes_nothing_or_is_penalised() -> None:
    env = CompiledClusterEnv(SCENARIO, jobs=25)
    _, info = env.reset()
    wrong = int(np.flatnonzero(~info["action_mask"])[0])
    for action, rule in ((wrong, "waiting job"), (10**6, "out of range"), (-1, "out of range")):
        with pytest.raises(InvalidAnswer, match=rule):
            env.step(action)
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"])
    lenient = CompiledClusterEnv(SCENARIO, "placement", "makespan", jobs=25, illegal="penalise")
    lenient.reset()
    assert lenient.step(wrong)[1] <= -1
    with pytest.raises(RuntimeError, match="reset"):
        CompiledClusterEnv(SCENARIO).step(0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"world": {"node_failures_per_hour": 0.1}}, "failures, outages and cancellations"),
        ({"belief": {"kind": "noisy", "error": 0.1}}, "beliefs"),
        ({"workload": {**SCENARIO["workload"], "elastic": "halves"}}, "elastic jobs"),
        ({"physics": {"neighbours": "synthetic"}}, "physics"),
        ({"measure": {"first_job": 3}}, "measured window"),
        ({"mechanism": {"name": "leases", "length_s": 360.0}}, "leases that end"),
    ],
)
def test_a_scenario_that_it_does_not_have_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        CompiledClusterEnv({**SCENARIO, **changes}).reset()


def test_other_roles_rewards_and_more_jobs_than_rows_are_refused_by_name() -> None:
    for arguments, message in (({"policy_role": "shares"}, "policy_role"), ({"reward": "goodput"}, "reward")):
        with pytest.raises(InvalidInput, match=message):
            CompiledClusterEnv(SCENARIO, **arguments)  # type: ignore[arg-type]
    env, waits = CompiledClusterEnv(SCENARIO, jobs=2), 2 * 3
    env.reset()

    def only_wait() -> None:
        for _ in range(60):
            env.step(waits)

    with pytest.raises(InvalidInput, match="the observation has 2 rows"):
        only_wait()
