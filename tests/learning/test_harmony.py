"""Harmony: the invariants of its state, actions and rewards; its baselines; the shipped model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.learning.harmony.baselines import (
    baselines,
    exhaustive_interval,
    load_balancing,
    random_choice,
    tetris,
)
from eunomia.learning.harmony.policy import load_network
from eunomia.learning.harmony.state import (
    PlacementState,
    action_features,
    apart_fraction,
    place_all,
    see_actions,
    see_jobs,
)
from eunomia.learning.harmony.world import (
    PsCluster,
    PsTrace,
    Truth,
    WorldConfig,
    draw_trace,
    relative_speeds,
    run_trace,
    synthetic_truth,
)
from eunomia.learning.perceptron import masked_softmax
from eunomia.scenario import scenario_from_dict

SIX = np.tile([8.0, 2.0], (6, 1))
CONFIG = WorldConfig(truth=synthetic_truth(), capacity=SIX, jobs=20)


def a_state(d: np.ndarray[Any, Any] | None = None) -> PlacementState:
    """Six jobs on six servers, as in the example of the paper: 3 workers of (1, 2), 2 parameter servers of (0, 1)."""
    return PlacementState(
        x=np.eye(8)[:6], r=np.tile([3.0, 1, 2, 2, 0, 1], (6, 1)), v=np.full((6, 2), 8.0),
        d=np.zeros((6, 12)) if d is None else d, new=np.ones(6, dtype=bool), capacity=np.full((6, 2), 8.0),
    )  # fmt: skip


def test_the_state_has_the_published_shapes_and_encodes_the_published_example() -> None:
    state = a_state()
    assert state.x.shape == (6, 8) and state.r.shape == (6, 6) and state.d.shape == (6, 12)
    for action in ((1, 0, 3), (1, 1, 3), (4, 0, 3), (4, 0, 3), (4, 1, 3)):
        state.place(action)
    assert state.d[3].tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 2, 1, 0, 0]
    assert state.w.tolist() == [0, 1, 0, 0, 2, 0] and state.p.tolist() == [0, 1, 0, 0, 1, 0]
    assert state.v[3].tolist() == [8 - 3, 8 - 3 * 2 - 2]


def test_infeasible_actions_have_probability_zero_and_capacity_is_kept() -> None:
    rng, config = np.random.default_rng(0), CONFIG
    network = load_network("")
    cluster = PsCluster(config, draw_trace(config, 0))

    def checked(state: PlacementState, actions: Any) -> int:
        held = (state.tasks[..., None] * state.demand()).sum(axis=(1, 2))
        assert (held <= SIX + 1e-9).all()
        np.testing.assert_allclose(state.v, SIX - held, atol=1e-9)
        everything = np.stack(np.meshgrid(*map(np.arange, (len(state.x), 2, 6)), indexing="ij"), axis=-1).reshape(-1, 3)
        legal = (everything[:, None] == actions).all(axis=2).any(axis=1)
        chances = masked_softmax(network.scores(state, everything), legal)
        assert (chances[~legal] == 0).all() and chances.sum() == pytest.approx(1)
        left = state.quota() - np.stack((state.w, state.p), axis=1)
        for n, k, m in everything[legal]:
            assert left[n, k] > 0 and state.new[n] and (state.v[m] + 1e-9 >= state.demand()[n, k]).all()
        return int(rng.integers(len(actions)))

    for _ in range(6):
        cluster.interval(checked)
        used = (cluster.tasks[:, :, :, None] * cluster.demand).sum(axis=(1, 2))
        assert (used <= SIX + 1e-9).all()


def test_there_is_one_inference_for_each_task_and_a_job_that_does_not_fit_whole_is_taken_back() -> None:
    calls = []

    def counted(state: PlacementState, actions: Any) -> int:
        calls.append(1)
        return 0

    state = PlacementState(
        x=np.eye(2), r=np.array([[3.0, 2, 1, 1, 1, 0], [1, 2, 1, 1, 1, 0]]), v=np.array([[8.0, 2.0]]),
        d=np.zeros((1, 4)),
        new=np.ones(2, dtype=bool), capacity=np.array([[8.0, 2.0]]),
    )  # fmt: skip
    assert place_all(state, counted) == [1]
    assert state.tasks[0].tolist() == [[0, 0], [1, 1]] and state.v.tolist() == [[5, 1]]
    assert len(calls) <= 4 + 2
    assert state.new.tolist() == [True, False]


def test_of_more_jobs_than_the_window_the_oldest_are_considered_and_the_others_wait() -> None:
    config = replace(CONFIG, window=4, jobs=12, arrivals=3.0)
    cluster = PsCluster(config, draw_trace(config, 0))
    cluster.trace.arrival[:] = np.sort(np.arange(12) // 6)
    seen: list[set[int]] = []
    while not cluster.over:
        here = np.flatnonzero((cluster.trace.arrival <= cluster.now) & (cluster.left > 0))
        assert cluster.present().tolist() == here[:4].tolist()
        before = cluster.placed.copy()
        cluster.interval(load_balancing)
        seen.append(set(np.flatnonzero(cluster.placed & ~before).tolist()))
    assert max(map(len, seen)) <= 4 and sorted(set().union(*seen)) == list(range(12))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster": {"nodes": [{"type": "gpu", "accelerators": 2, "cpus": 8}]}}, "cluster.*3 workers.*does not fit"),
        ({"workload": {"generator": "poisson", "rate_per_hour": "x"}}, "workload.rate_per_hour.*a number of jobs"),
        ({"workload": {"generator": "poisson", "rate_per_hour": 0}}, "workload.rate_per_hour.*at least"),
        ({"workload": {"generator": "poisson", "rate_per_hour": float("inf")}}, "workload.rate_per_hour"),
        ({"workload": {"generator": "poisson", "jobs": 0}}, "workload.jobs.*a whole number from 1"),
        ({"workload": {"trace": "jobs.csv"}}, "workload.trace.*jobs that are generated"),
        ({"physics": {}}, "physics.neighbours"),
    ],
)
def test_a_scenario_that_it_cannot_learn_from_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    plain = {
        "cluster": {"nodes": [{"type": "gpu", "count": 3, "accelerators": 2, "cpus": 8}]},
        "workload": {"generator": "poisson", "jobs": 8, "rate_per_hour": 3.0},
        "throughputs": {"source": "uniform"}, "physics": {"neighbours": "synthetic"},
    }  # fmt: skip
    assert WorldConfig.of(scenario_from_dict(plain, Path.cwd())).jobs == 8
    with pytest.raises(InvalidInput, match=message):
        WorldConfig.of(scenario_from_dict({**plain, **changes}, Path.cwd()))


def test_rewards_are_fractions_of_jobs_and_a_job_s_whole_life_pays_one() -> None:
    cluster, total = PsCluster(CONFIG, draw_trace(CONFIG, 1)), 0.0
    while not cluster.over:
        rows = cluster.place(load_balancing)
        reward = cluster.play(rows)
        assert 0 <= reward <= len(rows)
        total += reward
    assert total == pytest.approx(CONFIG.jobs)
    assert (cluster.finished >= cluster.trace.arrival + cluster.trace.alone - 1e-9).all()
    assert not cluster.tasks.any()


def test_speeds_are_those_worked_by_hand() -> None:
    truth = Truth(
        ("a", "b"), np.array([[0.0, 1.0], [0.5, 0.0]]), np.zeros((2, 2, 1)), np.zeros(1), np.array([0.2, 0.0])
    )
    tasks = np.array(
        [[[1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]]
    )  # a: worker on both servers, ps on the second
    found = relative_speeds(np.array([0, 1]), tasks, truth.extra, truth.loads, truth.sensitivity, truth.communication)
    assert found.tolist() == pytest.approx([1 / (2.0 * (1 + 0.2 * 2 * 0.5)), 1 / 1.5])
    loads = replace(
        truth, extra=np.zeros((2, 2)), loads=np.array([[[0.7], [0.1]], [[0.6], [0.0]]]), sensitivity=np.ones(1)
    )
    found = relative_speeds(np.array([0, 1]), tasks, loads.extra, loads.loads, loads.sensitivity, np.zeros(2))
    assert found.tolist() == pytest.approx([1 / 1.3, 1 / 1.3])  # 0.7 + 0.6 on the first server
    assert apart_fraction(np.moveaxis(tasks, 1, 0)).tolist() == [0.5, 0.0]


def test_without_interference_and_locality_every_placer_has_the_same_jct_within_noise() -> None:
    plain = replace(CONFIG, truth=CONFIG.truth.without_effects())
    placers = [*baselines(plain).values(), load_network("").choose]
    means = [np.mean([run_trace(plain, draw_trace(plain, seed), by).mean_jct() for seed in range(3)]) for by in placers]
    assert max(means) / min(means) < 1.03


def test_load_balancing_spreads_and_tetris_packs() -> None:
    def servers(by: Any) -> int:
        cluster = PsCluster(CONFIG, draw_trace(CONFIG, 3))
        cluster.trace.arrival[:] = np.arange(20) // 3
        cluster.place(by)
        return int(cluster.tasks.any(axis=(1, 2)).sum())

    assert servers(tetris) < servers(load_balancing)


def test_least_interference_beats_the_heuristics_that_do_not_look_at_types() -> None:
    config, placers = replace(CONFIG, jobs=60), baselines(CONFIG)
    jct = {
        by: np.mean([run_trace(config, draw_trace(config, seed), placers[by]).mean_jct() for seed in range(2)])
        for by in placers
    }
    blind = min(jct[by] for by in ("load balancing", "Tetris", "random"))
    assert max(jct["LIF-Line"], jct["LIF-Quad"]) < 0.9 * blind


@pytest.mark.slow
def test_the_exhaustive_placer_finds_the_best_of_many_random_placements() -> None:
    small = replace(CONFIG, capacity=SIX[:3], max_workers=2, min_servers=1, max_servers=1, jobs=6, arrivals=1.5)
    for seed in range(3):
        best = PsCluster(small, draw_trace(small, seed))
        first = exhaustive_interval(best)
        for k in range(60):
            other = PsCluster(small, draw_trace(small, seed))
            speeds = other.speeds(other.place(random_choice(np.random.default_rng(k))))
            now = PsCluster(small, draw_trace(small, seed))
            assert speeds.sum() <= _best_sum(now) + 1e-9
        assert first >= 0


def _best_sum(cluster: PsCluster) -> float:
    """The Σ of speeds that the exhaustive placer reaches at once."""
    found = []
    cluster.play = lambda rows, speeds=None: found.append(cluster.speeds(rows).sum()) or 0.0  # type: ignore[method-assign,func-returns-value]
    exhaustive_interval(cluster)
    return float(found[0])


def test_the_inputs_do_not_depend_on_the_order_of_jobs() -> None:
    rng = np.random.default_rng(2)
    x, d = np.eye(8)[rng.integers(0, 8, 5)], rng.integers(0, 2, (6, 10)).astype(float)
    order = rng.permutation(5)
    shuffled = d.reshape(6, 5, 2)[:, order].reshape(6, 10)
    for one, other in zip(see_jobs(x, d), see_jobs(x[order], shuffled), strict=True):
        np.testing.assert_array_equal(other, one[order])
    assert see_actions(a_state(), np.array([[0, 0, 0]])).shape == (1, len(action_features(CONFIG.truth.types)))


# ---- the shipped model -----------------------------------------------------------------------------------------------


def toy(types: tuple[str, str], seed: int) -> PsCluster:
    """Two jobs of one worker and one parameter server on two servers, in any order, of any length."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation([CONFIG.truth.types.index(name) for name in types])
    trace = PsTrace(kinds, np.ones((2, 2), dtype=np.int64), rng.uniform(1, 3, 2), np.zeros(2, dtype=np.int64))
    return PsCluster(replace(CONFIG, capacity=SIX[:2], jobs=2), trace)


def episodes(types: tuple[str, str], holds: Callable[[PsCluster], bool]) -> float:
    """The fraction of 40 episodes in which something holds after the placement."""
    found = []
    for seed in range(40):
        cluster = toy(types, seed)
        cluster.place(load_network("").choose)
        found.append(holds(cluster))
    return float(np.mean(found))


def test_the_shipped_model_separates_an_interfering_pair() -> None:
    assert episodes(("resnext", "ctc"), lambda c: not c.tasks.any(axis=2).all(axis=1).any()) >= 0.95


def test_the_shipped_model_puts_worker_and_parameter_server_of_a_job_together() -> None:
    assert episodes(("resnet", "wlm"), lambda c: not apart_fraction(np.moveaxis(c.tasks, 1, 0)).any()) >= 0.95


def test_the_shipped_model_beats_its_baselines_on_unseen_traces() -> None:
    config = replace(CONFIG, jobs=60)

    def mean(by: Any) -> float:
        return float(
            np.mean([run_trace(config, draw_trace(config, seed), by).mean_jct() for seed in range(2000, 2003)])
        )

    assert mean(load_network("").choose) < 0.85 * min(mean(load_balancing), mean(tetris))
