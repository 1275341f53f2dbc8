"""Pairs on one machine and spread over several: what is believed, what the world plays, and what `solve` is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.allocation import solve
from eunomia.core.belief import Belief
from eunomia.inputs.problems import InvalidInput
from eunomia.model.arrays import Floats
from eunomia.model.events import PairsEstimated, ThroughputsLearnt
from eunomia.model.job import Job
from eunomia.model.speeds import consolidated_throughput, spread_throughput
from eunomia.model.topology import Node, Topology
from eunomia.policies import build
from eunomia.records.replay import first_difference
from eunomia.runs.simulation import simulate
from eunomia.scenario import scenario_from_dict
from eunomia.testing.small_worlds import DrawnRates, draw, play
from eunomia.throughputs import load
from eunomia.throughputs.interference import Pairs
from eunomia.throughputs.placed_throughputs import PlacedThroughputs, TableSpread
from eunomia.throughputs.placement_level import ClusterUnits

HEADER = "type,job_type,scale_factor,steps_per_s,partner_job_type,partner_steps_per_s,placement\n"
ALONE = "gpu,a,2,10,,,\ngpu,b,2,8,,,\ngpu,a,2,5,,,unconsolidated\ngpu,b,2,6,,,unconsolidated\n"
PAIR, SPREAD_PAIR = "gpu,a,2,7,b,4,\n", "gpu,a,2,2,b,1,unconsolidated\n"
BOTH = {"name": "max_min_fairness", "space_sharing": True, "placement": "sensitive"}
PACKED = {"name": "max_min_fairness", "space_sharing": True}


def written(folder: Path, rows: str) -> Any:
    """Return throughputs of a table with these rows."""
    (folder / "rates.csv").write_text(HEADER + rows)
    return load("rates.csv", ("gpu",), base=folder)


def spread(speeds: Any, job_type: str, partner: str) -> float:
    return float(spread_throughput(speeds, job_type, 2, partner)[0])


def test_a_spread_pair_is_as_measured_or_slowed_as_its_first_is_alone(tmp_path: Path) -> None:
    measured = written(tmp_path, ALONE + PAIR + SPREAD_PAIR)
    assert (spread(measured, "a", "b"), spread(measured, "b", "a")) == (2, 1)
    derived = written(tmp_path, ALONE + PAIR)
    assert (spread(derived, "a", "b"), spread(derived, "b", "a")) == (7 * 5 / 10, 4 * 6 / 8)
    assert spread(written(tmp_path, ALONE), "a", "b") == 0  # they do not fit together
    faster = written(tmp_path, ALONE + PAIR + "gpu,a,2,9,b,1,unconsolidated\n")
    assert spread(faster, "a", "b") == 7  # no place is faster than one machine


def test_the_built_in_models_know_spread_pairs() -> None:
    job_type, other = "ResNet-50 (batch size 64)", "LM (batch size 5)"
    for source in ("catalogue", "uniform"):
        speeds = load(source, ("v100",), base=Path())
        solo, packed = speeds.solo_throughput(job_type, 4), speeds.packed_throughput(job_type, other, 4)
        kept = speeds.spread_throughput(job_type, 4) / solo
        np.testing.assert_allclose(speeds.spread_throughput(job_type, 4, other), packed * kept)


def test_a_pair_that_only_a_model_knows_is_modelled_where_it_is_spread(tmp_path: Path) -> None:
    ground = ClusterUnits(Topology.of([Node(type="gpu", accelerators=2)] * 2))
    source = written(tmp_path, ALONE)
    for placement in (None, TableSpread(source)):
        speeds = PlacedThroughputs(source, ground, placement=placement, pairs=Pairs(otherwise=0.5))
        assert (speeds.packed_throughput("a", "b", 2), spread(speeds, "a", "b")) == (5, 2.5)


def test_in_the_best_place_of_gangs_that_no_machine_holds_a_pair_is_spread(tmp_path: Path) -> None:
    source = written(tmp_path, ALONE + PAIR + SPREAD_PAIR)
    ground = ClusterUnits(Topology.of([Node(type="gpu", accelerators=1)] * 4))
    speeds = PlacedThroughputs(source, ground, placement=TableSpread(source))
    assert speeds.packed_throughput("a", "b", 2).tolist() == speeds.spread_throughput("a", 2, "b").tolist() == [2]


def test_a_belief_keeps_spread_pairs_and_changes_them_with_what_is_learnt(tmp_path: Path) -> None:
    belief = Belief(written(tmp_path, ALONE + PAIR + SPREAD_PAIR))
    for number, name in enumerate("ab"):
        belief.learn(Job(job_id=name, total_steps=1.0, job_type=name, scale_factor=2, sequence=number))
    assert (belief.spread_pairs()[0, 1], belief.spread_pairs()[1, 0]) == (2, 1)
    twice = ThroughputsLearnt(("a",), np.array([2]), np.array([[20.0]]), np.array([[60.0]]), np.array([[True]]))
    belief.learn_throughputs(twice)
    assert (belief.spread_pairs()[0, 1], belief.paired()[0, 1], belief.spread_pairs()[1, 0]) == (4, 14, 1)
    belief.estimate_pairs(PairsEstimated(("b",), ("a",), np.array([[0.25]]), 1))
    assert (belief.paired()[1, 0], belief.spread_pairs()[1, 0]) == (0.25 * 8, 0.25 * 6)


def scenario_of(folder: Path, rows: str, machine: int, policy: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a scenario with two gangs of 2 on 2 accelerators, in machines of so many each."""
    written(folder, rows)
    (folder / "jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,total_steps\na,0,2,a,7200\nb,0,2,b,7200\n"
    )
    return {
        "cluster": {"nodes": [{"type": "gpu", "count": 2 // machine, "accelerators": machine}]},
        "workload": {"trace": "jobs.csv"},
        "throughputs": {"source": "rates.csv"},
        "policy": policy,
        **more,
    }


def finished(folder: Path, *said: Any, **more: Any) -> list[float]:
    result = simulate(scenario_from_dict(scenario_of(folder, *said, **more), folder))
    return [float(at) for at in result.jobs["finished_s"]]


@pytest.mark.parametrize("policy", [BOTH, PACKED])
def test_the_world_plays_the_rates_of_pairs_in_their_places(tmp_path: Path, policy: dict[str, Any]) -> None:
    """Side by side both keep 0.7 on one machine, 0.8 of less when spread; who is left has all."""
    rows = ALONE + "gpu,a,2,7,b,5.6,\ngpu,a,2,4,b,4.8,unconsolidated\n"
    ends = 7200 / 7
    assert finished(tmp_path, rows, 2, policy) == pytest.approx([ends, ends + (7200 - 5.6 * ends) / 8])
    ends = 7200 / 4.8
    assert finished(tmp_path, rows, 1, policy) == pytest.approx([ends + (7200 - 4 * ends) / 5, ends])


def test_a_pair_is_slower_where_another_gang_holds_the_machine(tmp_path: Path) -> None:
    """c, which was first, has the machine of 2 and none shares with it; a and b are side by side on two others."""
    rows = ALONE + "gpu,c,2,10,,,\ngpu,a,2,7,b,5.6,\ngpu,a,2,4,b,4.8,unconsolidated\n"
    policy = {"name": "max_throughput", "normalised": False, "space_sharing": True}
    scenario = scenario_of(tmp_path, rows, 2, policy)
    scenario["cluster"]["nodes"] += [{"type": "gpu", "count": 2, "accelerators": 1}]
    jobs = (tmp_path / "jobs.csv").read_text()
    (tmp_path / "jobs.csv").write_text(jobs.replace("\n", "\nc,0,2,c,72000\n", 1))
    result = simulate(scenario_from_dict(scenario, tmp_path))
    ends = 7200 / 4.8
    assert result.jobs["finished_s"].tolist() == pytest.approx([7200, ends + (7200 - 4 * ends) / 5, ends])


def test_a_pair_that_loses_by_being_spread_is_not_made_where_no_machine_holds_it(tmp_path: Path) -> None:
    """Spread, side by side they do 2 and 1 steps/s, in turns 2.5 and 3. Believed at 7 and 5.6 they are put together."""
    rows = ALONE + "gpu,a,2,7,b,5.6,\n" + SPREAD_PAIR
    in_turns = finished(tmp_path, rows, 1, BOTH)
    assert max(in_turns) == pytest.approx(7200 / 5 + 7200 / 6)
    misled = finished(tmp_path, rows, 1, PACKED, physics={"placement": "throughputs", "believed": False})
    assert misled[0] == pytest.approx(7200 / 2)


def test_a_run_with_both_replays(tmp_path: Path) -> None:
    scenario = {
        "cluster": {"nodes": [{"type": "v100", "count": 3, "accelerators": 4}]},
        "workload": {"generator": "philly-like", "jobs": 40, "rate_per_hour": 30},
        "policy": BOTH,
        "physics": {"placement": "throughputs", "pairs": "modelled"},
        "overheads": {"start_s": 20.0},
    }
    result = simulate(scenario, record_to=tmp_path / "record.jsonl.gz")
    assert result.record is not None
    assert first_difference(result.record) is None
    assert result.summary["jobs_finished"] == 40


@dataclass(frozen=True, kw_only=True)
class SlowWhenSpread(DrawnRates):
    """Gangs of several accelerators have half of their throughput when they are not on one machine."""

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        part = 1.0 if scale_factor == 1 else 0.5
        return np.asarray(part * consolidated_throughput(self, job_type, scale_factor, partner))


@pytest.mark.parametrize("seed", [0, 1, 3, 15])
def test_pairs_that_a_machine_holds_are_never_spread(seed: int) -> None:
    world = draw(seed, jobs=15)
    drawn = world.speeds
    assert isinstance(drawn, DrawnRates)
    speeds = SlowWhenSpread(types=drawn.types, by_kind=drawn.by_kind, scaling=drawn.scaling, shared=0.8)
    played = play(build("water_filling?space_sharing=true&placement=sensitive"), replace(world, speeds=speeds))
    assert played.counts["finished"] == 15
    node, of_type = world.topology.node, world.topology.type
    pairs = [list(start.seats) for _, start in played.starts if start.partner_id and len(start.seats) > 1]
    assert pairs
    for seats in pairs:
        largest = np.bincount(node[of_type == of_type[seats[0]]]).max()
        assert len(np.unique(node[seats])) == 1 or largest < len(seats)


@pytest.mark.parametrize("seed", range(3))
def test_where_spreading_costs_nothing_the_run_is_that_of_pairs_alone(seed: int) -> None:
    world = draw(seed, jobs=20)
    placed, plain = (
        play(build(f"max_min_fairness?space_sharing=true{more}"), world) for more in ("&placement=sensitive", "")
    )
    assert (placed.finished, placed.starts) == (plain.finished, plain.starts)
    assert placed.figures.summary == plain.figures.summary


PROBLEM: dict[str, Any] = {
    "types": ["gpu"], "capacity": [2], "scale_factor": [2, 2], "throughput": [[10.0], [8.0]],
    "throughput_apart": [[5.0], [6.0]], "accelerators_per_node": [2], "job_type": ["a", "b"],
    "pairs": [{"type": "gpu", "job_type": "a", "partner_job_type": "b", "scale_factor": 2, "steps_per_s": 7.0,
               "partner_steps_per_s": 4.0}],
}  # fmt: skip
SOLVED = "max_throughput?normalised=false&space_sharing=true&placement=sensitive"


def test_one_decision_has_pairs_in_their_best_place() -> None:
    """11 together on a machine; spread 7 · 5 / 10 + 4 · 6 / 8 = 6.5, more than 6 of b alone, or as the problem says."""
    assert solve(SOLVED, PROBLEM).effective_throughput.tolist() == [7.0, 4.0]
    small = {**PROBLEM, "accelerators_per_node": [1]}
    assert solve(SOLVED, small).effective_throughput.tolist() == [3.5, 3.0]
    measured = {**small, "pairs_apart": [{**PROBLEM["pairs"][0], "steps_per_s": 1.0, "partner_steps_per_s": 2.0}]}
    assert solve(SOLVED, measured).effective_throughput.tolist() == [0.0, 6.0]


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"pairs": None}, "pairs"),
        ({"throughput_apart": None}, "throughput_apart"),
        ({"accelerators_per_node": None}, "accelerators_per_node"),
        ({"pairs_apart": [{**PROBLEM["pairs"][0], "steps_per_s": -1.0}]}, "pairs_apart.steps_per_s"),
        ({"pairs_apart": 3}, "pairs_apart"),
        ({"job_type": np.array([0, 1]), "pairs": np.ones((2, 2, 1)), "pairs_apart": np.ones((3, 3, 1))}, "pairs_apart"),
        (
            {"job_type": np.array([0, 1]), "pairs": np.ones((2, 2, 1)), "pairs_apart": -np.ones((2, 2, 1))},
            "pairs_apart",
        ),
    ],
)
def test_what_a_problem_lacks_or_has_wrong_of_spread_pairs_is_named(change: dict[str, Any], column: str) -> None:
    problem = {field: value for field, value in {**PROBLEM, **change}.items() if value is not None}
    with pytest.raises(InvalidInput) as refused:
        solve(SOLVED, problem)
    assert column in {each.column for each in refused.value.problems}
