"""Training of Symphony: the same network as in inference, resume, unroll, gradients through the belief."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch; make test-learning installs it")

from eunomia.learning.training import train  # noqa: E402
from eunomia.scenario import load_scenario  # noqa: E402
from eunomia_reproduction.symphony import belief, counters, training  # noqa: E402
from eunomia_reproduction.symphony.training import BlackBoxTraining, SymphonyTraining, TorchOps  # noqa: E402

PUBLISHED = training.STEPS, training.ENVIRONMENTS, training.LEARNING_RATE
EXAMPLE = Path("examples/learning/symphony.toml")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "STEPS", 4)
    monkeypatch.setattr(training, "JUDGED_TASKS", 4)
    monkeypatch.setattr(training, "JUDGED", 1)
    for cls in (SymphonyTraining, BlackBoxTraining):
        monkeypatch.setattr(cls, "judge_every", 2)


@pytest.mark.parametrize("name", ["symphony", "symphony-black-box"])
def test_a_resumed_training_gives_the_bytes_of_one_without_interruption(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = load_scenario(EXAMPLE)
    train(name, scenario, tmp_path / "whole.safetensors", steps=4)
    plain = SymphonyTraining.train

    def interrupted(self: SymphonyTraining, step: int) -> None:
        if step == 3:
            raise KeyboardInterrupt
        plain(self, step)

    monkeypatch.setattr(SymphonyTraining, "train", interrupted)
    assert train(name, scenario, tmp_path / "m.safetensors", steps=4).interrupted
    monkeypatch.setattr(SymphonyTraining, "train", plain)
    train(name, scenario, tmp_path / "m.safetensors", steps=4, resume=True)
    assert (tmp_path / "m.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


def test_the_lstm_is_unrolled_over_the_decisions_and_forgets_where_an_episode_begins() -> None:
    work = SymphonyTraining(load_scenario(EXAMPLE), 10, np.random.default_rng(0))
    work.train(0)
    seen, begins, *_ = work._rollout()
    state = tuple(torch.ones_like(one) for one in work._state)

    def values(begin_at: int) -> np.ndarray:
        marks = torch.zeros_like(begins)
        marks[begin_at] = 1.0
        return np.array([work._net(seen, start, marks)[1].detach().numpy() for start in (state, work._state)])

    other, same = values(2)
    assert not np.array_equal(other[:2], same[:2])  # the state is carried from decision to decision
    np.testing.assert_array_equal(other[2:], same[2:])


def test_a_step_changes_every_part_and_the_parameters_of_the_belief() -> None:
    work = SymphonyTraining(load_scenario(EXAMPLE), 10, np.random.default_rng(0))
    before = {name: np.array(array) for name, array in work.arrays().items()}
    for step in range(2):
        work.train(step)
    same = [name for name, array in work.arrays().items() if np.array_equal(array, before[name])]
    assert not [name for name in same if name.startswith("belief") or name.endswith("weight")]


def test_tensors_and_arrays_give_the_same_beliefs_and_autograd_the_same_gradient() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(0.0, 1.0, (32, counters.COUNTERS))
    start = belief.initial()
    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()}

    class Double(TorchOps):
        array = staticmethod(torch.tensor)

    found = belief.utilisations(tensors, torch.tensor(values), Double)
    np.testing.assert_allclose(found.detach().numpy(), belief.utilisations(start, values), rtol=1e-9)
    found[:, 6].mean().backward()
    np.testing.assert_allclose(tensors["link"].grad[0], belief.link_gradient(start["link"][0], values, 0), rtol=1e-9)


def test_the_reward_of_an_episode_is_minus_the_responses_in_best_seconds() -> None:
    episode, total = training._Episode(3), 0.0
    world = episode.world
    while episode.world is world:
        choice = training.Oracle().handle(episode.moment)
        world.carry_out(choice)
        total += episode.next()
    assert total == pytest.approx(-training.REWARD * world.response.sum())


def test_the_gradient_of_every_parameter_of_the_belief_is_the_slope_of_small_differences() -> None:
    rng, step = np.random.default_rng(1), 1e-6
    values = rng.uniform(0.1, 1.0, (32, counters.COUNTERS))
    start = belief.initial()
    weight = rng.normal(size=9)

    class Double(TorchOps):
        array = staticmethod(torch.tensor)

    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()}
    (belief.utilisations(tensors, torch.tensor(values), Double).mean(0) * torch.tensor(weight)).sum().backward()
    for name, value in start.items():
        for place in np.ndindex(value.shape):
            ends = []
            for sign in (1.0, -1.0):
                moved = value.copy()
                moved[place] += sign * step
                ends.append(float((belief.utilisations({**start, name: moved}, values).mean(0) * weight).sum()))
            slope = (ends[0] - ends[1]) / (2 * step)
            assert slope != 0 and float(tensors[name].grad[place]) == pytest.approx(slope, rel=1e-4), (name, place)


def test_an_iteration_is_two_environments_of_twenty_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "STEPS", PUBLISHED[0])
    work = SymphonyTraining(load_scenario(EXAMPLE), 10, np.random.default_rng(0))
    work.train(0)
    _, begins, chosen, *_ = work._rollout()
    assert begins.shape == chosen.shape == PUBLISHED[:2] == (20, 2)
    assert PUBLISHED[2] == 0.005


def test_returns_are_of_n_steps_with_the_value_after_them_and_end_with_their_episode() -> None:
    rewards = torch.tensor([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    begins = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])  # the second column's second episode
    found = training.n_step_returns(rewards, begins, torch.tensor([10.0, 10.0]), 0.5)
    whole = [1 + 0.5 * (2 + 0.5 * (4 + 0.5 * 10)), 2 + 0.5 * (4 + 0.5 * 10), 4 + 0.5 * 10]
    np.testing.assert_allclose(found.numpy(), np.transpose([whole, [1 + 0.5 * 2, 2, 4]]))
