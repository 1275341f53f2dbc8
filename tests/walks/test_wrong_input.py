"""Wrong input is answered with exit code 2 and everything that is wrong; nothing is written, nothing is lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Desk

Jobs = Callable[..., str]
RUN = ("simulate", "tiny.toml", "--out", "out")


def test_a_missing_column_is_named_with_the_line_of_the_header(desk: Desk) -> None:
    desk.write("jobs.csv", "job_id,submitted_s,job_type,duration_s\na,0,LM,5\n")
    assert desk.places(*RUN) == [("jobs.csv", 1, "scale_factor")]


def test_all_wrong_cells_of_a_trace_are_named_in_one_go(desk: Desk, jobs: Jobs) -> None:
    desk.write("jobs.csv", jobs("a,5,-2,LM,nan", "a,1,1,LM,-1", "b,7,1.5,LM,inf", "c,8,1,LM,5"))
    assert sorted(desk.places(*RUN)) == [
        ("jobs.csv", 2, "duration_s"),
        ("jobs.csv", 2, "scale_factor"),
        ("jobs.csv", 3, "duration_s"),
        ("jobs.csv", 3, "job_id"),
        ("jobs.csv", 3, "submitted_s"),
        ("jobs.csv", 4, "duration_s"),
        ("jobs.csv", 4, "scale_factor"),
    ]


def test_of_many_equal_problems_the_first_rows_are_shown_and_all_are_counted(desk: Desk, jobs: Jobs) -> None:
    desk.write("jobs.csv", jobs(*(f"j{m},{m},1,LM,-1" for m in range(50))))
    assert desk.refused(*RUN)["count"] == 50
    assert desk.type(*RUN) == 2
    assert "error: 50 problems" in desk.stderr
    assert "(also in rows 3, 4, 5, 6, 7 and 44 more)" in desk.stderr
    assert desk.stdout == ""


def test_an_accelerator_type_that_is_not_known_is_shown_where_the_scenario_names_it(desk: Desk) -> None:
    groups = (f'  {{ type = "{name}", count = 1, accelerators = 2 }},' for name in ("v100", "a1000"))
    nodes = "\n".join(["nodes = [", *groups, "]"])
    scenario = (desk.folder / "tiny.toml").read_text().replace('source = "uniform"', 'source = "catalogue"')
    desk.write("tiny.toml", scenario.replace("accelerators = { v100 = 2 }", nodes))
    assert desk.places(*RUN) == [("tiny.toml", 4, "cluster.nodes.1.type")]
    desk.write("tiny.toml", scenario.replace("v100 = 2", "a1000 = 2"))
    assert desk.places(*RUN) == [("tiny.toml", 2, "cluster.accelerators.a1000")]


def test_all_wrong_options_of_a_comparison_are_named_in_one_go(desk: Desk) -> None:
    words = ("compare", "tiny.toml", "--load", "0", "--seed", "-1", "--policy", "fifos", "--policy", "las?x=1")
    columns = [problem["column"] for problem in desk.refused(*words)["problems"]]
    assert columns == ["--load", "--seed", "policy.name", "policy.x"]


def test_options_scenario_and_folder_are_checked_together(desk: Desk) -> None:
    desk.write("out", "a file in the way")
    desk.write("tiny.toml", (desk.folder / "tiny.toml").read_text() + "[policy]\nname = 'fifos'\n[world]\nspeed = 1\n")
    for command in ("simulate", "compare"):
        problems = desk.refused(command, "tiny.toml", "--out", "out", "--charts", "gif")["problems"]
        assert {problem["column"] for problem in problems} >= {"--out", "--charts", "world.speed"}, problems


def test_every_gang_wider_than_the_cluster_is_named(desk: Desk, jobs: Jobs) -> None:
    desk.write("jobs.csv", jobs("a,0,3,LM,5", "b,0,2,LM,5", "c,0,4,LM,5"))
    assert desk.places(*RUN) == [("jobs.csv", 2, "scale_factor"), ("jobs.csv", 4, "scale_factor")]


def test_a_job_that_no_type_can_run_is_named(desk: Desk) -> None:
    rates = [f"{kind},{job},{size},{rate}" for kind, rate in (("v100", 1), ("k80", 0)) for job in ("LM", "CNN")
             for size in (1, 2)]  # fmt: skip
    desk.write("rates.csv", "type,job_type,scale_factor,steps_per_s\n" + "\n".join(rates) + "\n")
    on_k80 = ("--set", "cluster.accelerators={ k80 = 2 }", "--set", "throughputs.source=rates.csv")
    assert desk.places(*RUN, *on_k80) == [("jobs.csv", row, "job_type") for row in (2, 3, 4)]


def test_all_wrong_rows_of_a_throughput_table_are_named(desk: Desk) -> None:
    desk.write("rates.csv", "type,job_type,scale_factor,steps_per_s\nv100,LM,1,-1\nv100,LM,x,1\nv100,CNN,1,nan\n")
    assert desk.places(*RUN, "--set", "throughputs.source=rates.csv") == [
        ("rates.csv", 2, "steps_per_s"),
        ("rates.csv", 3, "scale_factor"),
        ("rates.csv", 4, "steps_per_s"),
    ]


@pytest.mark.parametrize("content", [b"", b"job_id,submitted_s,scale_factor,job_type,duration_s\n", b"\xff\xfe\x00"])
def test_a_trace_without_a_job_is_refused(desk: Desk, content: bytes) -> None:
    desk.write("jobs.csv", content)
    assert desk.places(*RUN)[0][0] == "jobs.csv"


def test_a_trace_that_is_not_there_or_cut_short_or_damaged_is_named(desk: Desk) -> None:
    packed = gzip.compress(b"job_id,submitted_s,scale_factor,job_type,duration_s\n" + b"a,0,1,LM,5\n" * 200, mtime=0)
    desk.write("short.csv.gz", packed[:-20])
    desk.write("harmed.csv.gz", packed[:20] + bytes(8) + packed[28:])
    for name in ("absent.csv", "short.csv.gz", "harmed.csv.gz"):
        assert desk.places(*RUN, "--set", f"workload.trace={name}") == [(name, None, None)]


@pytest.mark.parametrize("name", ["lab/", "/lab", "lab//vision", ""])
def test_a_tenant_whose_path_has_an_empty_part_is_refused_everywhere(desk: Desk, name: str) -> None:
    text = (desk.folder / "tiny.toml").read_text()
    desk.write("named.toml", f'{text}\n[tenants]\n"{name}" = {{ weight = 2 }}\n')
    assert [place[2] for place in desk.places("simulate", "named.toml", "--out", "out")] == [f"tenants.{name}"]
    if name:  # in a trace it is that of a job which names none
        head = "job_id,submitted_s,scale_factor,job_type,duration_s,tenant"
        desk.write("jobs.csv", f"{head}\na,0,1,LM,5,lab\nb,0,1,LM,5,{name}\nc,0,1,LM,5,{name}\n".encode())
        assert desk.places(*RUN) == [("jobs.csv", 3, "tenant")]


@pytest.mark.parametrize(
    ("line", "column", "fix"),
    [
        ("[polcy]\nname = 'fifo'", "polcy", "policy"),
        ("[mechanism]\nlenght_s = 60", "mechanism.lenght_s", "length_s"),
        ("[policy]\nname = 'fiffo'", "policy.name", "fifo"),
        ("[policy]\nname = 'fifo'\nbackfil = 'skip'", "policy.backfil", "backfill"),
        ("[mechanism]\nname = 'lease'", "mechanism.name", "leases"),
        ("[mechanism]\nname = 'tiresias'", "mechanism.name", "leases"),
        ("[overheads]\nstart = 3", "overheads.start", "start_s"),
    ],
)
def test_a_misspelt_name_of_the_scenario_is_answered_with_its_line_and_the_nearest(
    desk: Desk, line: str, column: str, fix: str
) -> None:
    path = desk.folder / "tiny.toml"
    row = path.read_text().count("\n") + 1 + (line.count("\n") if "." in column else 0)
    path.write_text(path.read_text() + line + "\n")
    (problem,) = desk.refused(*RUN)["problems"]
    assert (problem["row"], problem["column"]) == (row, column)
    assert fix in problem["fix"]


def test_what_is_no_toml_is_named_with_its_line(desk: Desk) -> None:
    desk.write("tiny.toml", "seed = 0\n[cluster\n")
    assert desk.places(*RUN) == [("tiny.toml", 2, None)]


@pytest.mark.parametrize(
    "said",
    ["laod=1", "workload.laod=1", "load", "=1", "workload.load=", "workload.load=fast", "workload.load=-1", "seed=-1",
     "seed=1e99", "mechanism.length_s=0", "mechanism.length_s=nan", "mechanism.length_s=inf", "cluster=3",
     "workload.generator=philly-like", "workload.format=xls", "workload.start_s=1e9", "throughputs.source=absent.csv",
     "world.backend=moon", "policy.backfill=[1]"],
)  # fmt: skip
def test_a_wrong_override_is_refused(desk: Desk, said: str) -> None:
    desk.refused(*RUN, "--set", said)


@pytest.mark.parametrize(
    ("policy", "fix"),
    [
        ("fiffo", "fifo"),
        ("fifo?backfil=skip", "backfill"),
        ("fifo?backfill=maybe", "eunomia policies fifo"),
        ("fifo?", "backfill"),
        ("", "fifo"),
        ("absent.py:Mine", "path.py:Class"),
    ],
)
def test_a_policy_or_parameter_that_is_not_known_is_answered_with_what_is(desk: Desk, policy: str, fix: str) -> None:
    (problem,) = desk.refused(*RUN, "--policy", policy)["problems"]
    assert fix in problem["fix"]


@pytest.mark.parametrize(
    ("content", "row"),
    [("x = (", 1), ("x = 1\nimport nowhere_to_be_found", 2), ("x = 1\n\n1 / 0", 3), ("raise SystemExit(0)", 1)],
)
def test_a_policy_file_that_cannot_be_loaded_is_named_with_its_line(desk: Desk, content: str, row: int) -> None:
    desk.write("mine.py", content)
    assert desk.places(*RUN, "--policy", "mine.py:Mine") == [("mine.py", row, None)]


@pytest.mark.parametrize(
    "content",
    ["", "Mine = 3", "class Mine:\n    info = 3", "from eunomia.policies.order.fifo import Fifo\nMine = Fifo()"],
)
def test_a_policy_file_without_that_class_is_refused(desk: Desk, content: str) -> None:
    desk.write("mine.py", content)
    (problem,) = desk.refused(*RUN, "--policy", "mine.py:Mine")["problems"]
    assert "mine.py has no policy 'Mine'" in problem["rule"]


def test_compare_names_every_wrong_policy_before_it_runs_one(desk: Desk) -> None:
    asked = ("--policy", "fifo", "--policy", "laas", "--policy", "srtff?x=1")
    problems = desk.refused("compare", "tiny.toml", "--out", "out", *asked)["problems"]
    assert [problem["value"] for problem in problems] == ["laas", "srtff"]


@pytest.mark.parametrize("said", [("--load", "0"), ("--load", "nan"), ("--load", "inf"), ("--seed", "-1")])
def test_a_load_or_seed_out_of_range_is_refused(desk: Desk, said: tuple[str, str]) -> None:
    desk.refused("compare", "tiny.toml", "--out", "out", *said)


def test_an_existing_folder_is_replaced_only_with_force(desk: Desk) -> None:
    old = desk.simulate() / "summary.json"
    old.write_text("{}")
    assert desk.places(*RUN) == [("out", None, "--out")]
    desk.simulate("--force")
    assert json.loads(old.read_text())["jobs_submitted"] == 3


def test_no_force_removes_what_we_did_not_write(desk: Desk) -> None:
    out = desk.simulate()
    (out / "thesis.txt").write_text("years of work")
    (problem,) = desk.refused(*RUN, "--force")["problems"]
    assert "thesis.txt" in problem["rule"]
    (desk.folder / "home").mkdir()
    (desk.folder / "home" / "thesis.txt").write_text("years of work")
    desk.refused("simulate", "tiny.toml", "--out", "home", "--force")
    desk.refused("compare", "tiny.toml", "--out", "home", "--force")
    desk.refused("simulate", "tiny.toml", "--out", ".", "--force")


@pytest.mark.parametrize("out", ["jobs.csv", "jobs.csv/out", "x" * 300, "dangling"])
def test_a_place_where_no_folder_can_be_is_refused(desk: Desk, out: str) -> None:
    (desk.folder / "dangling").symlink_to("nowhere")
    assert [column for _, _, column in desk.places("simulate", "tiny.toml", "--out", out, "--force")] == ["--out"]


def test_folders_that_were_made_on_the_way_go_again(desk: Desk) -> None:
    desk.refused("simulate", "tiny.toml", "--out", "new/deep/out", "--policy", "fiffo")


def test_a_link_to_old_results_is_followed(desk: Desk) -> None:
    real = desk.simulate(out="real")
    link = desk.folder / "link"
    link.symlink_to(real)
    desk.simulate("--force", "--set", "seed=7", out="link", record=False)
    assert link.is_symlink()
    assert not (real / "record.jsonl.gz").exists()
    assert Path("real/summary.json").is_file()
