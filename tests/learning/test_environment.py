"""`eunomia/Cluster-v0`: a policy played through it gives the bytes of a simulation; masks, rewards and refusals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eunomia
from eunomia import InvalidInput, policies

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra learning")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from eunomia.learning.compiled_environment import CompiledClusterEnv  # noqa: E402
from eunomia.learning.environment import ClusterEnv  # noqa: E402
from eunomia.model.answers import InvalidAnswer  # noqa: E402

SCENARIO = {
    "seed": 3,
    "cluster": {"accelerators": {"v100": 8, "k80": 4}, "accelerators_per_node": 4},
    "workload": {"generator": "philly-like", "jobs": 25, "rate_per_hour": 6.0, "job_types": "mix:default"},
    "throughputs": {"source": "catalogue"},
}


def play(env: ClusterEnv, policy: Any, **reset: Any) -> float:
    """Play an episode; return the sum of its rewards."""
    _, info = env.reset(**reset)
    total, ended = 0.0, False
    while not ended:
        _, reward, ended, _, info = env.step(policy(info))
        total += reward
    return total


def any_legal(rng: np.random.Generator) -> Any:
    return lambda info: rng.choice(np.flatnonzero(info["action_mask"]))


@pytest.mark.parametrize("name", ["srtf", "fifo", "locality", "max_min_fairness", "tiresias"])
def test_a_policy_played_through_it_gives_the_same_jobs_csv(name: str, tmp_path: Path) -> None:
    env = ClusterEnv(SCENARIO, policy=name)
    policy = policies.build(name)
    play(env, lambda info: policy.decide(info["view"]))
    for folder, result in (("env", env.result()), ("sim", eunomia.simulate(SCENARIO, policy=name))):
        (tmp_path / folder).mkdir()
        result.write(tmp_path / folder)
    assert (tmp_path / "env" / "jobs.csv").read_bytes() == (tmp_path / "sim" / "jobs.csv").read_bytes()


@pytest.mark.parametrize("role", ["order", "grants", "placement", "shares"])
def test_it_passes_the_checker_of_gymnasium(role: str) -> None:
    illegal = "penalise"  # the checker draws any action
    env = gymnasium.make("eunomia/Cluster-v0", scenario=SCENARIO, policy_role=role, jobs=25, illegal=illegal)
    check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)


@pytest.mark.parametrize("role", ["order", "grants", "placement"])
def test_every_legal_action_is_carried_out_and_the_same_seed_gives_the_same_episode(role: str) -> None:
    env = ClusterEnv(SCENARIO, role, jobs=25)
    totals = [play(env, any_legal(np.random.default_rng(1)), seed=seed) for seed in (5, 5, 6)]
    assert totals[0] == totals[1] != totals[2]
    assert env.result().summary["jobs_finished"] == 25


def test_shares_are_carried_out() -> None:
    env = ClusterEnv(SCENARIO, "shares", jobs=25)
    play(env, lambda info: np.ones(env.action_space.shape))
    assert env.result().summary["jobs_finished"] == 25


def test_each_reward_adds_up_to_what_it_says() -> None:
    policy = policies.build("srtf")

    def total(reward: str) -> tuple[float, ClusterEnv]:
        env = ClusterEnv(SCENARIO, reward=reward, policy="srtf")
        return play(env, lambda info: policy.decide(info["view"])), env

    jct, env = total("jct")
    done = env.result()
    submitted = min(done.jobs["submitted_s"])
    assert jct == pytest.approx(-done.jobs["jct_s"].sum())
    assert total("progress")[0] == pytest.approx(25)
    assert submitted + -total("makespan")[0] <= done.summary["makespan_s"] + submitted + 1e-6
    assert total("fairness")[0] == pytest.approx(-done.summary["rho_themis_max"])
    assert 0 < total("loss_reduction")[0] < 25
    assert 0 < total("goodput")[0] <= done.jobs["attained_service_s"].sum() * (1 + 1e-9)


def test_an_illegal_action_raises_with_the_rule_or_is_penalised() -> None:
    env = ClusterEnv(SCENARIO, "placement", jobs=25)
    _, info = env.reset()
    wrong = int(np.flatnonzero(~info["action_mask"])[0])
    with pytest.raises(InvalidAnswer, match="waiting job"):
        env.step(wrong)
    with pytest.raises(InvalidAnswer, match="out of range"):
        env.step(10**6)
    env.step(int(np.flatnonzero(info["action_mask"])[0]))  # nothing was changed
    lenient = ClusterEnv(SCENARIO, "placement", "progress", jobs=25, illegal="penalise")
    lenient.reset()
    assert lenient.step(wrong)[1] <= 0


def test_what_is_wrong_is_named() -> None:
    for arguments, message in (
        ({"policy_role": "grant"}, "did you mean 'grants'"),
        ({"reward": "speed"}, "reward"),
        ({"window": "new"}, "window"),
    ):
        with pytest.raises(InvalidInput, match=message):
            ClusterEnv(SCENARIO, **arguments)  # type: ignore[arg-type]
    env = ClusterEnv(SCENARIO, jobs=2)
    with pytest.raises(InvalidInput, match="the observation has 2 rows"):
        play(env, any_legal(np.random.default_rng(0)))
    play(ClusterEnv(SCENARIO, jobs=2, window="oldest"), any_legal(np.random.default_rng(0)))
    with pytest.raises(InvalidInput, match="options"):
        env.reset(options={"trce": "x"})
    with pytest.raises(RuntimeError, match="reset"):
        ClusterEnv(SCENARIO).step(0)


@pytest.mark.parametrize("cls", [ClusterEnv, CompiledClusterEnv])
def test_rows_loads_and_actions_that_are_no_such_numbers_are_named_and_nothing_is_changed(
    cls: type[ClusterEnv],
) -> None:
    for jobs in (0, -1, 2.5, "x"):
        with pytest.raises(InvalidInput, match=r"jobs is .* a whole number, at least 1"):
            cls(SCENARIO, jobs=jobs)  # type: ignore[arg-type]
    env = cls(SCENARIO, "placement", jobs=25)
    for load in (0, -1.0, float("nan"), "x"):
        with pytest.raises(InvalidInput, match=r"load is .* a finite number above 0"):
            env.reset(options={"load": load})
    seen, _ = env.reset(seed=1)
    before = env.action_masks()
    for action in (float("nan"), 1.5, "x", None, [1, 2]):
        with pytest.raises(InvalidAnswer, match="must be a whole number"):
            env.step(action)
    np.testing.assert_array_equal(env.action_masks(), before)
    again, _ = cls(SCENARIO, "placement", jobs=25).reset(seed=1)
    np.testing.assert_array_equal(again["jobs"], seen["jobs"])


@pytest.mark.parametrize("value", [np.nan, -0.1, 1.1, "x"])
def test_shares_that_are_no_shares_are_named(value: Any) -> None:
    env = ClusterEnv(SCENARIO, "shares", jobs=25)
    env.reset()
    for shares in (np.full(env.action_space.shape, value), value):
        with pytest.raises(InvalidAnswer, match="numbers from 0 to 1"):
            env.step(shares)


def test_a_reward_that_is_not_a_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    env = ClusterEnv(SCENARIO, policy="fifo")
    _, info = env.reset()
    monkeypatch.setattr(env._meter, "pay", lambda: float("nan"))
    with pytest.raises(InvalidInput, match="jct is not a finite number"):
        env.step(policies.build("fifo").decide(info["view"]))


def test_more_columns_of_the_view_are_observed_by_name() -> None:
    scenario = {**SCENARIO, "policy": {"name": "fifo"}}
    names = ("remaining", "deadline", "tenant")
    env = ClusterEnv(scenario, jobs=25, observation=names)
    plain = ClusterEnv(scenario, jobs=25)
    (seen, info), (other, _) = env.reset(seed=1), plain.reset(seed=1)
    assert env.observation_space.contains(seen)
    np.testing.assert_array_equal(seen["jobs"][:, : other["jobs"].shape[1]], other["jobs"])
    view = info["view"]
    for k, name in enumerate(names, start=other["jobs"].shape[1]):
        np.testing.assert_array_equal(seen["jobs"][: view.jobs, k], np.minimum(view.columns[name], 1e9).astype("f4"))
    assert (seen["jobs"][: view.jobs, -3] > 0).all()
    ended = ClusterEnv(scenario, jobs=25, observation=names)
    play(ended, lambda info: 0)
    assert ended.result().summary["jobs_finished"] == 25
    for arguments, message in (
        ({"observation": ("remainng",)}, "did you mean 'remaining'"),
        ({"observation": ("deadline",), "policy": "srtf"}, "the policy srtf does not see this column"),
    ):
        with pytest.raises(InvalidInput, match=message):
            ClusterEnv(scenario, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_many_environments_are_stepped_as_one(mode: str) -> None:
    name = "eunomia.learning.environment:eunomia/Cluster-v0"  # so that each process registers it
    options = {"scenario": SCENARIO, "policy_role": "order", "jobs": 25}
    many = gymnasium.make_vec(name, num_envs=2, vectorization_mode=mode, **options)
    seen, _ = many.reset(seed=0)
    assert seen["jobs"].shape[:2] == (2, 25)
    _, rewards, *_ = many.step(np.zeros(2, dtype=np.int64))
    assert rewards.shape == (2,)
    assert not np.array_equal(seen["jobs"][0], seen["jobs"][1])  # other seeds, other workloads
    many.close()


def test_environments_on_ray_without_ray_are_refused_with_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    from eunomia.learning.ray_environment import RayVectorEnv

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidInput, match=r"Ray is not installed.*pip install .*\[ray\]"):
        RayVectorEnv(2, scenario=SCENARIO)


def test_load_and_trace_are_options_of_an_episode(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,job_type,submitted_s,duration_s,scale_factor\na,,0,100,1\nb,,10,100,1\n")
    env = ClusterEnv(SCENARIO, jobs=25)
    play(env, lambda info: 0, options={"trace": trace})
    assert env.result().jobs["job_id"].tolist() == ["a", "b"]
    play(env, lambda info: 0, seed=1, options={"load": 2.0})
    last = max(env.result().jobs["submitted_s"])
    play(env, lambda info: 0, seed=1)
    assert max(env.result().jobs["submitted_s"]) == pytest.approx(2 * last)
