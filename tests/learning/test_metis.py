"""Metis: the slotted world, repeated inference, the delayed reward, and the policy with the shipped model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.learning.metis.baselines import BASELINES, exhaustive, slaq
from eunomia.learning.metis.network import MetisNetwork
from eunomia.learning.metis.policy import Metis
from eunomia.learning.metis.slot_state import FEATURES, SlotState
from eunomia.learning.metis.slot_world import ElasticJobs, NoNodesGiven, SlotWorld, draw_jobs, play
from eunomia.learning.model_file import Feature
from eunomia.learning.shipped import load_model
from eunomia.model.arrays import Floats
from eunomia.model.view import View
from eunomia.scenario import load_scenario, scenario_from_dict

SHIPPED = MetisNetwork.of(load_model("", "metis"))
NETWORKS = {"shipped": SHIPPED, "untrained": MetisNetwork.drawn(np.random.default_rng(1))}


def jobs_of(*rates: float, steps: float = 40.0, slope: tuple[float, float] = (0.05, 0.0), most: int = 8) -> ElasticJobs:
    """Return jobs of first order that arrive at once; a larger rate flattens sooner."""
    count = len(rates)
    curve = np.zeros((count, 5))
    curve[:, 0], curve[:, 3], curve[:, 2] = 0.2, 1.0, np.array(rates) / steps
    return ElasticJobs(
        arrival=np.zeros(count, dtype=np.int64), steps=np.full(count, steps), curve=curve,
        slope=np.tile(slope, (count, 1)), most=np.full(count, most), plateau=np.zeros((count, 2)),
    )  # fmt: skip


def drawn_state(seed: int) -> SlotState:
    rng = np.random.default_rng(seed)
    world = SlotWorld(draw_jobs(rng, jobs=8, nodes=8, load=4.0), 8)
    for _ in range(int(rng.integers(1, 6))):
        state = world.state()
        world.advance(state.allocated(slaq(state)))
    return world.state()


@given(st.integers(0, 200), st.sampled_from(sorted(NETWORKS)))
@settings(max_examples=15, deadline=None)
def test_no_more_nodes_are_allocated_than_there_are(seed: int, name: str) -> None:
    state = drawn_state(seed)
    step = NETWORKS[name].allocate(state)
    assert (step <= state.last_step).all()
    assert state.allocated(step).sum() <= state.nodes  # so at most nodes + 1 inferences


def test_after_the_empty_choice_nothing_more_is_allocated() -> None:
    state, network = drawn_state(3), MetisNetwork.drawn(np.random.default_rng(0))
    stop = network.parts["stop_logit"]
    always = replace(stop, biases=(stop.biases[0], np.array([1e9])))
    assert not replace(network, parts={**network.parts, "stop_logit": always}).allocate(state).any()


@given(st.integers(0, 200))
@settings(max_examples=10, deadline=None)
def test_every_action_raises_the_allocation_of_exactly_one_job_by_one_node(seed: int) -> None:
    state = drawn_state(seed)
    step = np.zeros(state.jobs, dtype=np.int64)
    place = [one.name for one in FEATURES].index("allocated")
    before, _ = state.encode(step)
    for job in np.flatnonzero(state.allowed(step)).tolist():
        after, _ = state.encode(step + (np.arange(state.jobs) == job))
        change = after[:, place] - before[:, place]
        assert change[job] == pytest.approx(1 / state.nodes)
        assert np.delete(change, job).tolist() == [0] * (state.jobs - 1)


def test_swapping_two_jobs_swaps_their_logits() -> None:
    features, cluster = drawn_state(5).encode(np.zeros(drawn_state(5).jobs, dtype=np.int64))
    swapped = features[[1, 0, *range(2, len(features))]]
    before, after = SHIPPED.logits(features, cluster), SHIPPED.logits(swapped, cluster)
    assert after[[1, 0]] == pytest.approx(before[:2], rel=1e-12)
    assert after[2:] == pytest.approx(before[2:], rel=1e-12)


@given(st.integers(0, 200))
@settings(max_examples=5, deadline=None)
def test_rewards_are_not_negative_and_those_of_a_job_sum_to_one(seed: int) -> None:
    jobs = draw_jobs(np.random.default_rng(seed), jobs=6, nodes=8, load=1.0)
    found = play(jobs, 8, slaq)
    assert min(found.rewards) >= 0
    assert sum(found.rewards) == pytest.approx(6)
    assert max(found.decisions) <= 8


def test_one_job_gets_nodes_as_long_as_they_speed_it_up() -> None:
    """n / (1 + 0.1 n (n − 1)) is largest at n = 3."""
    state = SlotWorld(jobs_of(5.0, slope=(0.0, 0.1)), 8).state()
    assert state.allocated(slaq(state)).tolist() == [3]
    assert state.allocated(SHIPPED.allocate(state)).tolist() == [3]


@pytest.mark.parametrize("allocate", [slaq, SHIPPED.allocate], ids=["slaq", "shipped"])
def test_of_two_like_jobs_the_one_at_the_start_of_its_curve_gets_most_nodes(allocate: object) -> None:
    world = SlotWorld(jobs_of(20.0, 20.0), 8)
    world.done[1] = 30.0
    state = world.state()
    first, second = state.allocated(allocate(state))  # type: ignore[operator]
    assert first > second


def test_an_exhaustive_allocation_is_at_least_as_good_in_its_slot_as_any_other() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        state = SlotWorld(replace(draw_jobs(rng, jobs=4, nodes=8, load=1.0), arrival=np.zeros(4, dtype=int)), 8).state()
        rows = np.arange(4)
        best = state.decrease[rows, exhaustive(state)].sum()
        for allocate in (*BASELINES.values(), SHIPPED.allocate):
            assert state.decrease[rows, allocate(state)].sum() <= best + 1e-9
        assert state.decrease[rows, SHIPPED.allocate(state)].sum() >= 0.95 * best
    with pytest.raises(ValueError, match="at most 4 jobs"):
        exhaustive(SlotWorld(jobs_of(1.0, 1.0, 1.0, 1.0, 1.0), 8).state())


def test_a_change_of_nodes_costs_a_checkpoint() -> None:
    world = SlotWorld(jobs_of(1.0, slope=(0.0, 0.0)), 8)
    world.advance(np.array([4]))
    world.advance(np.array([4]))
    assert world.done[0] == pytest.approx(4 * (1 - 30 / 1800) + 4)


def test_times_to_a_quality_are_those_of_the_curve() -> None:
    jobs = jobs_of(20.0, slope=(0.0, 0.0), most=1)
    found = play(jobs, 8, slaq)
    assert jobs.quality(jobs.steps_to(0.9)) == pytest.approx([0.9])
    assert found.time_to[0, 0] == pytest.approx(jobs.steps_to(0.9)[0] + 30 / 1800)
    assert found.completion[0] == pytest.approx(40 + 30 / 1800)


def test_every_decision_of_a_slot_has_the_return_of_the_slot_discounted_by_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.metis import training

    episodes, learnt, plain = [], [], training.episode

    def remembered(*arguments: Any) -> Any:
        episodes.append(plain(*arguments))
        return episodes[-1]

    monkeypatch.setattr(training, "episode", remembered)
    monkeypatch.setattr(training, "JOBS", 5)
    work = training.MetisTraining(load_scenario(Path("examples/learning/metis.toml")), 1, np.random.default_rng(0))
    monkeypatch.setattr(work, "_learn", lambda decisions, returns, step: learnt.extend(returns.tolist()))
    work.train(0)
    expected = [
        sum(0.95**u * reward for u, reward in enumerate(rewards[one.slot :]))
        for decisions, rewards in episodes
        for one in decisions
    ]
    assert learnt == pytest.approx(expected)
    slots = [one.slot for one in episodes[0][0]]
    assert len(slots) > 2 * len(set(slots))  # several decisions of a slot, all with its return


def test_the_reward_for_time_adds_up_to_minus_the_slots_to_90_percent_and_a_tenth_of_those_beyond() -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.metis.training import BEYOND, TIME_SCALE, episode

    jobs = replace(jobs_of(5.0, 2.0, 9.0), arrival=np.array([0, 1, 3]))

    def choose(state: SlotState, step: Any, x: Floats, c: Floats, allowed: Any) -> int:
        return int(np.argmax(allowed))

    def allocate(state: SlotState) -> Any:
        step = np.zeros(state.jobs, dtype=np.int64)
        while (some := state.allowed(step)).any():
            step[int(np.argmax(some))] += 1
        return step

    rewards = episode(jobs, 8, choose, "time")[1]
    run = play(jobs, 8, allocate)
    spent = run.time_to[0] + BEYOND * (run.completion - run.time_to[0])
    assert sum(rewards) == pytest.approx(-TIME_SCALE * spent.sum()) and max(rewards) <= 0
    assert sum(episode(jobs, 8, choose, "loss")[1]) == pytest.approx(3)


def test_the_logits_of_training_are_those_of_inference_up_to_rounding() -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.metis.training import MetisTraining

    work = MetisTraining(load_scenario(Path("examples/learning/metis.toml")), 1, np.random.default_rng(0))
    state = drawn_state(4)
    seen = state.encode(np.zeros(state.jobs, dtype=np.int64))
    assert work.network(np.matmul).logits(*seen) == pytest.approx(work.network().logits(*seen), rel=1e-9)


def test_rewards_that_are_not_numbers_end_the_training_and_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.metis import training
    from eunomia.learning.training import train

    plain = training.episode
    monkeypatch.setattr(training, "episode", lambda *given: (plain(*given)[0], [np.nan] * 2000))
    monkeypatch.setattr(training, "JOBS", 5)
    with pytest.raises(ValueError, match=r"after 1 steps the weights .* are not finite numbers"):
        train("metis", load_scenario(Path("examples/learning/metis.toml")), tmp_path / "m.safetensors", steps=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [1, 513])
def test_a_cluster_that_is_too_small_or_too_large_to_train_on_is_refused(count: int) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.metis.training import MetisTraining

    cluster = {"nodes": [{"type": "gpu", "count": count, "accelerators": 1}]}
    scenario = scenario_from_dict({"cluster": cluster, "workload": {"generator": "poisson"}}, Path.cwd())
    with pytest.raises(ValueError, match="2 to 512 accelerators"):
        MetisTraining(scenario, 1, np.random.default_rng(0))


def test_the_order_of_a_slot_s_decisions_does_not_change_the_loss() -> None:
    torch = pytest.importorskip("torch", reason="training needs torch")
    from eunomia.learning.metis.training import MetisTraining, _batch, episode, slot_returns

    work = MetisTraining(load_scenario(Path("examples/learning/metis.toml")), 1, np.random.default_rng(0))
    decisions, rewards = episode(jobs_of(5.0, 5.0), 8, lambda state, step, x, c, allowed: int(np.argmax(allowed)))
    returns = torch.tensor(slot_returns(rewards)[[one.slot for one in decisions]], dtype=torch.float32)
    inside = np.flatnonzero([one.slot == 0 for one in decisions])
    order = np.arange(len(decisions))
    order[inside] = inside[::-1]
    assert len(inside) > 2

    def loss(rows: object) -> float:
        batch = _batch([decisions[k] for k in rows])  # type: ignore[attr-defined]
        return float(work._loss(0.01, *batch, returns[rows] - 1.0, returns[rows]).detach())

    assert loss(order) == pytest.approx(loss(np.arange(len(decisions))), rel=1e-6)


def test_the_trained_network_widens_a_job_alone_as_far_as_it_pays_in_nine_of_ten_cases() -> None:
    rng, right = np.random.default_rng(7), 0
    for _ in range(40):
        jobs = jobs_of(rng.uniform(2.0, 20.0), slope=(rng.uniform(0.02, 0.2), rng.uniform(0.01, 0.1)))
        state = SlotWorld(jobs, 8).state()
        right += int(SHIPPED.allocate(state)[0] == np.argmax(state.decrease[0]))
    assert right >= 36


def test_a_model_of_other_features_is_refused_by_name() -> None:
    model = load_model("", "metis")
    other = replace(model.header, features=(*FEATURES[:-1], Feature(name="temperature")))
    with pytest.raises(ValueError, match="'waiting'"):
        MetisNetwork.of(replace(model, header=other))


def test_a_slot_of_no_length_is_refused() -> None:
    with pytest.raises(ValueError, match="slot_s"):
        Metis(slot_s=0.0)


def elastic_view(speed: Floats, *, left: tuple[float, ...], capacity: float, held: tuple[int, ...]) -> View:
    """Jobs of 1,000 steps and one curve, that can run on 4, 1 or 2 accelerators of one type; speed (job, shape)."""
    jobs = len(left)
    return View(
        at=7200.0, types=("gpu",), jobs=jobs, memory={"metis_held": np.array(held, dtype=float)},
        columns={
            "shapes": np.tile([4, 1, 2], (jobs, 1)), "shape_throughput": speed[:, :, None],
            "capacity": np.array([capacity]), "remaining": np.array(left), "total": np.full(jobs, 1000.0),
            "loss_curve": np.tile([1.0, 0.1, 8.0], (jobs, 1)), "submitted": np.zeros(jobs),
        },
    )  # fmt: skip


@pytest.mark.parametrize("capacity", [1.0, 4.0, 5.0, 7.0, 16.0])
def test_the_policy_gives_elastic_jobs_shapes_within_the_cluster_and_most_where_the_loss_falls(capacity: float) -> None:
    speed = np.tile([0.16, 0.05, 0.09], (3, 1))
    speed[2] = 0.05  # no faster with more accelerators
    view = elastic_view(speed, left=(1000.0, 150.0, 1000.0), capacity=capacity, held=(0, 0, 0))
    rows = Metis().decide(view).rows
    assert rows.shape is not None
    size = np.zeros(3, dtype=int)
    size[rows.job] = view.shapes[rows.job, rows.shape]
    assert size.sum() <= capacity and set(size.tolist()) <= {0, 1, 2, 4}
    assert size[0] >= size[1]
    if capacity <= 7:  # each accelerator has a better use than the third job's second one
        assert size[0] >= size[2] and size[2] <= 1
    else:
        assert size[0] == 4


def test_a_play_ends_with_an_error_once_an_allocation_gives_the_jobs_that_are_left_nothing() -> None:
    jobs = draw_jobs(np.random.default_rng(3), jobs=5, nodes=8, load=0.8)

    def all_but_the_last(state: SlotState) -> Any:
        return slaq(state) if state.jobs > 1 else np.zeros(state.jobs, dtype=np.int64)

    with pytest.raises(NoNodesGiven, match=r"^1 jobs have had no node for 1,001 slots"):
        play(jobs, 8, all_but_the_last)


def test_on_its_plateau_a_curve_falls_a_twentieth_as_fast_and_ends_where_it_would_without() -> None:
    plain = jobs_of(5.0, steps=100.0)
    jobs = replace(plain, plateau=np.array([[0.2, 0.6]]))  # of 100 steps, 40 that count as 2: all as 62
    along = np.array([[0.0, 20.0, 60.0, 100.0]]), np.array([[0.0, 20.0, 22.0, 62.0]]) * 100 / 62
    assert jobs.quality(along[0]) == pytest.approx(plain.quality(along[1]))
