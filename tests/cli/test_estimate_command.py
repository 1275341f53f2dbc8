"""`eunomia estimate`: prints, writes, and refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app

JOBS = ("A (batch size 1)", "A (batch size 2)", "B", "C", "D")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = ["type,job_type,scale_factor,steps_per_s,partner_job_type,partner_steps_per_s"]
    for w, type in enumerate(("k80", "v100")):
        for m, job in enumerate(JOBS):
            rate = (1 + w) * (5 + m)
            rows.append(f"{type},{job},1,{rate},,")
            rows += [f"{type},{job},1,{rate * (0.5 + 0.05 * k)},{other}," for k, other in enumerate(JOBS)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_the_summary_the_cells_and_the_picture_are_written(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["estimate", "--table", str(table), "--references", "3", "--out", str(out), "--json"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout) == json.loads((out / "summary.json").read_text())
    rows = list(csv.DictReader((out / "cells.csv").read_text().splitlines()))
    assert len(rows) == 2 * 5 * 5
    assert {row["role"] for row in rows} == {"reference", "hidden", "profiled", "other"}
    assert all(float(row["p10"]) <= float(row["p90"]) for row in rows if row["p10"])
    assert (out / "truth.svg").stat().st_size > 0
    assert CliRunner().invoke(app, words).exit_code == 2  # it exists
    assert CliRunner().invoke(app, [*words, "--force"]).exit_code == 0


def test_errors_are_drawn_against_what_was_measured(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["estimate", "--table", str(table), "--references", "3", "--out", str(out), "--profiled", "0.5,0"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    points = [
        (float(row["measured"]), row["mean_error"])
        for row in csv.DictReader((out / "errors.csv").read_text().splitlines())
    ]
    assert points[0][0] == 0 < points[1][0]
    assert (out / "errors.svg").stat().st_size > 0


def test_measurements_are_checked_by_the_others(tmp_path: Path) -> None:
    measured, check = tmp_path / "mine.csv", tmp_path / "check"
    rows = [f"{type},A,{size},{size * rate}" for type, rate in (("v100", 4), ("k80", 1)) for size in (1, 2)]
    measured.write_text("\n".join(["type,job_type,scale_factor,steps_per_s", *rows]) + "\n")
    words = ["calibrate", str(measured), "--out", str(tmp_path / "out.csv"), "--check", str(check), "--json", "--force"]
    for _ in range(2):
        ran = CliRunner().invoke(app, words)
        assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["checked"] == 4 == len((check / "truth.csv").read_text().splitlines()) - 1
    assert found["mean_error"] < 0.2
    assert all((check / name).stat().st_size > 0 for name in ("truth.svg", "errors.svg", "errors.csv"))
    measured.write_text("\n".join(["type,job_type,scale_factor,steps_per_s", rows[0]]) + "\n")
    ran = CliRunner().invoke(app, words)
    assert "no job type has two measurements" in json.loads(ran.stdout)["error"]["problems"][0]["rule"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--method", "bests"], "choose one of best"),
        (["--choose", "best"], "choose one of random, telling"),
        (["--solver", "svd"], "choose one of als"),
        (["--references", "9"], "give 2 to 5"),
        (["--profiled", "0.1,0.2"], "give --out DIR"),
        (["--profiled", "0.1,2", "--out", "somewhere"], "write it as 0.2, or several as 0.2,0.05,0.4"),
        (["--profiled", "nan"], "write it as 0.2, or several as 0.2,0.05,0.4"),
    ],
)
def test_what_cannot_be_judged_is_refused(table: Path, words: list[str], said: str) -> None:
    ran = CliRunner().invoke(app, ["estimate", "--table", str(table), "--json", *words])
    assert ran.exit_code == 2
    assert said in json.loads(ran.stdout)["error"]["problems"][0]["fix"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("k80,", "v100,", "two accelerator types or more"),
        ("v100,C,1,16,,", "v100,C,1,16000,,", "give all rates in steps/s"),
        ("v100,C,1,16,,", "v100,C,1,-14,,", "at least 0"),
        ("v100,C,1,16,,", "v100,C,1,nan,,", "finite"),
    ],
)
def test_a_table_with_wrong_rates_or_one_type_is_refused(table: Path, before: str, after: str, said: str) -> None:
    lines = table.read_text().splitlines()
    kept = [line for line in lines if before != "k80," or not line.startswith(before)]
    table.write_text("\n".join(line.replace(before, after) for line in kept) + "\n")
    ran = CliRunner().invoke(app, ["estimate", "--table", str(table), "--references", "3", "--json"])
    assert ran.exit_code == 2
    problem = json.loads(ran.stdout)["error"]["problems"][0]
    assert said in f"{problem['rule']} {problem['fix']}"
    assert problem["file"] == str(table)


def test_a_job_type_that_cannot_run_somewhere_is_no_reference(table: Path) -> None:
    table.write_text(table.read_text().replace("k80,C,1,8,,", "k80,C,1,0,,"))
    ran = CliRunner().invoke(app, ["estimate", "--table", str(table), "--references", "5", "--json"])
    assert ran.exit_code == 2
    (problem,) = json.loads(ran.stdout)["error"]["problems"]
    assert "give 2 to 4" in problem["fix"]
    assert "drawn from the 4 job types that run on every type" in problem["rule"]
