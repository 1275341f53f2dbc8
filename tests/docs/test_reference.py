"""The reference says what is: every command, option and column of it exists, and every one that exists is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer.main

import eunomia
from eunomia.cli import app
from eunomia.metrics import Metrics
from eunomia.model.events import JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.model.wait_reason import KINDS
from eunomia.runs.compare import KNOWS_DURATIONS, PRICES, cases, compare, write_table
from eunomia.runs.simulation import tenants_table
from eunomia.scenario import scenario_from_dict
from eunomia.testing.small_worlds import one_type

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
SMALL: Mapping[str, Any] = {
    "cluster": {"accelerators": {"gpu": 2}},
    "workload": {"generator": "poisson", "jobs": 3},
    "throughputs": {"source": "uniform"},
}


def section(heading: str) -> str:
    """Return what stands between a heading and the next one."""
    found = re.search(rf"^### `{heading}`$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference.md has no section {heading}"
    return found[1]


def named(text: str) -> list[str]:
    """Return the names in the first column of the table."""
    return [name.split()[0] for name in re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)]


def commands(group: Any = None, before: str = "") -> dict[str, Any]:
    """Return every command by its words: `simulate`, `trace describe`."""
    found: dict[str, Any] = {}
    for name, command in (group or typer.main.get_command(app.app)).commands.items():
        inside = hasattr(command, "commands")
        found |= commands(command, f"{before}{name} ") if inside else {before + name: command}
    return found


def test_the_reference_has_every_command_and_no_other() -> None:
    reported = re.findall(r"^### `eunomia ([a-z-]+(?: [a-z][a-z-]*)*)", PAGE, re.MULTILINE)
    assert sorted(reported) == sorted(commands())


@pytest.mark.parametrize("name", sorted(commands()))
def test_the_reference_has_every_option_of_a_command_and_no_other(name: str) -> None:
    real = {text for option in commands()[name].params for text in option.opts if text.startswith("--")}
    assert sorted(named(section(rf"eunomia {name}(?: [^`]*)?"))) == sorted(real - {"--help"})


def test_the_reference_says_which_options_are_required() -> None:
    for name, command in commands().items():
        rows = section(rf"eunomia {name}(?: [^`]*)?").splitlines()
        reported = {row.split("`")[1].split()[0] for row in rows if row.startswith("| `") and "required" in row}
        assert reported == {option.opts[0] for option in command.params if option.required and option.opts[0][0] == "-"}


@pytest.fixture(scope="module")
def result() -> eunomia.Result:
    return eunomia.simulate(SMALL)


def test_the_reference_has_every_name_of_the_summary_in_order(result: eunomia.Result) -> None:
    assert [name.replace("<type>", "gpu") for name in named(section("summary.json"))] == list(result.summary)


def test_the_reference_has_every_column_of_the_jobs_in_order(result: eunomia.Result) -> None:
    assert [name.replace("<type>", "gpu") for name in named(section("jobs.csv"))] == list(result.jobs)


def test_the_reference_has_every_column_of_the_tenants_in_order(result: eunomia.Result) -> None:
    assert named(section("tenants.csv")) == list(tenants_table([("fifo", result)]))


def test_the_reference_has_every_column_of_the_apps_in_order() -> None:
    job = Job(job_id="a", total_steps=1, app="x")
    metrics = Metrics(Topology.of([Node(type="gpu", accelerators=1)]), one_type(), {})
    metrics.observe(Moment(0, (JobSubmitted(job), JobSubmitted(replace(job, job_id="b")))), [])
    assert named(section("apps.csv")) == list(metrics.figures().apps)


def test_the_reference_has_every_name_of_the_timing_in_order(result: eunomia.Result) -> None:
    assert named(section("timing.json")) == list(result.timing)


def test_the_columns_of_a_comparison_are_those_of_the_summary_between_who_ran_and_what_it_cost(tmp_path: Path) -> None:
    runs = list(compare(cases(scenario_from_dict(SMALL, tmp_path), [], [], []), tmp_path))
    write_table(tmp_path / "compare.csv", runs)
    header = (tmp_path / "compare.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.split(",") == ["policy", "load", "seed", *runs[0][1].summary, *PRICES, KNOWS_DURATIONS]
    assert {*PRICES, KNOWS_DURATIONS} <= set(re.findall(r"`(\w+)`", section("compare.csv")))


def test_the_reference_has_every_name_of_the_header_of_a_record(tmp_path: Path) -> None:
    record = eunomia.simulate(
        {**SMALL, "tenants": {"a": {"weight": 2.0}}}, record_to=tmp_path / "record.jsonl.gz"
    ).record
    assert record is not None
    reported = set(re.findall(r"`(\w+)`", section("record.jsonl.gz").partition("Then one line")[0]))
    assert reported == set(record.header)


def test_the_reference_has_every_reason_that_an_explanation_gives() -> None:
    reported = re.findall(r"`(\w+)`", section("eunomia explain[^`]*").partition("Reasons:")[2])
    assert sorted(reported) == sorted(KINDS)
