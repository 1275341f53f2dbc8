"""From accounting to a scenario: the cluster, the types, the speeds, and the files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from eunomia import simulate
from eunomia.cli.app import app
from eunomia.history.cluster_guess import guess_nodes
from eunomia.scenario import load_scenario
from eunomia.setup.workload import read_trace
from eunomia.throughputs.catalogue import recognise
from eunomia.throughputs.job_mix import relative_speeds
from eunomia.traces import read
from eunomia.traces.import_findings import History
from eunomia.traces.table import trace_of

RUN = CliRunner()
HEADER = "JobID|Account|State|Submit|Start|End|ElapsedRaw|NodeList|AllocTRES|ReqTRES"


def row(
    name: str, hour: int, kind: str = "a100", width: int = 2, node: str = "g1", asked: str = "", s: int = 3600
) -> str:
    typed = f"gres/gpu:{kind}={width}," if kind else ""
    wanted = f"gres/gpu:{asked}={width}" if asked else f"gres/gpu={width}"
    begin, end = f"2024-01-01T{hour:02d}:00:00", f"2024-01-01T{hour + 1:02d}:00:00"
    return f"{name}|lab|COMPLETED|{begin}|{begin}|{end}|{s}|{node}|{typed}gres/gpu={width}|{wanted}"


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., tuple[dict[str, Any], Path]]:
    """Return a function that imports these lines, and returns the quality report and the folder."""

    def run(*lines: str, words: tuple[str, ...] = (), nodes: str = "", code: int = 0) -> tuple[dict[str, Any], Path]:
        (tmp_path / "sacct.txt").write_text("\n".join([HEADER, *lines, ""]))
        out = tmp_path / "ours"
        if nodes:
            (tmp_path / "nodes.txt").write_text(nodes)
            words = (*words, "--nodes", str(tmp_path / "nodes.txt"))
        done = RUN.invoke(app, ["import", "slurm", str(tmp_path / "sacct.txt"), "--out", str(out), *words, "--json"])
        assert done.exit_code == code, done.output
        return json.loads(done.stdout.splitlines()[-1]), out

    return run


def speeds(out: Path) -> dict[tuple[str, str], float]:
    rows = csv.DictReader((out / "throughputs.csv").read_text().splitlines())
    return {(each["type"], each["job_type"]): float(each["steps_per_s"]) for each in rows}


def test_three_commands_lead_to_an_answer(imported: Callable[..., Any], tmp_path: Path) -> None:
    found, out = imported(*[row(str(k), k % 20) for k in range(12)])
    assert found["jobs"] == 12
    assert sorted(file.name for file in out.iterdir()) == [
        "jobs.parquet",
        "quality.json",
        "scenario.toml",
        "throughputs.csv",
    ]
    assert json.loads((out / "quality.json").read_text()) == {k: v for k, v in found.items() if k != "scenario"}
    done = RUN.invoke(app, ["compare", found["scenario"], "--out", str(tmp_path / "compared"), "--policy", "fifo"])
    assert done.exit_code == 0, done.output


def test_a_job_takes_as_long_in_the_simulation_as_it_took(imported: Callable[..., Any]) -> None:
    _, out = imported(row("1", 0), row("2", 5, "v100", node="g2", s=1800))
    result = simulate(load_scenario(out / "scenario.toml").with_policy("fifo"))
    alone = dict(zip(result.jobs["job_id"].tolist(), result.jobs["jct_s"].tolist(), strict=True))
    assert alone["1"] == pytest.approx(3600)
    # On the v100 job 2 took 1800 s; here it runs on the faster type, which is free.
    x = speeds(out)
    assert alone["2"] == pytest.approx(1800 * x["v100", "any"] / x["a100-40gb", "any"], rel=1e-5)


def test_the_schedule_as_it_was_stands_beside_policies(imported: Callable[..., Any]) -> None:
    """Job 2 ran on the slower type; job 3 was requeued: it ran from 8:10 to 8:15 and from 8:35 to 8:40."""
    lines = (
        row("1", 0),
        row("2", 5, "v100", node="g2"),
        "3|lab|REQUEUED|2024-01-01T08:00:00|2024-01-01T08:10:00|2024-01-01T08:15:00|300|g1|gres/gpu:a100=2|gres/gpu=2",
        "3|lab|COMPLETED|2024-01-01T08:16:00|2024-01-01T08:35:00|2024-01-01T08:40:00|300|g1|gres/gpu:a100=2|gres/gpu=2",
    )
    _, out = imported(*lines)
    past = simulate(load_scenario(out / "scenario.toml"), policy="as_it_was").jobs
    assert past["first_started_s"].tolist() == [0, 5 * 3600, 8 * 3600 + 600]
    assert past["jct_s"].tolist() == pytest.approx([3600, 3600, 2400], abs=0.01)
    assert past["received_v100_s"].tolist() == pytest.approx([0, 3600, 0], abs=0.01)
    assert past["attained_service_s"].tolist() == pytest.approx([7200, 7200, 1200], abs=0.01)
    assert past["preemptions"].tolist() == [0, 0, 1]


def test_a_table_of_an_operator_stands_beside_three_policies_after_two_commands(tmp_path: Path) -> None:
    table = "id,submit_time,start_time,end_time,num_gpus,gpu_type,user\n"
    table += "".join(f"{k},{60 * k},{3600 * k},{3600 * (k + 1)},4,t4,u{k % 2}\n" for k in range(6))
    (tmp_path / "jobs.csv").write_text(table)
    out = tmp_path / "ours"
    done = RUN.invoke(app, ["import", "csv", str(tmp_path / "jobs.csv"), "--out", str(out), "--accelerators", "t4=8"])
    assert done.exit_code == 0, done.output
    words = done.stdout.splitlines()[-1].removeprefix("next: eunomia ").split()
    assert words.count("--policy") == 4
    done = RUN.invoke(app, [*words, "--out", str(tmp_path / "compared")])
    assert done.exit_code == 0, done.output
    written = (tmp_path / "compared" / "compare.csv").read_text()
    assert "<h1>ours: 3 policies compared</h1>" in (tmp_path / "compared" / "report.html").read_text()
    rows = {each["policy"]: each for each in csv.DictReader(written.splitlines())}
    assert next(iter(rows)) == "as_it_was"
    assert float(rows["as_it_was"]["queueing_mean_s"]) == pytest.approx(2.5 * 3540)
    assert float(rows["fifo"]["queueing_mean_s"]) < 2.5 * 3540  # two jobs at a time


@pytest.mark.parametrize("sizes", [("t4=8", "v100=4"), ("t4=8,v100=4",), ("t4=8, v100=4",)])
def test_a_cluster_may_be_named_in_one_option_or_in_several(tmp_path: Path, sizes: tuple[str, ...]) -> None:
    (tmp_path / "jobs.csv").write_text("id,submit_time,start_time,end_time,num_gpus,gpu_type\na,0,0,3600,4,t4\n")
    words = [word for size in sizes for word in ("--accelerators", size)]
    done = RUN.invoke(app, ["import", "csv", str(tmp_path / "jobs.csv"), "--out", str(tmp_path / "ours"), *words])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "ours" / "quality.json").read_text())["accelerators"] == {"t4": 8, "v100": 4}


@pytest.mark.parametrize("size", ["t4=8=v100", "t4=8,", "t4", "=8", "t4=0"])
def test_a_size_of_the_cluster_that_is_none_is_answered_with_an_example(tmp_path: Path, size: str) -> None:
    (tmp_path / "jobs.csv").write_text("id,submit_time,start_time,end_time,num_gpus,gpu_type\na,0,0,3600,4,t4\n")
    words = ["import", "csv", str(tmp_path / "jobs.csv"), "--out", str(tmp_path / "ours"), "--accelerators", size]
    done = RUN.invoke(app, words)
    assert done.exit_code == 2
    assert "write for example --accelerators a100=64" in done.stderr
    assert not (tmp_path / "ours").exists()


def test_dates_of_the_table_reach_the_record_and_plain_seconds_have_none(tmp_path: Path) -> None:
    for name, times in (("dates", "2024-03-01 10:00,2024-03-01 10:00,2024-03-01 11:00"), ("seconds", "0,0,3600")):
        table = tmp_path / f"{name}.csv"
        table.write_text(f"id,submit_time,start_time,end_time,num_gpus,gpu_type\na,{times},4,t4\n")
        done = RUN.invoke(app, ["import", "csv", str(table), "--out", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    dated, plain = (load_scenario(tmp_path / name / "scenario.toml") for name in ("dates", "seconds"))
    assert read_trace(dated).began == datetime(2024, 3, 1, 10)
    assert read_trace(plain).began is None


def test_the_reference_type_is_the_one_that_jobs_held_longest(imported: Callable[..., Any]) -> None:
    _, out = imported(row("1", 0), row("2", 5, "v100", width=8, node="g2"))
    assert load_scenario(out / "scenario.toml").throughputs.reference_type == "v100"
    assert read(out / "jobs.parquet").duration_s.tolist()[1] == 3600


def test_types_are_named_by_the_catalogue_and_unknown_ones_are_said(imported: Callable[..., Any]) -> None:
    found, out = imported(row("1", 0, "nvidia_a100-sxm4-80gb"), row("2", 5, "abacus", node="g2"))
    assert set(found["accelerators"]) == {"a100-80gb", "abacus"}
    assert any("nothing is known of the speed of abacus" in sentence for sentence in found["assumed"])
    assert speeds(out)["abacus", "any"] == 1


def test_speeds_may_be_given(imported: Callable[..., Any]) -> None:
    _, out = imported(row("1", 0), words=("--speed", "a100=3", "--speed", "h100=6", "--mix", "mix:vision"))
    x = speeds(out)
    assert (x["a100-40gb", "any"], x["h100", "any"]) == (3, 6)
    assert x["t4", "any"] == relative_speeds(["t4"], "mix:vision")["t4"]


@pytest.mark.parametrize("word", ["h100", "=3", "h100=0", "h100=fast", "h100=-1"])
def test_a_speed_that_is_none_is_refused(imported: Callable[..., Any], word: str) -> None:
    found, out = imported(row("1", 0), words=("--speed", word), code=2)
    assert "must be TYPE=X" in found["error"]["problems"][0]["rule"]
    assert not out.exists()


def test_where_nothing_names_a_type_the_option_or_the_machines_do(imported: Callable[..., Any], tmp_path: Path) -> None:
    bare = row("1", 0, "")
    assert imported(bare)[0]["accelerators"] == {"gpu": 2}
    assert imported(bare, words=("--type", "h100", "--force"))[0]["accelerators"] == {"h100": 2}
    listed = "NodeName=g1 Gres=gpu:l4:4 State=IDLE\nNodeName=g2 Gres=gpu:t4:8 State=DOWN\n"
    found, out = imported(bare, nodes=listed, words=("--force",))
    assert found["accelerators"] == {"l4": 4, "t4": 8}
    assert load_scenario(out / "scenario.toml").throughputs.reference_type == "l4"
    assert any("1 machines are down" in sentence for sentence in found["assumed"])


def test_jobs_are_held_to_a_type_only_if_asked(imported: Callable[..., Any]) -> None:
    lines = (row("1", 0, asked="a100"), row("2", 5, "v100", node="g2"))
    found, out = imported(*lines)
    assert read(out / "jobs.parquet").job_type == ("any", "any")
    assert any("asked for one accelerator type" in one["what"] for one in found["findings"])
    _, out = imported(*lines, words=("--keep-types", "--force"))
    assert read(out / "jobs.parquet").job_type == ("only a100-40gb", "any")
    rates = {kind: rate for (kind, job_type), rate in speeds(out).items() if job_type == "only a100-40gb"}
    assert [kind for kind, rate in rates.items() if rate > 0] == ["a100-40gb"]
    assert "v100" in rates  # said to be 0


def test_jobs_that_do_not_fit_the_machines_are_left_out(imported: Callable[..., Any]) -> None:
    listed = "NodeName=g1 Gres=gpu:a100:4 State=IDLE\n"
    found, out = imported(
        row("1", 0), row("2", 1, width=8), row("3", 2, asked="t4"), nodes=listed, words=("--keep-types",)
    )
    assert read(out / "jobs.parquet").job_id == ("1",)
    left = {one["what"]: one["count"] for one in found["findings"] if one["kind"] == "left out"}
    assert left == {
        "jobs are wider than every accelerator type of the cluster": 1,
        "jobs asked for an accelerator type that the cluster does not have": 1,
    }
    assert "no job fits" in json.dumps(imported(row("2", 1, width=8), nodes=listed, words=("--force",), code=2)[0])


def test_an_earlier_import_is_replaced_only_by_force(imported: Callable[..., Any]) -> None:
    imported(row("1", 0))
    assert "the folder exists" in json.dumps(imported(row("1", 0), code=2)[0])
    imported(row("1", 0), words=("--force",))
    (imported(row("1", 0), words=("--force",))[1] / "mine.txt").write_text("x")
    assert "something else" in json.dumps(imported(row("1", 0), words=("--force",), code=2)[0])


def test_jobs_without_an_account_are_a_tenant_of_their_own(imported: Callable[..., Any]) -> None:
    _, out = imported(row("1", 0), row("2", 1).replace("|lab|", "||"))
    today = load_scenario(out / "scenario.toml")
    assert today.workload.missing_vc == "own"
    assert simulate(today).jobs["tenant"].tolist() == ["lab", ""]


def test_names_of_files_and_types_cannot_break_the_scenario(imported: Callable[..., Any]) -> None:
    _, out = imported(row("1", 0, 'x"]\\'))
    assert load_scenario(out / "scenario.toml").cluster.types == ('x"]\\',)


def test_the_report_for_people_has_every_finding_and_its_line(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([HEADER, row("1", 0), row("2", 1).replace("COMPLETED", "TIMEOUT"), "3|cut"]))
    done = RUN.invoke(app, ["import", "slurm", str(path), "--out", str(tmp_path / "ours")])
    assert done.exit_code == 0, done.output
    assert f"such as {path}:4  3|cut" in done.stdout
    assert "assumed: 1 jobs reached their time limit" in done.stdout
    assert f"eunomia compare {tmp_path / 'ours' / 'scenario.toml'}" in done.stdout


def test_kubernetes_and_ray_are_imported_with_the_machines_in_their_lists(tmp_path: Path) -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "Tesla-T4"}},
        "status": {"capacity": {"nvidia.com/gpu": "4"}},
    }
    ended = {"state": {"terminated": {"finishedAt": "2024-01-01T02:00:00Z"}}}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "lab", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"nodeName": "n", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
        "status": {"phase": "Succeeded", "startTime": "2024-01-01T01:00:00Z", "containerStatuses": [ended]},
    }
    driver = {"job_id": "01", "start_time": 1704067200000, "end_time": 1704070800000, "status": "SUCCEEDED"}
    group = {
        "placement_group_id": "g",
        "creator_job_id": "01",
        "bundles": [{"unit_resources": {"GPU": 2}, "node_id": "r"}],
    }
    machine = {"node_id": "r", "state": "ALIVE", "resources_total": {"GPU": 4, "accelerator_type:L4": 1}}
    for engine, items, kind in (("kubernetes", [node, pod], "t4"), ("ray", [driver, group, machine], "l4")):
        path = tmp_path / f"{engine}.json"
        path.write_text(json.dumps(items))
        done = RUN.invoke(app, ["import", engine, str(path), "--out", str(tmp_path / engine), "--json"])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout.splitlines()[-1])
        assert (found["jobs"], found["accelerators"], found["accelerator_hours"]) == (1, {kind: 4}, 2)
        assert simulate(load_scenario(tmp_path / engine / "scenario.toml")).summary["jct_mean_s"] == pytest.approx(3600)


SPANS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(1, 8), st.integers(0, 2)), min_size=1, max_size=12
)


@given(SPANS, st.booleans())
def test_the_guessed_cluster_holds_what_ran_at_the_same_time(
    spans: list[tuple[int, int, int, int]], named: bool
) -> None:
    start, length, width, node = (np.array(column) for column in zip(*spans, strict=True))
    history = History(
        trace=trace_of(
            "x", [str(m) for m in range(len(spans))], start.astype(float), width, duration_s=length.astype(float)
        ),
        started_s=start.astype(float),
        ended_s=(start + length).astype(float),
        ran_on=("",) * len(spans),
        asked_for=("",) * len(spans),
        machines=tuple((f"n{k}",) if named else () for k in node.tolist()),
        findings=(),
    )
    nodes, _ = guess_nodes(history, ["v100"] * len(spans))

    def held(second: int, place: int | None) -> int:
        inside = (start <= second) & (second < start + length) & ((node == place) | (place is None))
        return int(width[inside].sum())

    if named:
        peaks = sorted(max(held(second, place) for second in range(30)) for place in set(node.tolist()))
        sizes = sorted(each.accelerators for each in nodes)
        assert len(sizes) == len(peaks)
        assert all(size >= peak and (size < 2 * peak or size <= 10) for size, peak in zip(sizes, peaks, strict=True))
    else:
        assert sum(each.accelerators for each in nodes) == max(held(second, None) for second in range(30))


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA-A100-SXM4-80GB", "a100-80gb"),
        ("Tesla-V100-SXM2-16GB", "v100"),
        ("tesla_v100-sxm2-32gb", "v100-32gb"),
        ("NVIDIA-H100-80GB-HBM3", "h100"),
        ("nvidia-tesla-t4", "t4"),
        ("AMD-Instinct-MI300X-OAM", "mi300x"),
        ("1g.5gb", None),
        ("a100_1g.10gb", None),
        ("geforce_rtx_2080_ti", None),
        ("NVIDIA-RTX-6000-Ada-Generation", None),
        ("", None),
    ],
)
def test_devices_are_recognised_by_the_names_that_drivers_give_them(device: str, name: str | None) -> None:
    found = recognise(device)
    assert (None if found is None else found.name) == name
