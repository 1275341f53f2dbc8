"""A throughput is measured, estimated with an interval, or 0: what is none of the three reaches no policy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import eunomia
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia.throughputs import load

RUN = CliRunner()
RESNET, A3C = "ResNet-50 (batch size 64)", "A3C"
HALF = f"""type,job_type,scale_factor,steps_per_s
v100,{RESNET},1,4
v100,{A3C},1,20
a100,{RESNET},1,9
k80,{RESNET},1,0
"""  # not there: A3C on a100 and on k80
JOBS = f"""job_id,submitted_s,scale_factor,job_type,total_steps
a,0,1,{RESNET},4000
b,10,1,{A3C},20000
c,20,2,{A3C},4000
"""
SCENARIO = """
[cluster]
accelerators = { v100 = 2, a100 = 2, k80 = 1 }
[workload]
trace = "jobs.csv"
[throughputs]
source = "speeds.csv"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario whose table has gaps, in which commands run."""
    monkeypatch.chdir(tmp_path)
    files = {
        "speeds.csv": HALF,
        "jobs.csv": JOBS,
        "s.toml": SCENARIO,
        "site.toml": SCENARIO.replace('[workload]\ntrace = "jobs.csv"\n', ""),
    }
    files["sweep.toml"] = 'scenario = "s.toml"\n[axes]\npolicy = ["fifo", "las"]\n'
    for name, text in files.items():
        Path(name).write_text(text)
    return tmp_path


def scenario(**throughputs: Any) -> dict[str, Any]:
    return {
        "cluster": {"accelerators": {"v100": 2, "a100": 2, "k80": 1}},
        "workload": {"trace": "jobs.csv"},
        "throughputs": {"source": "speeds.csv", **throughputs},
    }


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "s.toml"),
        ("compare", "s.toml", "--policy", "fifo", "--policy", "las"),
        ("sweep", "sweep.toml"),
        ("serve", "site.toml", "--check"),
    ],
)
def test_a_table_with_gaps_is_refused_by_each_command_and_nothing_is_written(
    folder: Path, words: tuple[str, ...]
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    done = RUN.invoke(app, [*words, *(() if words[0] == "serve" else ("--out", "out")), "--json"])
    assert done.exit_code == 2, done.output
    problems = json.loads(done.stdout.splitlines()[-1])["error"]["problems"]
    mine = [problem for problem in problems if problem["file"] == "speeds.csv"]
    assert [(problem["column"], problem["value"]) for problem in mine] == [("type", "a100"), ("type", "k80")]
    assert all("'A3C'" in problem["rule"] and RESNET not in problem["rule"] for problem in mine)
    assert all("0" in problem["fix"] and "eunomia calibrate" in problem["fix"] for problem in mine)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_problem_with_unknown_throughputs_is_refused_once_for_each_type() -> None:
    rates = [[1.0, None], [2.0, float("nan")], [3.0, 1.0]]
    with pytest.raises(InvalidInput) as refused:
        eunomia.solve("fifo", {"types": ["v100", "k80"], "capacity": [2, 2], "throughput": rates})
    (problem,) = refused.value.problems
    assert (problem.row, problem.column) == (1, "throughput.k80")
    assert "2 of 3 jobs (rows 1, 2)" in problem.rule
    assert "0 if it cannot run there" in problem.fix
    assert "eunomia calibrate" in problem.fix


def test_durations_meet_the_same_error_once(folder: Path) -> None:
    Path("jobs.csv").write_text(
        JOBS.replace("total_steps", "duration_s") + "".join(f"d{m},30,1,{A3C},60\n" for m in range(140))
    )
    with pytest.raises(InvalidInput) as refused:
        eunomia.simulate(scenario(reference_type="a100"))
    first, second = refused.value.problems
    assert (first.value, second.value) == ("a100", "k80")
    assert "(of 142 jobs)" in first.rule
    assert "eunomia calibrate" in first.fix


def test_durations_on_a_type_that_cannot_run_a_job_type_are_refused_once(folder: Path) -> None:
    Path("jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,duration_s\n"
        + "".join(f"d{m},30,1,{RESNET},60\n" for m in range(140))
    )
    with pytest.raises(InvalidInput, match=r"cannot run on k80.* 0 in 'speeds.csv' \(140 jobs") as refused:
        eunomia.simulate(scenario(reference_type="k80"))
    assert refused.value.count == 1


def test_the_commands_of_the_message_lead_to_a_run_that_names_its_estimates(folder: Path) -> None:
    # by hand: of two job types on three types ResNet has two measured and a 0, A3C one measured at 1 accelerator;
    # c is 2 wide, so k80 does not hold it, and its speed on v100 and a100 is estimated
    made = RUN.invoke(app, ["calibrate", "speeds.csv", "--types", "v100,a100,k80", "--out", "calibrated.csv"])
    assert made.exit_code == 0, made.output
    assert "measured" in made.output
    assert "estimated" in made.output
    result = eunomia.simulate(scenario(source="calibrated.csv"))
    assert (result.summary["throughputs_used"], result.summary["throughputs_estimated"]) == (7, 4)
    assert any("4 of 7 throughputs" in note for note in result.notes)
    assert "4 of 7 throughputs" in result.as_dict()["estimates"][0]
    done = RUN.invoke(
        app,
        [
            "compare",
            "s.toml",
            "--set",
            "throughputs.source=calibrated.csv",
            "--policy",
            "fifo",
            "--policy",
            "las",
            "--out",
            "c",
        ],
    )
    assert done.exit_code == 0, done.output
    assert done.output.count("4 of 7 throughputs are estimates") >= 1
    assert "4 of 7 throughputs are estimates" in Path("c/report.html").read_text()
    header, *rows = Path("c/compare.csv").read_text().splitlines()
    place = header.split(",").index("throughputs_estimated")
    assert {row.split(",")[place] for row in rows} == {"4"}


def test_a_calibrated_table_keeps_what_was_measured_and_every_interval(folder: Path) -> None:
    RUN.invoke(app, ["calibrate", "speeds.csv", "--types", "v100,a100,k80", "--sizes", "1", "--out", "calibrated.csv"])
    rates = load("calibrated.csv", ["v100", "a100", "k80"], base=folder)
    assert rates.estimated(RESNET, 1).tolist() == [False, False, False]
    assert rates.estimated(A3C, 1).tolist() == [False, True, True]
    assert rates.solo_throughput(RESNET, 1).tolist() == [4, 9, 0]
    low, high = rates.interval(A3C, 1)
    assert (low < rates.solo_throughput(A3C, 1)).all()
    assert (rates.solo_throughput(A3C, 1) < high).all()


def test_gaps_are_estimated_or_stated_to_be_0_by_one_key(folder: Path) -> None:
    estimated = eunomia.simulate(scenario(missing="estimate"))
    assert estimated.summary["throughputs_estimated"] == 4
    stated = eunomia.simulate(scenario(missing="cannot_run"))
    assert stated.summary["throughputs_estimated"] == 1  # of the gang of 2 on v100, from that of 1
    # by hand: A3C runs on v100 only, b from 10 s to 1,010 s, and c waits for it
    jct = dict(zip(stated.jobs["job_id"].tolist(), stated.jobs["first_started_s"].tolist(), strict=True))
    assert jct["c"] >= 1010


def test_estimates_are_drawn_by_the_seed_and_once(folder: Path) -> None:
    draws: dict[int, list[float]] = {}
    for seed in (0, 1, 2, 0):
        result = eunomia.simulate(scenario(missing="estimate", draw=True) | {"seed": seed})
        finished = result.jobs["finished_s"].tolist()
        assert draws.setdefault(seed, finished) == finished
        assert any("drawn from their 80 % intervals by the seed" in note for note in result.notes)
    assert len({tuple(each) for each in draws.values()}) == 3


def test_measured_throughputs_are_never_drawn(folder: Path) -> None:
    Path("one.csv").write_text("\n".join(JOBS.splitlines()[:3]) + "\n")
    for seed in (0, 1):
        one = scenario(draw=True) | {"cluster": {"accelerators": {"v100": 1}}, "workload": {"trace": "one.csv"}}
        result = eunomia.simulate(one | {"seed": seed})
        assert result.summary["throughputs_estimated"] == 0
        assert result.jobs["attained_service_s"].tolist() == [1000, 1000]  # 4,000 steps at 4, 20,000 at 20


def test_a_tenth_of_the_draws_is_below_the_interval_and_a_tenth_above(tmp_path: Path) -> None:
    header = "type,job_type,scale_factor,steps_per_s,steps_per_s_p10,steps_per_s_p90,origin"
    (tmp_path / "t.csv").write_text(f"{header}\ngpu,m,1,10,5,40,estimated\n")
    stated = load("t.csv", ["gpu"], base=tmp_path)
    drawn = [replace(stated, drawn_by=seed).solo_throughput("m", 1)[0] for seed in range(1000)]
    assert np.quantile(drawn, [0.1, 0.5, 0.9]) == pytest.approx([5, 10, 40], rel=0.15)


def test_a_policy_sees_the_estimate_and_the_world_the_draw(folder: Path) -> None:
    from eunomia.scenario import scenario_from_dict
    from eunomia.setup.run_config import set_up

    setup = set_up(scenario_from_dict(scenario(missing="estimate", draw=True), folder))
    believed, true = (speeds.solo_throughput(A3C, 1) for speeds in (setup.believed, setup.truth))
    assert believed[0] == true[0] == 20  # measured
    assert (believed[1:] != true[1:]).all()
    assert (
        believed == set_up(scenario_from_dict(scenario(missing="estimate"), folder)).truth.solo_throughput(A3C, 1)
    ).all()


@pytest.mark.parametrize("types", ["a1000 = 4", "v100 = 4"])
def test_durations_on_one_type_need_no_job_types_and_no_catalogue(tmp_path: Path, types: str) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submitted_s,scale_factor,duration_s\na,0,2,100.1\nb,0,3,777.7\n")
    (tmp_path / "s.toml").write_text(f'[cluster]\naccelerators = {{ {types} }}\n[workload]\ntrace = "jobs.csv"\n')
    first = eunomia.simulate(tmp_path / "s.toml")
    again = first.scenario.as_dict() | {"workload": {"trace": str(tmp_path / "jobs.csv")}}  # as a result stores it
    results = (first, eunomia.simulate(again))
    for result in results:
        assert result.jobs["jct_s"].tolist() == pytest.approx([100.1, 877.8], rel=1e-12)
        assert result.summary["throughputs_estimated"] == 0


def test_names_that_the_catalogue_lacks_are_accepted_on_one_type_and_grouped_on_several(tmp_path: Path) -> None:
    rows = "".join(f"j{m},0,1,train{m},60\n" for m in range(30))
    (tmp_path / "jobs.csv").write_text(f"job_id,submitted_s,scale_factor,job_type,duration_s\n{rows}")
    one = {"cluster": {"accelerators": {"a100-80gb": 30}}, "workload": {"trace": str(tmp_path / "jobs.csv")}}
    assert set(eunomia.simulate(one).jobs["jct_s"].tolist()) == {60}
    with pytest.raises(InvalidInput, match=r'30 job types.*source = "uniform"') as refused:
        eunomia.simulate(one | {"cluster": {"accelerators": {"a100-80gb": 8, "v100": 8}}})
    assert refused.value.count == 1


@pytest.mark.parametrize(
    ("row", "column", "said"),
    [
        ("gpu,m,1,10,,,guessed", "origin", "measured"),
        ("gpu,m,1,10,,,estimated", "origin", "how sure"),
        ("gpu,m,1,10,5,,estimated", "steps_per_s_p10", "two ends"),
        ("gpu,m,1,10,0,20,estimated", "steps_per_s_p10", "above 0"),
    ],
)
def test_an_origin_that_says_nothing_is_refused(tmp_path: Path, row: str, column: str, said: str) -> None:
    header = "type,job_type,scale_factor,steps_per_s,steps_per_s_p10,steps_per_s_p90,origin"
    (tmp_path / "t.csv").write_text(f"{header}\n{row}\n")
    with pytest.raises(InvalidInput) as refused:
        load("t.csv", ["gpu"], base=tmp_path)
    assert refused.value.problems[0].column == column
    assert said in f"{refused.value.problems[0].rule}; {refused.value.problems[0].fix}"


@st.composite
def gaps(draw: st.DrawFn) -> tuple[dict[tuple[str, str], float | None], dict[str, int], list[tuple[str, int]]]:
    """A table of rates with gaps (None), the accelerators of each type, and jobs by type and size."""
    types, names = ("x", "y", "z")[: draw(st.integers(1, 3))], ("a", "b", "c")[: draw(st.integers(1, 3))]
    rate = st.sampled_from([None, None, 0.0, 1.0, 2.0])
    table = {(kind, name): draw(rate) for kind in types for name in names}
    capacity = {kind: draw(st.integers(1, 4)) for kind in types}
    jobs = draw(st.lists(st.tuples(st.sampled_from(names), st.integers(1, 4)), min_size=1, max_size=6))
    return table, capacity, jobs


@settings(max_examples=60)
@given(world=gaps())
def test_exactly_the_missing_throughputs_that_are_needed_are_named(
    world: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table, capacity, jobs = world
    given_rates = {key: rate for key, rate in table.items() if rate is not None}
    known = {name for _, name in given_rates}
    if set(capacity) - {kind for kind, _ in given_rates} or {name for name, _ in jobs} - known:
        return  # a type or a job type without any row has an error of its own
    folder = tmp_path_factory.mktemp("gaps")
    rows = "".join(f"{kind},{name},1,{rate}\n" for (kind, name), rate in given_rates.items())
    (folder / "t.csv").write_text(f"type,job_type,scale_factor,steps_per_s\n{rows}")
    needed = {
        (kind, name) for name, size in jobs for kind in capacity if size <= capacity[kind] and table[kind, name] is None
    }
    speeds = load("t.csv", list(capacity), base=folder, capacity=list(capacity.values()))
    counts = {job: jobs.count(job) for job in jobs}
    if not needed:
        speeds.refuse_unknown(counts)
        for name, size in jobs:
            rates = speeds.solo_throughput(name, size)
            assert [rate > 0 for rate in rates.tolist()] == [bool(table[kind, name]) for kind in capacity]
        return
    with pytest.raises(InvalidInput) as refused:
        speeds.refuse_unknown(counts)
    said = {
        (p.value, name)
        for p in refused.value.problems
        for name in p.rule.rpartition(": ")[2].replace("'", "").split(", ")
    }
    assert said == needed


def test_a_reader_may_ask_which_throughputs_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HALF)
    rates = eunomia.load_throughputs("t.csv", ["v100", "a100", "k80"], base=tmp_path)
    assert rates.not_known(RESNET) == ()
    assert rates.not_known(A3C) == ("a100", "k80")
    with pytest.raises(InvalidInput, match="'A3C'"):
        rates.solo_throughput(A3C, 1)
    assert not rates.extrapolated(RESNET, 1)
    assert rates.extrapolated(RESNET, 2)
