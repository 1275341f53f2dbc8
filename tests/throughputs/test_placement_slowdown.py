"""What it costs a gang not to sit close together: the published figures, and what holds for every place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.model.topology import Node, Topology
from eunomia.throughputs import load
from eunomia.throughputs.job_type_facts import model_of
from eunomia.throughputs.placed_throughputs import PlacedThroughputs, TableSpread
from eunomia.throughputs.placement import PhillySlowdowns, Placement, ThemisSlowdowns, profile_of
from eunomia.throughputs.placement_level import CLOSEST, ClusterUnits, PlacementLevel, PlacementSpan
from eunomia.throughputs.placement_tables import ByNodes, read_placement

OWN = "job_type,scale_factor,nodes,slowdown\n"
TWO = PlacementSpan(nodes=2, slots=2)


def own_table(folder: Path, rows: str) -> ByNodes:
    (folder / "own.csv").write_text(OWN + rows)
    return read_placement(folder / "own.csv", "own.csv")


# ---- placement of a gang ---------------------------------------------------------------------------------------------


def racks(accelerators_per_slot: int = 0) -> Topology:
    """Two racks of two machines of four, and a third rack with one machine of two."""
    four = [Node(type="v100", accelerators=4, rack=rack) for rack in ("a", "a", "b", "b")]
    return Topology.of([*four, Node(type="k80", accelerators=2, rack="c")], accelerators_per_slot)


@pytest.mark.parametrize(
    ("seats", "level"),
    [
        ((0, 1), PlacementLevel.SLOT),
        ((1, 2), PlacementLevel.MACHINE),
        ((3, 4), PlacementLevel.RACK),
        ((0, 8), PlacementLevel.ACROSS),
        ((5,), PlacementLevel.SLOT),
    ],
)
def test_a_gang_is_at_the_level_of_the_smallest_unit_that_holds_it(
    seats: tuple[int, ...], level: PlacementLevel
) -> None:
    assert ClusterUnits(racks(accelerators_per_slot=2)).place(seats).level == level


def test_machines_that_name_no_rack_stand_in_one() -> None:
    ground = ClusterUnits(Topology.of([Node(type="v100", accelerators=2)] * 3))
    assert ground.place((0, 2, 4)) == PlacementSpan(nodes=3, racks=1, slots=3)


def test_the_best_place_has_the_fewest_units_of_each_level_that_an_empty_cluster_has() -> None:
    ground = ClusterUnits(racks(accelerators_per_slot=2))
    assert [ground.best(0, size) for size in (1, 2, 4, 8, 16)] == [
        PlacementSpan(1, 1, 1),
        PlacementSpan(1, 1, 1),
        PlacementSpan(1, 1, 2),
        PlacementSpan(2, 1, 4),
        PlacementSpan(4, 2, 8),
    ]


def test_apart_is_two_machines_or_the_fewest_that_hold_the_gang() -> None:
    ground = ClusterUnits(racks())
    assert [ground.apart(0, size).nodes for size in (1, 2, 4, 8, 12)] == [1, 2, 2, 2, 3]


# ---- named tables --------------------------------------------------------------------------------------------------


def test_themis_slows_vgg16_by_its_measured_ratio_on_two_servers_and_inception_not_at_all() -> None:
    # Themis: 103.6 against 80.4 images/s is 1.289; 242 against 243 is none
    assert ThemisSlowdowns().slowdown(("vgg16", 4), 0, TWO, CLOSEST) == pytest.approx(103.6 / 80.4, abs=0.002)
    assert ThemisSlowdowns().slowdown(("Inception-v3", 4), 0, TWO, CLOSEST) == 1.0


def test_a_gang_wider_than_any_machine_is_not_slowed_by_what_it_cannot_avoid() -> None:
    across = PlacementSpan(nodes=2, racks=2, slots=2)
    assert ThemisSlowdowns().slowdown(("vgg16", 8), 0, TWO, TWO) == 1.0
    assert ThemisSlowdowns().slowdown(("vgg16", 8), 0, across, TWO) == pytest.approx(1.5 / 1.29)


def test_philly_slows_two_gpus_on_two_servers_by_its_table_4() -> None:
    assert PhillySlowdowns().slowdown(("resnet50", 2), 0, TWO, CLOSEST) == pytest.approx(1 / 0.854, abs=1e-3)


@pytest.mark.parametrize(("servers", "utilisation"), [(2, 43.66), (4, 40.94), (8, 28.56)])
def test_philly_slows_sixteen_gpus_by_the_utilisation_of_its_table_5(servers: int, utilisation: float) -> None:
    place = PlacementSpan(nodes=servers, slots=servers)
    assert PhillySlowdowns().slowdown(("resnet50", 16), 0, place, TWO) == pytest.approx(43.66 / utilisation)


@pytest.mark.parametrize(
    ("job_type", "model"),
    [("ResNet-50 (batch size 64)", "resnet50"), ("imagenet", "resnet50"), ("VGG-16", "vgg16")],
)
def test_a_model_has_one_name_whatever_its_source_calls_it(job_type: str, model: str) -> None:
    assert model_of(job_type) == model


def test_models_that_are_not_listed_are_mildly_sensitive() -> None:
    assert profile_of("something new") == profile_of("ResNet-18 (batch size 16)") != profile_of("BERT-Base fine-tuning")


# ---- measured tables -----------------------------------------------------------------------------------------------


def test_pollux_resnet50_on_four_nodes_is_slower_by_the_median_of_its_batches(reference: Path) -> None:
    table = read_placement(reference / "throughputs" / "pollux-aws-t4" / "placements.csv.gz", "pollux")
    assert set(table.curve_by_size) == {"bert", "resnet18", "deepspeech2", "resnet50", "ncf", "yolov3"}
    four = [table.slowdown(("imagenet", 4), 0, PlacementSpan(nodes=n, slots=n), CLOSEST) for n in (2, 4)]
    assert four == pytest.approx([1.29, 1.03], abs=0.005)  # medians over the batches of 22 and 13, and of 1111
    assert table.slowdown(("bert", 2), 0, TWO, CLOSEST) == pytest.approx(1.96, abs=0.005)


@pytest.mark.parametrize(("model", "nodes", "speed"), [("alexnet", 4, 0.325340860506144), ("resnet101", 4, 0.95382)])
def test_chronus_slows_four_gpus_by_its_relative_speeds(reference: Path, model: str, nodes: int, speed: float) -> None:
    table = read_placement(reference / "throughputs/chronus-iteration-times/placement_slowdown.csv", "chronus")
    place = PlacementSpan(nodes=nodes, slots=nodes)
    assert table.slowdown((model, 4), 0, place, CLOSEST) == pytest.approx(1 / speed, rel=1e-4)


def test_a_model_that_was_not_measured_takes_the_geometric_mean_of_those_that_were(tmp_path: Path) -> None:
    table = own_table(tmp_path, "a,2,2,1.0\nb,2,2,4.0\n")
    assert table.slowdown(("other", 2), 0, TWO, CLOSEST) == pytest.approx(2.0)


def test_a_measured_slowdown_may_fall_with_more_nodes_but_no_place_is_faster_than_the_fewest(tmp_path: Path) -> None:
    table = own_table(tmp_path, "a,4,2,1.5\na,4,4,1.2\n")
    assert table.slowdown(("a", 4), 0, PlacementSpan(4, 1, 4), CLOSEST) == 1.2
    assert table.slowdown(("a", 4), 0, PlacementSpan(4, 1, 4), TWO) == 1.0


def test_a_gang_wider_than_the_measured_machines_takes_the_nearest_size_that_sat_on_one(reference: Path) -> None:
    table = read_placement(reference / "throughputs" / "pollux-aws-t4" / "placements.csv.gz", "pollux")
    eight, four = (table.slowdown(("bert", n), 0, TWO, CLOSEST) for n in (8, 4))
    assert eight == four > 2.7


def test_pollux_measured_two_nodes_as_slower_than_four(reference: Path) -> None:
    table = read_placement(reference / "throughputs" / "pollux-aws-t4" / "placements.csv.gz", "pollux")
    for model in table.curve_by_size:
        two, four = (table.slowdown((model, 4), 0, PlacementSpan(n, 1, n), CLOSEST) for n in (2, 4))
        assert two > four >= 1


def test_leaving_the_rack_costs_themis_last_step_where_only_machines_were_measured(tmp_path: Path) -> None:
    table = own_table(tmp_path, "bert,2,2,2.0\n")
    assert table.slowdown(("bert", 2), 0, PlacementSpan(2, 2, 2), CLOSEST) == pytest.approx(2.0 * 1.9 / 1.4)


def test_everything_wrong_with_a_table_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        own_table(tmp_path, "a,0,2,1.5\na,2,x,1.5\na,2,2,0.5\na,2,2,nan\na,2\n")
    assert [problem.row for problem in caught.value.problems] == [2, 3, 4, 5, 6]
    assert all(problem.rule and problem.fix for problem in caught.value.problems)


@pytest.mark.parametrize("text", ["", "\n", "model,speed\na,1\n", OWN, OWN + '"a,1\n', "a,a\n"])
def test_a_file_that_is_no_such_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InvalidInput):
        read_placement(tmp_path / "t.csv", "t.csv")


# ---- what holds for all of them ------------------------------------------------------------------------------------

MODELS = ("vgg16", "Inception-v3", "ResNet-50 (batch size 64)", "LM (batch size 5)", "a", "?")


@given(
    st.sampled_from(["themis", "philly", "own"]),
    st.sampled_from(MODELS),
    st.integers(2, 64),
    st.integers(1, 8),
    st.tuples(st.integers(0, 8), st.integers(0, 3)),
    st.tuples(st.integers(0, 8), st.integers(0, 3)),
)
def test_no_place_is_faster_than_the_best_and_none_is_faster_than_a_closer_one(
    source: str, model: str, size: int, fewest: int, near: tuple[int, int], further: tuple[int, int]
) -> None:
    curves = {"a": {2: ((1.0, 2.0), (1.0, 1.3)), 8: ((1.0, 2.0, 4.0), (1.0, 1.1, 1.7))}}
    table: Placement = {"themis": ThemisSlowdowns(), "philly": PhillySlowdowns(), "own": ByNodes("own", curves)}[source]
    best = PlacementSpan(nodes=fewest, slots=fewest)
    places = [PlacementSpan(fewest + near[0], 1 + near[1], fewest + near[0])]
    places.append(
        PlacementSpan(places[0].nodes + further[0], places[0].racks + further[1], places[0].slots + further[0])
    )
    slow = [table.slowdown((model, size), 0, place, best) for place in (best, *places)]
    assert slow[0] == 1.0
    assert 1.0 <= slow[1] <= slow[2] * (1 + 1e-12)


def test_the_sources_own_slowdown_is_what_it_says_of_gangs_apart(reference: Path) -> None:
    table = load("gavel/simulation_throughputs.json.gz", ("v100", "k80"), base=reference)
    kind = ("LM (batch size 5)", 2)
    slow = [TableSpread(table).slowdown(kind, type, TWO, CLOSEST) for type in (0, 1)]
    assert slow == pytest.approx(table.solo_throughput(*kind) / table.spread_throughput(*kind))
    assert slow[0] > 4.5  # 4.6 times slower on two machines: the table's own figure


def test_what_is_believed_of_gangs_apart_is_what_the_nearest_such_place_costs() -> None:
    topology = Topology.of([Node(type="v100", accelerators=4)] * 2)
    speeds = load("uniform", topology.types)
    situated = PlacedThroughputs(speeds, ClusterUnits(topology), ThemisSlowdowns())
    assert situated.spread_throughput("vgg16", 4).tolist() == pytest.approx([1 / 1.29])
    assert situated.spread_throughput("vgg16", 1).tolist() == [1.0]
    assert PlacedThroughputs(speeds, ClusterUnits(topology)).spread_throughput("vgg16", 4).tolist() == [1.0]
