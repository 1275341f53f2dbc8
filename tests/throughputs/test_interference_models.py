"""What jobs cost each other on the same accelerators and on the same machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.model.topology import Node, Topology
from eunomia.throughputs import Throughputs, load
from eunomia.throughputs.interference import MEDIAN_KEPT, Pairs, PhillyNeighbours, StagedNeighbours
from eunomia.throughputs.measured_table import MeasuredThroughputs
from eunomia.throughputs.placed_throughputs import PlacedThroughputs
from eunomia.throughputs.placement_level import ClusterUnits
from eunomia.throughputs.stage_times import Stages, kept, read_stages

HEADER = "model_name,batch_size,num_gpu,iteration_time,resource_time_0,resource_time_1,resource_time_2,rows\n"
MURI = HEADER + "a2c,64,1,517,514.0,14,0.0,590\nbert,4,1,178,0.5,160,0.0,730\nbert,4,8,192,0.5,167,59.0,1134\n"
GROUND = ClusterUnits(Topology.of([Node(type="v100", accelerators=4)]))


@pytest.fixture
def stages(tmp_path: Path) -> Stages:
    """Three rows of Muri's table, written out."""
    (tmp_path / "stages.csv").write_text(MURI)
    return read_stages(tmp_path / "stages.csv", "stages.csv")


def test_jobs_that_load_different_resources_do_not_slow_each_other(stages: Stages) -> None:
    # a2c keeps the CPU 514 of 517 ms busy and bert 0.5 of 178; the accelerator 14 of 517 and 160 of 178
    assert Pairs(stages).kept("a2c", "bert", 1) == 1.0


def test_two_of_a_kind_share_the_resource_that_both_want(stages: Stages) -> None:
    assert Pairs(stages).kept("bert", "bert", 1) == pytest.approx(178 / 320)
    assert Pairs(stages).kept("a2c", "a2c", 1) == pytest.approx(517 / 1028)


def test_a_pair_without_stage_times_keeps_what_half_of_gavels_pairs_keep(stages: Stages) -> None:
    assert Pairs(stages).kept("a2c", "ResNet-18 (batch size 16)", 1) == Pairs().kept("x", "y", 1) == MEDIAN_KEPT


def test_what_half_of_gavels_pairs_keep_is_the_median_of_its_table(reference: Path) -> None:
    source = load("gavel/simulation_throughputs.json.gz", ("v100", "p100", "k80"), base=reference).source
    assert isinstance(source, MeasuredThroughputs)
    table = source.measurements
    keeps = [
        rate / table.alone[type, job, size]
        for (type, job, _, size), rate in table.pairs.items()
        if rate > 0 and not type.endswith("_unconsolidated")
    ]
    assert (len(keeps), round(float(np.median(keeps)), 3)) == (1881, MEDIAN_KEPT)


def test_every_row_of_muris_table_is_read(reference: Path) -> None:
    table = read_stages(reference / "throughputs" / "muri-stage-times" / "stage_times.csv", "muri")
    assert sum(len(sizes) for sizes in table.busy_by_size.values()) == 48
    vgg16 = table.busy("vgg16", 1)
    assert vgg16 is not None
    assert vgg16.tolist() == pytest.approx([1.0, 68 / 107, 0.0])  # 117 ms of loading in an iteration of 107


def test_a_measured_pair_stays_as_measured_and_another_is_modelled(table) -> None:  # type: ignore[no-untyped-def]
    both = {"null": 10.0, "('b', 1)": [4.0, 4.0], "('c', 1)": [0.0, 0.0]}
    rates: Throughputs = table({("a", 1): both, ("b", 1): 8.0, ("c", 1): 6.0}, types=("v100",))
    situated = PlacedThroughputs(rates, GROUND, pairs=Pairs())
    assert situated.packed_throughput("a", "b", 1).tolist() == [4.0]
    assert situated.packed_throughput("a", "c", 1).tolist() == [0.0]  # measured: they do not fit together
    assert situated.packed_throughput("b", "c", 1).tolist() == [pytest.approx(8.0 * MEDIAN_KEPT)]
    assert PlacedThroughputs(rates, GROUND).packed_throughput("b", "c", 1).tolist() == [0.0]


def test_a_pair_of_which_one_cannot_run_on_a_type_cannot_share_there(table) -> None:  # type: ignore[no-untyped-def]
    rates: Throughputs = table({("a", 1): 10.0, ("b", 1): 0.0}, types=("v100",))
    assert PlacedThroughputs(rates, GROUND, pairs=Pairs()).packed_throughput("a", "b", 1).tolist() == [0.0]


def test_a_neighbour_costs_what_philly_measured() -> None:
    near = PhillyNeighbours()
    assert near.slowdown(("resnet50", 2), 1, [("x", 2)]) == pytest.approx(1 / 0.659, abs=2e-3)
    beside_on_two = 1 / 0.854 * near.slowdown(("resnet50", 2), 2, [("x", 2)])
    assert beside_on_two == pytest.approx(1 / 0.645, abs=2e-3)  # as against one server alone
    assert near.slowdown(("resnet50", 2), 1, [("x", 1)]) == near.slowdown(("resnet50", 1), 1, [("x", 8)]) == 1.0


def test_neighbours_share_the_machines_network(stages: Stages) -> None:
    near = StagedNeighbours(stages)
    assert near.slowdown(("bert", 8), 1, [("bert", 8)] * 3) == pytest.approx(4 * 59 / 192)
    assert near.slowdown(("bert", 8), 1, [("bert", 8)]) == 1.0  # 118 of 192 ms
    assert near.slowdown(("a2c", 1), 1, [("bert", 8)] * 9) == near.slowdown(("?", 8), 1, [("bert", 8)] * 9) == 1.0


SHARES = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(np.array)


@given(SHARES, st.lists(SHARES, max_size=4), SHARES)
def test_who_shares_keeps_at_most_its_speed_and_less_beside_more(mine, others, another) -> None:  # type: ignore[no-untyped-def]
    few, more = kept([mine, *others]), kept([mine, *others, another])
    assert 0 < more <= few <= 1


def test_everything_wrong_with_stage_times_is_reported(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + "a,1,0,1,1,1,1,1\na,1,1,0,1,1,1,1\na,1,1,1,-1,1,x,1\n")
    with pytest.raises(InvalidInput) as caught:
        read_stages(tmp_path / "t.csv", "t.csv")
    assert [(problem.row, problem.column) for problem in caught.value.problems] == [
        (2, "num_gpu"),
        (3, "iteration_time"),
        (4, "resource_time_0"),
        (4, "resource_time_2"),
    ]
