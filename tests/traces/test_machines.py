"""Lists of machines: what they mean, how they are refused, and how a scenario uses one as its cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.model.topology import Node
from eunomia.scenario import load_scenario, scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.traces.machine_lists import read_nodes

Real = Callable[[str], Path]
Write = Callable[..., Path]
LISTS = {  # format → lines, and the machines they mean
    "native": (("type,count,accelerators,rack", "v100,2,4,r0", "k80,,8,"), ["v100/4/r0"] * 2 + ["k80/8/"]),
    "openb": (("sn,cpu_milli,memory_mib,gpu,model", "a,1,1,2,V100M32", "b,1,1,0,", "c,1,1,8,G2"),
              ["v100-32gb/2/", "g2/8/"]),
    "pai": (("machine,gpu_type,cap_cpu,cap_mem,cap_gpu", "a,CPU,96,512,0", "b,MISC,96,512,8"), ["misc/8/"]),
    "lingjun": (("ip,DSW,PSW,ASW", "a,G6,P10,S14", "b,G6,P12,S2"), ["v100/8/S14", "v100/8/S2"]),
    "alibaba-2026": (
        ("node_name,gpu_model,gpu_capacity_num,cpu_num", "0,GPU-series-1,4,192", "1,A100-SXM4-80GB,8,128"),
        ["a100-80gb/8/", "gpu-series-1/4/"]),
    "partitions": (("vc,nodes", "x,2", "y,0"), ["v100/8/"] * 2),
    "switches": (("num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node", "2,1,4,128,254"),
                 ["v100/4/switch-0", "v100/4/switch-1"]),
    "daily": (("date,x,y,total", "2020-04-01,16,0,16", "2020-04-02,16,8,24"), ["v100/8/"] * 2),
}  # fmt: skip


def spelled(nodes: tuple[Node, ...]) -> list[str]:
    return [f"{node.type}/{node.accelerators}/{node.rack}" for node in nodes]


@pytest.mark.parametrize("format", LISTS)
def test_a_list_of_machines_is_detected_by_its_first_line_and_read(format: str, written: Write) -> None:
    lines, machines = LISTS[format]
    path = written(*lines)
    assert spelled(read_nodes(path).nodes) == machines
    assert spelled(read_nodes(path, format).nodes) == machines


def test_machines_without_accelerators_are_left_out_and_counted(written: Write) -> None:
    assert read_nodes(written(*LISTS["pai"][0])).notes[-1] == "1 machines have no accelerator and are left out"


def test_only_some_types_may_be_kept_and_the_others_are_counted(written: Write) -> None:
    path = written(*LISTS["openb"][0])
    kept = read_nodes(path, only="v100-32gb")
    assert spelled(kept.nodes) == ["v100-32gb/2/"]
    assert kept.notes[-1].startswith("1 machines of other types")
    with pytest.raises(InvalidInput, match="did you mean 'v100-32gb'"):
        read_nodes(path, only="v100-32g")


def test_a_day_of_a_cluster_may_be_chosen(written: Write) -> None:
    path = written(*LISTS["daily"][0])
    assert len(read_nodes(path, date="2020-04-02", type="v100").nodes) == 3
    with pytest.raises(InvalidInput, match="must be a day from 2020-04-01 to 2020-04-02"):
        read_nodes(path, date="2020-05-01")


@pytest.mark.parametrize(
    ("format", "column", "value"),
    [
        ("native", "type", ""),
        *[("native", "count", value) for value in ("-1", "1.5", "nan", "1e300", "two")],
        *[("native", "accelerators", value) for value in ("", "-1", "inf", "x")],
        ("openb", "sn", "a"),
        ("openb", "gpu", "-1"),
        ("openb", "model", ""),
        ("pai", "cap_gpu", "nan"),
        ("pai", "gpu_type", ""),
        ("pai", "machine", ""),
        ("lingjun", "ASW", ""),
        ("lingjun", "ip", "a"),
        ("alibaba-2026", "gpu_capacity_num", "-1"),
        ("alibaba-2026", "gpu_model", ""),
        ("alibaba-2026", "cpu_num", "x"),
        ("alibaba-2026", "node_name", "0"),
        ("partitions", "nodes", "0.5"),
        ("partitions", "vc", ""),
        ("switches", "num_switch", "-1"),
        ("daily", "date", "yesterday"),
        ("daily", "x", "-8"),
        ("daily", "total", "17"),
    ],
)
def test_a_wrong_value_is_reported_with_its_row_and_column(
    format: str, column: str, value: str, written: Write
) -> None:
    header, *rows = LISTS[format][0]
    names, cells = header.split(","), rows[-1].split(",")
    last = ",".join(value if name == column else cell for name, cell in zip(names, cells, strict=True))
    path = written(header, *rows[:-1], last)
    with pytest.raises(InvalidInput) as caught:
        read_nodes(path, format)
    result = {(problem.file, problem.row, problem.column) for problem in caught.value.problems}
    assert (str(path), len(rows) + 1, column) in result
    assert {row for _, row, _ in result} == {len(rows) + 1}


@pytest.mark.parametrize("raw", [b"", b"type,accelerators\n", b"type,accelerators\nv100,0\n"])
def test_a_list_without_machines_is_refused(raw: bytes, written: Write) -> None:
    with pytest.raises(InvalidInput, match="machine"):
        read_nodes(written(raw=raw), "native")


def test_a_scenario_may_name_a_file_of_machines_as_its_cluster(written: Write, tmp_path: Path) -> None:
    written(*LISTS["openb"][0], name="machines.csv")
    text = '[cluster]\nnodes_file = "machines.csv?only=v100-32gb"\n[workload]\ngenerator = "poisson"\n'
    (tmp_path / "s.toml").write_text(text)
    scenario = load_scenario(tmp_path / "s.toml")
    assert [(g.type, g.count, g.accelerators) for g in scenario.cluster.nodes] == [("v100-32gb", 1, 2)]
    again = scenario_from_dict(scenario.as_dict(), tmp_path)  # the machines themselves are written down
    assert again.cluster.nodes == scenario.cluster.nodes


def test_options_of_the_list_follow_its_name(written: Write, tmp_path: Path) -> None:
    written(*LISTS["daily"][0], name="machines.csv")
    said: dict[str, Any] = {"cluster": {"nodes_file": ""}, "workload": {"generator": "poisson"}}
    said["cluster"]["nodes_file"] = "machines.csv?date=2020-04-02&type=t4"
    assert [(g.type, g.count) for g in scenario_from_dict(said, tmp_path).cluster.nodes] == [("t4", 3)]
    for wrong in (
        "machines.csv?date",
        "machines.csv?date=[1]",
        "machines.csv?type=t4&type=a10",
        "machines.csv?colour=red",
    ):
        said["cluster"]["nodes_file"] = wrong
        with pytest.raises(InvalidInput, match="option"):
            scenario_from_dict(said, tmp_path)


def test_what_the_reader_of_machines_says_is_a_note_of_the_run(written: Write, tmp_path: Path) -> None:
    written(*LISTS["pai"][0], name="machines.csv")
    said: dict[str, Any] = {
        "cluster": {"nodes_file": "machines.csv"},
        "workload": {"generator": "poisson", "jobs": 2},
        "throughputs": {"source": "uniform"},
    }
    setup = set_up(scenario_from_dict(said, tmp_path))
    assert setup.topology.types == ("misc",)
    assert "Machines: 1 machines have no accelerator and are left out." in setup.notes
    assert "machines.csv" in setup.record_header()["inputs"]


def test_a_wrong_list_is_reported_beside_the_other_mistakes_of_a_scenario(written: Write, tmp_path: Path) -> None:
    written("type,accelerators", "v100,x", name="machines.csv")
    cluster = {"nodes_file": "machines.csv", "prices": {"k80": 0.45}}  # of types that are unknown now
    said: dict[str, Any] = {"cluster": cluster, "workload": {"generator": "poisson", "load": -1}}
    with pytest.raises(InvalidInput) as caught:
        scenario_from_dict(said, tmp_path)
    assert {(p.column, p.row) for p in caught.value.problems} == {("accelerators", 2), ("workload.load", None)}


@pytest.mark.parametrize("other", [{"accelerators": {"v100": 8}}, {"nodes": [{"type": "v100", "accelerators": 8}]}])
def test_machines_are_said_in_one_way_only(other: dict[str, Any], written: Write, tmp_path: Path) -> None:
    written(*LISTS["native"][0], name="machines.csv")
    said = {"cluster": {"nodes_file": "machines.csv", **other}, "workload": {"generator": "poisson"}}
    with pytest.raises(InvalidInput, match="never both") as caught:
        scenario_from_dict(said, tmp_path)
    assert caught.value.count == 1


PUBLISHED = [  # file or folder, options, machines with accelerators, accelerators by type as its README says
    ("traces/alibaba-pai-2020", {}, 1814, {"misc": 2240, "p100": 1596, "t4": 994, "v100": 832, "v100-32gb": 1080}),
    ("traces/alibaba-openb-2023/openb_node_list_gpu_node.csv.gz", {}, 1213,
     {"g2": 4392, "t4": 842, "p100": 265, "g3": 312, "v100": 195, "v100-32gb": 204, "a10": 2}),
    ("traces/alibaba-openb-2023/openb_node_list_all_node.csv.gz", {}, 1213,
     {"g2": 4392, "t4": 842, "p100": 265, "g3": 312, "v100": 195, "v100-32gb": 204, "a10": 2}),
    ("traces/crux-lingjun-2023", {"type": "a100-80gb"}, 847, {"a100-80gb": 847 * 8}),
    ("traces/philly", {}, 352, {"v100": 2816}),
    ("traces/helios-venus", {"date": "2020-07-06"}, 121, {"v100": 968}),
    ("traces/helios-venus", {"date": "2020-07-07"}, 133, {"v100": 1064}),
    ("traces/helios-earth-vcs", {}, 98, {"v100": 784}),
    ("peers/tiresias/w480", {}, 16, {"v100": 64}),
    ("peers/helios/w480", {}, 8, {"v100": 64}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "machines", "by_type"), PUBLISHED)
def test_a_published_list_is_read_whole(
    name: str, options: dict[str, str], machines: int, by_type: dict[str, int], real: Real
) -> None:
    found = read_nodes(real(name), **options)
    accelerators: Counter[str] = Counter()
    for node in found.nodes:
        accelerators[node.type] += node.accelerators
    assert (len(found.nodes), dict(accelerators)) == (machines, by_type)


def test_the_real_topology_has_48_racks(real: Real) -> None:
    assert len({node.rack for node in read_nodes(real("traces/crux-lingjun-2023")).nodes}) == 48
