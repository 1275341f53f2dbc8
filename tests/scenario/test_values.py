"""What a scenario says when it is right."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.scenario import Scenario, load_scenario, scenario_from_dict
from eunomia.scenario.schema_models import whole_nodes
from eunomia.setup.run_config import set_up
from eunomia.setup.workload import Workload

Tiny = Callable[..., Scenario]
ROOT = Path(__file__).parents[2]
CLUSTER = {"accelerators": {"v100": 4}}


def test_everything_but_cluster_and_workload_has_a_default(tiny: Tiny) -> None:
    scenario = tiny()
    work, world, costs = scenario.workload, scenario.world, scenario.overheads
    assert (scenario.seed, scenario.check, scenario.name) == (0, False, "tiny")
    assert (work.format, work.load, work.start_s, work.end_s) == ("native", 1.0, 0.0, math.inf)
    assert (work.job_types, work.max_jobs, work.generator, work.options) == ("mix:default", None, None, {})
    assert (scenario.throughputs.source, scenario.throughputs.reference_type) == ("auto", "v100")
    assert (scenario.belief.kind, scenario.belief.error) == ("oracle", 0.0)
    assert (scenario.policy.name, scenario.policy.parameters, scenario.mechanism) == ("fifo", {}, None)
    assert (costs.start_s, costs.checkpoint_s, costs.restore_s) == (0.0, 0.0, 0.0)
    assert (world.backend, world.replay_status, world.node_repair_s) == ("simulated", False, 3600.0)


def test_a_shorthand_gives_full_machines_and_one_with_the_rest(tiny: Tiny) -> None:
    cluster = tiny("cluster.accelerators={ v100 = 10, k80 = 4, t4 = 3 }", "cluster.accelerators_per_node=4").cluster
    assert [(g.type, g.count, g.accelerators, g.rack) for g in cluster.nodes] == [
        ("v100", 2, 4, ""),
        ("v100", 1, 2, ""),
        ("k80", 1, 4, ""),
        ("t4", 1, 3, ""),
    ]
    assert cluster.types == ("v100", "k80", "t4")


def test_a_machine_of_the_shorthand_has_eight_accelerators_unless_said_otherwise(tiny: Tiny) -> None:
    assert [(g.count, g.accelerators) for g in tiny("cluster.accelerators.v100=20").cluster.nodes] == [(2, 8), (1, 4)]


@given(st.integers(1, 10_000), st.integers(1, 100))
def test_no_accelerator_is_lost_between_machines(total: int, size: int) -> None:
    nodes = whole_nodes(total, size)
    assert sum(count * each for count, each in nodes) == total
    assert all(1 <= each <= size and count >= 1 for count, each in nodes)


def test_nodes_are_taken_as_written(load: Callable[..., Scenario]) -> None:
    cluster = load(
        '[cluster]\nprices = { v100 = 2.48 }\n[[cluster.nodes]]\ntype = "v100"\ncount = 9\naccelerators = 4\n'
        'rack = "r0"\n[[cluster.nodes]]\ntype = "k80"\naccelerators = 2\n[workload]\ngenerator = "poisson"\n'
    ).cluster
    assert [(g.type, g.count, g.accelerators, g.rack) for g in cluster.nodes] == [
        ("v100", 9, 4, "r0"),
        ("k80", 1, 2, ""),
    ]
    assert cluster.prices == {"v100": 2.48}


def test_further_keys_of_the_workload_are_options(tiny: Tiny) -> None:
    assert tiny("workload.format=philly", "workload.passed_only=true").workload.options == {"passed_only": True}


def test_a_part_of_the_mechanism_keeps_the_rest_at_rounds_of_six_minutes(tiny: Tiny) -> None:
    mechanism = tiny("mechanism.length_s=120").mechanism
    assert mechanism is not None
    assert (mechanism.name, mechanism.length_s, mechanism.aligned, mechanism.recall) == ("leases", 120.0, True, False)
    assert mechanism.solve_gap_s == 0


def test_leases_and_windows_may_be_endless(tiny: Tiny) -> None:
    scenario = tiny("mechanism.length_s=inf", "workload.end_s=inf")
    assert scenario.mechanism is not None
    assert scenario.mechanism.length_s == scenario.workload.end_s == math.inf


def test_another_mechanism_takes_its_own_parameters(tiny: Tiny) -> None:
    mechanism = tiny("mechanism.name=gavel_rounds", "mechanism.length_s=60", "mechanism.jitter=true").mechanism
    assert mechanism is not None
    assert mechanism.parameters == {"length_s": 60, "jitter": True}


def test_where_all_speeds_are_1_the_reference_is_a_type_of_the_cluster(tiny: Tiny) -> None:
    assert tiny("cluster.accelerators={ gpu = 2 }", "throughputs.source=uniform").throughputs.reference_type == "gpu"


def test_relative_paths_start_at_the_folder_of_the_file(tiny: Tiny, tmp_path: Path) -> None:
    scenario = tiny()
    assert scenario.base == tmp_path.resolve()
    assert scenario.resolve("sub/jobs.csv") == tmp_path.resolve() / "sub" / "jobs.csv"
    assert scenario.resolve("/abs.csv") == Path("/abs.csv")


def test_a_scenario_cannot_be_changed(tiny: Tiny) -> None:
    with pytest.raises(ValueError, match="frozen"):
        tiny().seed = 1  # type: ignore[misc]


def test_python_may_use_its_own_numbers_tuples_and_paths(tmp_path: Path) -> None:
    scenario = scenario_from_dict(
        {
            "seed": np.int64(3),
            "cluster": {"nodes": ({"type": "v100", "accelerators": np.int32(4)},)},
            "workload": {"trace": tmp_path / "jobs.csv", "load": np.float32(0.5), "max_jobs": None},
        },
        tmp_path,
    )
    assert (scenario.seed, scenario.workload.load, scenario.base) == (3, 0.5, tmp_path)
    assert scenario.cluster.nodes[0].accelerators == 4


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("mechanism.length_s=inf", "policy.name=fifo?backfill=skip", "seed=7", "world.workdir=w"),
        ("mechanism={ name = 'gavel_rounds', jitter = 0.5 }", "cluster.accelerators.v100=10", "workload.max_jobs=5"),
        ("workload={ generator = 'poisson', jobs = 9, job_types = { a = 1, b = 2.5 } }", "cluster.prices.v100=1"),
    ],
)
def test_what_is_written_down_as_json_reads_back_the_same(tiny: Tiny, overrides: tuple[str, ...]) -> None:
    scenario = tiny(*overrides)
    said = json.loads(json.dumps(scenario.as_dict(), allow_nan=False))
    again = scenario_from_dict(said, scenario.base)
    assert again.as_dict() == scenario.as_dict()
    assert again.cluster.nodes == scenario.cluster.nodes
    assert again.workload == scenario.workload


def test_another_policy_brings_its_own_parameters_only(tiny: Tiny) -> None:
    scenario = tiny("policy.name=las", "policy.quantum=3")
    other = scenario.with_policy("fifo?backfill=skip")
    assert (other.policy.name, other.policy.parameters) == ("fifo", {"backfill": "skip"})
    assert (scenario.policy.name, scenario.policy.parameters) == ("las", {"quantum": 3})
    assert other.where(("policy", "backfill")) == ("--policy fifo?backfill=skip", None)
    assert scenario.where(("policy", "quantum")) == ("--set policy.quantum=3", None)
    assert other.base == scenario.base


def test_the_examples_are_scenarios() -> None:
    others = {"sweep.toml", "site.toml"}  # which varies one, and which has no workload
    found = [path for path in (ROOT / "examples").rglob("*.toml") if path.name not in others]
    for path in found:
        load_scenario(path)
    assert found, "there are no examples"


def test_importing_scenarios_loads_no_arrays() -> None:
    heavy = "{'numpy', 'pyarrow', 'numba', 'highspy', 'matplotlib'}"
    code = f"import sys, eunomia.scenario; print(sorted({heavy} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_what_a_set_up_of_real_processes_writes_can_be_read_again() -> None:
    data = {
        "cluster": {"accelerators": {"cpu": 2}},
        "workload": {"generator": "philly-like", "jobs": 2},
        "throughputs": {"source": "uniform"},
        "world": {"backend": "local"},
    }
    ran = set_up(scenario_from_dict(data, Path()), Workload(jobs=(), notes=())).scenario
    assert scenario_from_dict(ran.as_dict(), Path()).physics.placement == "off"
