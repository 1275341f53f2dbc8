"""Symphony: its world, counters, Bayesian network and policy; bad input by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.learning.model_file import ModelFile, ModelHeader
from eunomia_reproduction.symphony import belief, counters, machine
from eunomia_reproduction.symphony.network import FEATURES, Symphony, SymphonyNetwork, architecture
from eunomia_reproduction.symphony.schedulers import KernelScheduler, Oracle, Sparrow, baselines, play
from eunomia_reproduction.symphony.world import NO_OP, KernelDecision, KernelMoment, KernelWorld, draw_workload


def schedulers(seed: int) -> dict[str, KernelScheduler]:
    drawn = SymphonyNetwork.drawn(np.random.default_rng(1))
    twin = SymphonyNetwork.drawn(np.random.default_rng(1), black_box=True)
    return {**baselines(seed), "symphony": Symphony(drawn), "black box": Symphony(twin)}


def moments(seed: int, tasks: int = 40) -> Iterator[KernelMoment]:
    world = KernelWorld(draw_workload(np.random.default_rng(seed), tasks=tasks, load=1.0), np.random.default_rng(seed))
    for moment in world.moments():
        yield moment
        world.carry_out(Oracle().handle(moment))


# ---- the world -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(schedulers(0)))
@given(st.integers(0, 1000))
@settings(max_examples=2, deadline=None)
def test_every_task_ends_after_its_parents_on_a_processor_that_implements_it(name: str, seed: int) -> None:
    work = draw_workload(np.random.default_rng(seed), tasks=14, load=1.5)
    world = play(work, schedulers(seed)[name], seed)
    for task, parents in enumerate(work.parents):
        assert all(world.begin[task] >= world.end[parent] for parent in parents)
        assert np.isfinite(work.seconds[task, world.processor[task]])
    for u in range(len(machine.PROCESSORS)):  # kernels are not preempted, one at a time
        own = np.flatnonzero(world.processor == u)
        own = own[np.argsort(world.begin[own])]
        assert (world.begin[own][1:] >= world.end[own][:-1]).all()
    assert (world.response >= 1 - 1e-9).all()


def test_waiting_while_nothing_runs_and_other_illegal_decisions_are_refused_and_change_nothing() -> None:
    work = draw_workload(np.random.default_rng(3), tasks=20, load=1.0)
    world = KernelWorld(work, np.random.default_rng(0))
    moment = next(world.moments())
    assert moment.must_act
    only_cpu = next(k for k, one in enumerate(machine.KERNELS) if not one.seconds[machine.GPU])
    cases = [(KernelDecision(NO_OP), "for ever"), (KernelDecision(19, 0), "not among the ready"),
             (KernelDecision(0, 99), "does not exist")]  # fmt: skip
    work.kernel[0] = only_cpu
    for decision, words in [*cases, (KernelDecision(0, 4), "no implementation")]:
        with pytest.raises(ValueError, match=words):
            world.carry_out(decision)
    assert np.isinf(world.begin).all()
    world.carry_out(KernelDecision(0, 0))
    world.carry_out(KernelDecision(NO_OP))  # legal now


def test_where_processors_are_even_each_kernel_takes_2_to_8_times_as_long_on_its_slowest() -> None:
    near = machine.EVEN.seconds.min(axis=2)
    slowest = np.where(np.isfinite(near), near, 0.0).max(axis=1)
    apart = {one.name: ratio for one, ratio in zip(machine.KERNELS, slowest / machine.EVEN.best_s, strict=True)}
    several = [ratio for one, ratio in zip(machine.KERNELS, apart.values(), strict=True) if any(one.seconds[1:])]
    assert len(several) == 5 and min(several) >= 2 and max(several) <= 8
    assert (machine.EVEN.demand == machine.STANDARD.demand).all()
    work = draw_workload(np.random.default_rng(1), tasks=12, load=1.0, machine=machine.EVEN)
    world = play(work, baselines(1)["oracle"], 1)
    alone = machine.EVEN.seconds[work.kernel, world.processor, work.data]
    assert (world.end - world.begin >= alone * (1 - 1e-9)).all()


def test_an_fpga_is_reconfigured_before_it_runs_another_kernel() -> None:
    work = draw_workload(np.random.default_rng(0), tasks=1, load=1.0)
    work.kernel[0] = 0
    world = KernelWorld(work, np.random.default_rng(0))
    fpga = next(u for u, one in enumerate(machine.PROCESSORS) if one.kind == machine.FPGA)
    for moment in world.moments():
        world.carry_out(KernelDecision(0, fpga) if moment.idle[fpga] else KernelDecision(NO_OP))
    assert world.begin[0] == pytest.approx(work.arrival[0] + machine.RECONFIGURE_S)


class Reconfigures(Sparrow):
    """Chooses a reconfiguration wherever one is legal, else waits if it may, else chooses the first that is legal."""

    def handle(self, moment: KernelMoment) -> KernelDecision:
        legal = moment.legal & moment.reconfigures
        if not legal.any() and not moment.must_act:
            return KernelDecision(NO_OP)
        legal = legal if legal.any() else moment.legal
        task, u = np.argwhere(legal)[0].tolist()
        return KernelDecision(int(moment.tasks[task]), u)


def test_no_choice_of_legal_actions_reconfigures_for_ever() -> None:
    drawn = draw_workload(np.random.default_rng(0), tasks=8, load=1.0)
    work = replace(drawn, parents=((),) * 8, children=((),) * 8, arrival=np.zeros(8))
    work.kernel[:] = [0, 2, 4, 0, 2, 4, 0, 2]  # all have an implementation for FPGAs
    world = KernelWorld(work, np.random.default_rng(0))
    for count, moment in enumerate(world.moments()):
        assert count < 200
        world.carry_out(Reconfigures(np.random.default_rng(0)).handle(moment))
    assert np.isfinite(world.end).all()


@pytest.mark.parametrize(("batch", "begins"), [(1, [2.0, 4.0, 6.0]), (2, [2.0, 2.0, 4.0]), (3, [2.0, 2.0, 2.0])])
def test_kernels_begin_when_the_decision_is_there_and_a_batch_is_charged_once(batch: int, begins: list[float]) -> None:
    drawn = draw_workload(np.random.default_rng(0), tasks=3, load=1.0)
    work = replace(drawn, parents=((),) * 3, children=((),) * 3, arrival=np.zeros(3))
    work.kernel[:] = 0
    world = KernelWorld(work, np.random.default_rng(0), decision_s=2.0, batch=batch)
    moments = world.moments()
    for task in range(3):
        moment = next(moments)
        world.carry_out(KernelDecision(task, int(np.flatnonzero(moment.legal[0] & ~moment.reconfigures[0])[0])))
    assert world.begin.tolist() == begins


def test_a_wait_in_whose_time_a_kernel_ends_is_decided_anew() -> None:
    drawn = draw_workload(np.random.default_rng(0), tasks=2, load=1.0)
    work = replace(drawn, parents=((),) * 2, children=((),) * 2, arrival=np.zeros(2))
    world = KernelWorld(work, np.random.default_rng(0), decision_s=1e4)
    moments = world.moments()
    next(moments)
    world.carry_out(KernelDecision(0, 0))
    next(moments)
    world.carry_out(KernelDecision(NO_OP))  # 0 ends while it is decided
    assert np.isfinite(world.end[0])
    assert next(moments).at == 2e4


def test_two_kernels_that_need_0_9_of_a_link_are_1_8_times_as_slow_and_threads_of_a_core_1_67_at_most() -> None:
    demand = np.zeros((2, len(machine.RESOURCES)))
    demand[:, machine.PCIE] = 0.9
    assert machine.slowdown(demand.sum(axis=0), demand) == pytest.approx([1.8, 1.8])
    demand = np.zeros((2, len(machine.RESOURCES)))
    demand[:, 0] = 0.9
    assert machine.slowdown(demand.sum(axis=0), demand) == pytest.approx([1.67, 1.67])
    assert machine.slowdown(demand[0] * 0.3, demand[0] * 0.3) == 1.0


def test_the_same_seed_gives_the_same_run() -> None:
    work = draw_workload(np.random.default_rng(5), tasks=14, load=1.0)
    one, other = (play(work, schedulers(0)["symphony"], 7) for _ in range(2))
    assert one.end.tobytes() == other.end.tobytes()


# ---- the Bayesian network --------------------------------------------------------------------------------------------


def test_samples_have_the_mean_and_the_variance_of_student_t() -> None:
    readings = np.random.default_rng(0).normal(5.0, 2.0, (8, 3))
    drawn = belief.sample_values(readings, np.random.default_rng(1), 400_000)
    assert drawn.mean(axis=0) == pytest.approx(readings.mean(axis=0), abs=0.01)
    expected = readings.var(axis=0, ddof=1) / 8 * 7 / 5  # S² / N · (N − 1) / (N − 3)
    assert drawn.var(axis=0) == pytest.approx(expected, rel=0.02)


def test_fewer_than_four_readings_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        belief.sample_values(np.ones((3, 2)), np.random.default_rng(0))


def test_the_sampled_gradient_of_a_chain_is_the_analytic_one_within_two_per_cent() -> None:
    """Counter → link → belief, where the link is nearly linear: ∂E[σ(w v)]/∂w = σ'(0) E[v] for small w."""
    values = np.zeros((10_000, counters.COUNTERS))
    traffic = belief.LINK_PARENTS[0][0]
    values[:, traffic] = np.random.default_rng(0).normal(2.0, 0.3, 10_000)
    found = belief.link_gradient(np.array([1e-3, 0.0, 0.0]), values, 0)
    assert found[0] == pytest.approx(0.25 * 2.0, rel=0.02)
    assert found[2] == pytest.approx(0.25, rel=0.02)


@pytest.mark.parametrize("link", [0, 1])
def test_the_sampled_gradient_is_that_of_full_inference_within_two_per_cent(link: int) -> None:
    rng = np.random.default_rng(link)
    mean, spread = rng.uniform(0.2, 0.8, counters.COUNTERS), rng.uniform(0.01, 0.1, counters.COUNTERS)
    weight = rng.normal(size=3)
    drawn = mean + spread * rng.standard_normal((10_000, counters.COUNTERS))
    full = belief.by_inference(weight, link, mean, spread)
    assert belief.link_gradient(weight, drawn, link) == pytest.approx(full, rel=0.02)


def test_a_network_with_a_cycle_is_no_polytree() -> None:
    assert belief.is_polytree({"a": (), "b": (), "c": ("a", "b"), "d": ("c",)})
    assert not belief.is_polytree({"n": (), "a": ("n",), "b": ("n",), "c": ("a", "b")})


@given(st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_beliefs_are_shares(seed: int) -> None:
    values = np.random.default_rng(seed).normal(0.5, 2.0, (4, counters.COUNTERS))
    found = belief.utilisations(belief.initial(), values)
    assert found.shape == (4, len(machine.RESOURCES)) and (found >= 0).all() and (found <= 1).all()


START = belief.initial()
NODES = {  # resource, a counter that enters it, its weight and the constant
    "core": (0, counters.CORES_AT, *START["core"]),
    "link, traffic": (machine.PCIE, belief.LINK_PARENTS[0][0], START["link"][0][0], START["link"][0][2]),
    "link, requests": (machine.PCIE + 1, belief.LINK_PARENTS[1][1], START["link"][1][1], START["link"][1][2]),
    "network card": (machine.NIC, counters.NIC_AT, *START["nic"]),
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_are_bijections_with_the_density_of_a_change_of_variable(name: str) -> None:
    """Pr(Y = y) = Pr(X = F⁻¹(y)) |DF⁻¹(y)|, with the other counters 0."""
    row, counter, weight, constant = NODES[name]
    values = np.zeros((200_000, counters.COUNTERS))
    mean, spread = -constant / weight, 1.0 / weight
    values[:, counter] = np.sort(np.random.default_rng(0).normal(mean, spread, len(values)))
    drawn = belief.utilisations(START, values)[:, row]
    assert (np.diff(drawn) >= 0).all() and len(np.unique(drawn)) > 0.99 * len(np.unique(values[:, counter]))
    for y in (0.4, 0.5, 0.6):
        x = (np.log(y / (1 - y)) - constant) / weight
        density = np.exp(-(((x - mean) / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi)) / (weight * y * (1 - y))
        inside = np.searchsorted(drawn, y + 0.01) - np.searchsorted(drawn, y - 0.01)
        assert inside / len(drawn) / 0.02 == pytest.approx(density, rel=0.03)


def test_the_share_of_outstanding_requests_above_the_threshold_is_that_of_hard_counts_far_from_it() -> None:
    """The relaxed node of memory: [≥ θ] / [≥ 1], and it falls as θ rises."""
    values = np.zeros(counters.COUNTERS)
    for requests, share in ((0, 0.0), (1, 0.0), (14, 1.0)):
        at = counters.HISTOGRAM_AT + requests
        found = belief.utilisations(
            {**START, "threshold": np.full(2, 7.5)}, values + 0.9 * (np.arange(len(values)) == at)
        )
        assert found[machine.MEMORY] == pytest.approx(share, abs=0.01)
    values[counters.HISTOGRAM_AT : counters.HISTOGRAM_AT + counters.BUCKETS] = 1.0 / counters.BUCKETS
    levels = [belief.utilisations({**START, "threshold": np.full(2, k)}, values)[machine.MEMORY] for k in range(16)]
    assert (np.diff(levels) < 0).all()


def test_the_belief_about_links_that_no_counter_shows_follows_the_truth() -> None:
    network, rng = SymphonyNetwork.shipped(), np.random.default_rng(0)
    pairs = [
        (moment.load, belief.utilisations(network.beliefs, belief.sample_values(moment.counters.readings, rng)).mean(0))
        for seed in range(2)
        for moment in moments(seed)
    ]
    truth, believed = (np.array([pair[k] for pair in pairs]) for k in range(2))
    for row in (machine.PCIE, machine.PCIE + 1):
        assert np.corrcoef(np.minimum(truth[:, row], 1.0), believed[:, row])[0, 1] >= 0.9


# ---- the policy ----------------------------------------------------------------------------------------------------


def test_a_model_of_other_features_is_refused_by_the_difference() -> None:
    network = SymphonyNetwork.drawn(np.random.default_rng(0))
    sizes = architecture(black_box=False)
    header = ModelHeader(trained="symphony", architecture=sizes, features=FEATURES[1:])
    with pytest.raises(InvalidInput, match="counter0"):
        SymphonyNetwork.of(ModelFile(header=header, arrays=network.arrays()))


def test_the_state_of_the_lstm_is_zero_at_the_start_of_an_episode_and_not_later() -> None:
    policy = schedulers(0)["symphony"]
    assert isinstance(policy, Symphony) and not policy._state[0].any()
    play(draw_workload(np.random.default_rng(0), tasks=5, load=1.0), policy, 0)
    assert policy._state[0].any()
