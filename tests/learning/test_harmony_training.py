"""Training of Harmony: seconds-long runs of each stage, the replay buffer, the reward model. Needs torch."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.learning.harmony.state import see_actions
from eunomia.learning.harmony.world import PsCluster, draw_trace
from eunomia.learning.model_file import read_model
from eunomia.scenario import load_scenario, scenario_from_dict

torch = pytest.importorskip("torch", reason="needs the extra learning")

from eunomia.learning.harmony import training  # noqa: E402
from eunomia.learning.harmony.training import (  # noqa: E402
    Decision,
    HarmonyTraining,
    RewardModelTraining,
    TrainingParts,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "harmony.toml"
SMALL = """
[cluster]
nodes = [{ type = "gpu", count = 3, accelerators = 2, cpus = 8 }]
[workload]
generator = "poisson"
jobs = 8
rate_per_hour = 3.0
[throughputs]
source = "uniform"
[physics]
neighbours = "synthetic"
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(training, "PLACEMENTS", 100)
    monkeypatch.setattr(training, "JUDGED", (1, 2))
    monkeypatch.setattr(HarmonyTraining, "judge_every", 2)
    path = tmp_path / "s.toml"
    path.write_text(SMALL)
    return path


def train(scenario: Path, out: str, *more: str, name: str = "harmony") -> Any:
    words = ["train", name, str(scenario), "--out", str(scenario.parent / out), "--json", *more]
    return CliRunner().invoke(app, words)


def test_all_stages_run_and_a_resumed_training_ends_with_the_same_bytes(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train(scenario, "whole.safetensors", "--steps", "8").exit_code == 0
    plain = HarmonyTraining.train

    def interrupted(self: HarmonyTraining, step: int) -> None:
        if step == 6:  # in the third stage
            raise KeyboardInterrupt
        plain(self, step)

    monkeypatch.setattr(HarmonyTraining, "train", interrupted)
    assert train(scenario, "m.safetensors", "--steps", "8").exit_code == 130
    monkeypatch.setattr(HarmonyTraining, "train", plain)
    ran = train(scenario, "m.safetensors", "--steps", "8", "--resume")
    assert ran.exit_code == 0, ran.output
    one, other = (json.loads((scenario.parent / f"{name}.safetensors.json").read_text()) for name in ("m", "whole"))
    assert one == other
    assert (scenario.parent / "m.safetensors").read_bytes() == (scenario.parent / "whole.safetensors").read_bytes()
    header = read_model(scenario.parent / "m.safetensors").header
    assert header.trained == "harmony" and set(header.metrics) == {"gain", "mean_jct_intervals", "reward_model_error"}


def test_the_reward_model_reaches_ten_per_cent_on_held_out_placements_and_ignores_the_order_of_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "PLACEMENTS", 600)
    rng = np.random.default_rng(0)
    work = RewardModelTraining(load_scenario(EXAMPLE), 8, rng)
    for step in range(8):
        work.train(step)
    model = work.reward_model
    assert work.judge()["relative_error"] == pytest.approx(model.held_out().mean()) and model.held_out().mean() < 0.10
    x, d = np.eye(8)[rng.integers(0, 8, 5)], rng.integers(0, 2, (6, 10)).astype(float)
    order = rng.permutation(5)
    shuffled = d.reshape(6, 5, 2)[:, order].reshape(6, 10)
    np.testing.assert_allclose(model.predict(x[order], shuffled), model.predict(x, d)[order], rtol=1e-5)


def test_the_replay_buffer_drops_the_oldest_first_and_is_drawn_from_evenly(scenario: Path) -> None:
    work = HarmonyTraining(load_scenario(scenario), 8, np.random.default_rng(0))
    work.replay.extend(Decision(np.zeros((1, 1)), 0, 1.0, np.zeros(1), k) for k in range(training.REPLAY + 10))
    assert work.replay[0].interval == 10 and len(work.replay) == training.REPLAY
    few = [work.replay[k] for k in range(4)]
    work.replay.clear()
    work.replay.extend(few)
    counts = Counter(one.interval for _ in range(40) for one in work._sample())
    expected = 40 * training.BATCH / 4
    assert set(counts) == {10, 11, 12, 13} and all(abs(count / expected - 1) < 0.1 for count in counts.values())


def test_a_training_whose_stages_end_between_two_points_of_the_curve_is_one_like_any_other(scenario: Path) -> None:
    ran = train(scenario, "m.safetensors", "--steps", "10")  # stages end after 3 and 5 steps, and 2 are judged together
    assert ran.exit_code == 0, ran.output


def test_the_returns_of_an_interval_are_shared_and_discounted_by_intervals(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = HarmonyTraining(load_scenario(scenario), 8, np.random.default_rng(0))
    rewards, plain = list[float](), PsCluster.play

    def remembered(self: PsCluster, rows: Any, speeds: Any = None) -> float:
        rewards.append(plain(self, rows, speeds))
        return rewards[-1]

    monkeypatch.setattr(PsCluster, "play", remembered)
    by_interval: dict[int, set[float]] = {}
    for one in work._episode(0.5):
        by_interval.setdefault(one.interval, set()).add(one.value)
    assert max(map(len, by_interval.values())) == 1 and sum(rewards) == pytest.approx(8)
    for t, (value,) in by_interval.items():
        assert value == pytest.approx(sum(training.GAMMA**k * reward for k, reward in enumerate(rewards[t:])))


def test_exploration_plays_what_packing_or_load_balancing_would_and_knows_how_likely_that_was(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[int] = []
    for name in ("tetris", "load_balancing"):
        plain = getattr(training, name)

        def remembered(state: Any, actions: Any, plain: Any = plain) -> int:
            played.append(plain(state, actions))
            return played[-1]

        monkeypatch.setattr(training, name, remembered)
    work = HarmonyTraining(load_scenario(scenario), 8, np.random.default_rng(0))
    decisions = work._episode(1.0)
    assert [one.chosen for one in decisions] == played
    assert {one.likelihood for one in decisions} == {0.5}
    played.clear()
    assert [one.chosen for one in work._episode(0.0)] != played


def test_parts_of_the_training_that_are_left_out_are_not_used(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("this part is left out")

    none = TrainingParts(warm_start=False, value_network=False, exploration=False, replay=False, reward_model=False)
    work = HarmonyTraining(load_scenario(scenario), 8, np.random.default_rng(0), none)
    monkeypatch.setattr(work, "_imitate", fail)
    monkeypatch.setattr(work.reward_model, "predict", fail)
    drawn: list[list[Decision]] = []
    episode = work._episode

    def remembered(epsilon: float) -> list[Decision]:
        assert epsilon == 0.0
        drawn.append(episode(epsilon))
        return drawn[-1]

    monkeypatch.setattr(work, "_episode", remembered)
    for step in range(8):
        work.train(step)
    assert len(drawn) == 8 - int(0.3 * 8)
    assert list(work.replay) == drawn[-1]


def test_the_actor_learns_at_the_rate_that_its_parts_name(scenario: Path) -> None:
    moved = []
    for rate in (1e-5, 1e-3):
        work = HarmonyTraining(load_scenario(scenario), 8, np.random.default_rng(0), TrainingParts(actor_rate=rate))
        before = {name: weight.copy() for name, weight in work.policy.arrays("policy").items()}
        work._improve(0.5)
        after = work.policy.arrays("policy")
        moved.append(max(float(np.abs(after[name] - weight).max()) for name, weight in before.items()))
    assert 0 < 10 * moved[0] < moved[1]


@pytest.mark.parametrize("used", [False, True])
def test_without_the_value_network_what_it_says_changes_no_gradient(scenario: Path, used: bool) -> None:
    policies = []
    for shift in (0.0, 50.0):
        work = HarmonyTraining(load_scenario(scenario), 8, np.random.default_rng(0), TrainingParts(value_network=used))
        for name, weight in work.value.named_parameters():
            if name.endswith("weight"):
                weight.data += shift  # what it says then depends on the state
        work._improve(0.5)
        policies.append(np.concatenate([weight.ravel() for weight in work.policy.arrays("policy").values()]))
    assert np.array_equal(*policies) is not used


def test_what_training_sees_is_what_the_policy_sees(scenario: Path) -> None:
    work = HarmonyTraining(load_scenario(scenario), 8, np.random.default_rng(0))
    cluster = PsCluster(work.config, draw_trace(work.config, 3))
    cluster.now = int(cluster.trace.arrival.max())
    state = cluster.state(cluster.present())
    actions = state.actions()
    scores = work._scores(work._see(state, actions))
    assert scores.shape == (len(actions),) == (len(see_actions(state, actions)),)


def test_likelihoods_in_a_batch_are_those_of_each_decision_alone_however_many_actions_others_have(
    scenario: Path,
) -> None:
    work, rng = HarmonyTraining(load_scenario(scenario), 8, np.random.default_rng(0)), np.random.default_rng(1)
    batch = [
        Decision(rng.normal(size=(count, len(work.features))), int(rng.integers(count)), 1.0, np.zeros(1), 0)
        for count in (1, 7, 3)
    ]
    logs, entropies = work._log_likelihoods(batch)
    for one, log, entropy in zip(batch, logs.tolist(), entropies.tolist(), strict=True):
        chances = work._chances(one.seen)
        assert log == pytest.approx(np.log(chances[one.chosen]), abs=1e-5)
        assert entropy == pytest.approx(-(chances * np.log(chances)).sum(), abs=1e-5)


def test_a_scenario_without_interference_is_refused_by_name(scenario: Path) -> None:
    scenario.write_text(SMALL.replace('neighbours = "synthetic"', ""))
    ran = train(scenario, "m.safetensors")
    assert ran.exit_code == 2 and "physics.neighbours" in ran.output
    assert not list(scenario.parent.glob("m.*"))


def test_a_reward_model_is_no_placement(scenario: Path) -> None:
    monkey = train(scenario, "r.safetensors", "--steps", "1", name="reward-model")
    assert monkey.exit_code == 0, monkey.output
    found = scenario_from_dict(
        {
            "cluster": {"accelerators": {"v100": 2}},
            "workload": {"generator": "poisson", "jobs": 2},
            "policy": {"name": "harmony", "model": str(scenario.parent / "r.safetensors")},
        },
        scenario.parent,
    )
    from eunomia import InvalidInput, simulate

    with pytest.raises(InvalidInput, match="reward-model"):
        simulate(found)
