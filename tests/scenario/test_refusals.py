"""What is wrong in a scenario is answered with file, line, key, rule and fix; all of it at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario import scenario_from_dict
from eunomia.scenario.cross_checks import contradictions

Complaints = Callable[..., tuple[Problem, ...]]
HEAD = '[cluster]\naccelerators = { v100 = 4 }\n[workload]\ntrace = "jobs.csv"\n'  # 4 lines


@pytest.mark.parametrize(
    ("line", "column", "says"),
    [
        ("laod = 2", "workload.laod", "did you mean 'load'?"),
        ("load = 0", "workload.load", "must be above 0"),
        ("load = inf", "workload.load", "must be finite"),
        ("load = nan", "workload.load", "nan is not a number"),
        ('load = "2"', "workload.load", "must be a number"),
        ("load = true", "workload.load", "must be a number"),
        ("start_s = -1", "workload.start_s", "must be at least 0"),
        ("end_s = nan", "workload.end_s", "nan is not a number"),
        ("end_s = 0", "workload.end_s", "must be above 0"),
        ("max_jobs = 0", "workload.max_jobs", "must be at least 1"),
        ("max_jobs = 1.5", "workload.max_jobs", "must be a whole number"),
        ('generator = "poisson"', "workload.generator", "never both"),
        ('job_types = "default"', "workload.job_types", "the name of a mix"),
        ("job_types = { a = -1 }", "workload.job_types", "the name of a mix"),
        ("job_types = { }", "workload.job_types", "the name of a mix"),
        ("seed = 1", "workload.seed", "at the top of the scenario"),
        ("when = 2020-01-01", "workload.when", "a date"),
        ("jobs = 0x" + "f" * 5000, "workload.jobs", "64 bits"),
        ("[overhead]", "overhead", "did you mean 'overheads'?"),
        ("[overheads]\nstart = 1", "overheads.start", "did you mean 'start_s'?"),
        ("[overheads]\nrestore_s = inf", "overheads.restore_s", "must be finite"),
        (
            "[overheads]\nload = 1",
            "overheads.load",
            "valid names: checkpoint_s, restore_by_size, restore_s, saves, start_s",
        ),
        ("[world]\nbackend = 'simulatd'", "world.backend", "did you mean 'simulated'?"),
        ("[world]\ncancel_fraction = 1.1", "world.cancel_fraction", "must be at most 1"),
        ("[world]\nreplay_status = 'yes'", "world.replay_status", "must be true or false"),
        ("[world]\nseed = 3", "world.seed", "at the top of the scenario"),
        ("[belief]\nkind = 'orcale'", "belief.kind", "did you mean 'oracle'?"),
        ("[belief]\nerror = 0.1", "belief.error", "an oracle makes no error"),
        ("[policy]\nnmae = 'srtf'", "policy.nmae", "did you mean 'name'?"),
        ("[policy]\nname = ''", "policy.name", "must not be empty"),
        ("[policy]\nname = 'fifo?backfill'", "policy.name", "key=value"),
        ("[policy]\nquantum = [1, nan]", "policy.quantum.1", "nan is not a number"),
        ("[mechanism]\nlenght_s = 60", "mechanism.lenght_s", "did you mean 'length_s'?"),
        ("[mechanism]\nlength_s = 0", "mechanism.length_s", "must be above 0"),
        ("[mechanism]\nname = 'lease'", "mechanism.name", "did you mean 'leases'?"),
        ("[mechanism]\naligned = 1", "mechanism.aligned", "must be true or false"),
        ("[throughputs]\nsource = ''", "throughputs.source", "must not be empty"),
        ("[throughputs]\nsorce = 'uniform'", "throughputs.sorce", "did you mean 'source'?"),
    ],
)
def test_a_wrong_key_or_value_is_named_with_its_line(
    complaints: Complaints, tmp_path: Path, line: str, column: str, says: str
) -> None:
    (problem,) = complaints(HEAD + line + "\n")
    assert (problem.file, problem.row, problem.column) == (str(tmp_path / "tiny.toml"), 5 + line.count("\n"), column)
    assert says in f"{problem.rule}; {problem.fix}"


@pytest.mark.parametrize(
    ("cluster", "row", "column", "says"),
    [
        ("nodes = [{ type = 'v100', count = 0, accelerators = 4 }]", 2, "cluster.nodes.0.count", "at least 1"),
        ("nodes = [\n  { type = 'v100' },\n]", 3, "cluster.nodes.0.accelerators", "is missing"),
        ("nodes = [\n\n  { typ = 'v', type = 'v', accelerators = 1 }]", 4, "cluster.nodes.0.typ", "'type'"),
        ("nodes = []", 2, "cluster.nodes", "must not be empty"),
        ("nodes = 'v100'", 2, "cluster.nodes", "must be an array"),
        ("accelerators = {}", 2, "cluster.accelerators", "must not be empty"),
        ("accelerators = 4", 2, "cluster.accelerators", "must be a table"),
        ("accelerators = { '' = 4 }", 2, "cluster.accelerators.", "must not be empty"),
        ("\naccelerators.v100 = 4.5", 3, "cluster.accelerators.v100", "whole number"),
        ("accelerators.v100 = 20_000_000", 2, "cluster.accelerators.v100", "at most"),
        ("accelerators = { a = 9_000_000, b = 9_000_000 }", 2, "cluster.accelerators", "at most 10000000"),
        ("accelerators.v100 = 4\nprices = { v10 = 1 }", 3, "cluster.prices.v10", "did you mean 'v100'?"),
        ("accelerators.v100 = 4\nprices.v100 = -1", 3, "cluster.prices.v100", "at least 0"),
        ("accelerators.v100 = 4\naccelerators_per_node = 0", 3, "cluster.accelerators_per_node", "at least 1"),
        ("", 1, "cluster.nodes", "nodes or accelerators"),
        (
            "nodes = [{ type = 'a', accelerators = 1 }]\naccelerators_per_node = 4",
            3,
            "cluster.accelerators_per_node",
            "shorthand",
        ),
        (
            "nodes = [{ type = 'a', accelerators = 1 }]\naccelerators = { a = 1 }",
            3,
            "cluster.accelerators",
            "never both",
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(
    complaints: Complaints, cluster: str, row: int, column: str, says: str
) -> None:
    (problem,) = complaints(f"[cluster]\n{cluster}\n[workload]\ntrace = 'a.csv'\n")
    assert (problem.row, problem.column) == (row, column)
    assert says in f"{problem.rule}; {problem.fix}"


def test_a_scenario_needs_a_cluster_and_a_workload(complaints: Complaints) -> None:
    assert [(p.column, p.row, p.rule) for p in complaints("seed = 1\n")] == [
        ("cluster", None, "is missing"),
        ("workload", None, "is missing"),
    ]


def test_a_workload_is_a_trace_or_a_generator(complaints: Complaints) -> None:
    (problem,) = complaints("[cluster]\naccelerators.a = 1\n\n[workload]\nload = 2\n")
    assert (problem.row, problem.column) == (4, "workload.trace")
    (problem,) = complaints('[cluster]\naccelerators.a = 1\n[workload]\ngenerator = "poisson"\nformat = "gavel"\n')
    assert (problem.row, problem.column) == (5, "workload.format")


def test_a_window_ends_after_it_begins(complaints: Complaints) -> None:
    (problem,) = complaints(HEAD + "start_s = 60\nend_s = 60\n")
    assert (problem.row, problem.column) == (6, "workload.end_s")


def test_a_key_of_another_table_is_sent_there(complaints: Complaints) -> None:
    (problem,) = complaints("length_s = 60\n" + HEAD)
    assert (problem.row, problem.column) == (1, "length_s")
    assert "[mechanism]" in problem.fix


def test_a_seed_is_a_whole_number_of_at_least_0(complaints: Complaints) -> None:
    for seed, says in [
        ("-1", "at least 0"),
        ("1.0", "whole number"),
        ("true", "whole number"),
        ("nan", "not a number"),
    ]:
        (problem,) = complaints(f"seed = {seed}\n{HEAD}")
        assert (problem.row, problem.column) == (1, "seed")
        assert says in problem.rule


def test_all_problems_are_reported_at_once_in_the_order_of_the_file(complaints: Complaints) -> None:
    problems = complaints(f"sed = 1\n{HEAD}load = -1\nlaod = 2\n[policy]\nname = 3\n[wrld]\n", ["seed=-1"])
    assert [(p.row, p.column) for p in problems] == [
        (1, "sed"),
        (6, "workload.load"),
        (9, "policy.name"),
        (10, "wrld"),
        (None, "seed"),
    ]
    assert problems[-1].file == "--set seed=-1"


def test_the_first_twenty_problems_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    overheads = {f"wrong_{k}": k for k in range(30)}
    with pytest.raises(InvalidInput, match="and 10 more") as refusal:
        scenario_from_dict(
            {"cluster": {"accelerators": {"a": 1}}, "workload": {"trace": "a"}, "overheads": overheads}, tmp_path
        )
    assert (len(refusal.value.problems), refusal.value.count) == (20, 30)


def test_a_scenario_from_python_is_called_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        scenario_from_dict({"cluster": {"accelerators": {"a": 1}}, "workload": {}}, tmp_path, name="mine")
    assert (refusal.value.problems[0].file, refusal.value.problems[0].row) == ("mine", None)


def test_no_parameter_of_a_generator_or_reader_passes_for_a_misspelling() -> None:
    from eunomia.traces.generators import GENERATORS

    parameters = {field.name for generator in GENERATORS.values() for field in fields(generator)}
    assert parameters
    for name in parameters | {"passed_only", "status_file"}:
        assert not list(contradictions({"workload": {"trace": "a", name: 1}})), name


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
KEYS = {
    "cluster": ["nodes", "accelerators", "accelerators_per_node", "prices"],
    "workload": ["trace", "generator", "format", "start_s", "end_s", "job_types", "max_jobs"],
    "policy": ["name", "x"],
    "mechanism": ["name", "length_s"],
    "belief": ["kind", "error"],
}
sections = st.fixed_dictionaries(
    {},
    optional={
        name: plain_values | st.dictionaries(st.sampled_from(keys), plain_values, max_size=3)
        for name, keys in KEYS.items()
    },
)


@given(sections)
def test_whatever_is_said_the_answer_is_a_scenario_or_a_list_of_problems(said: dict[str, object]) -> None:
    try:
        scenario = scenario_from_dict(said, Path())
    except InvalidInput:
        return
    assert scenario_from_dict(scenario.as_dict(), Path()).as_dict() == scenario.as_dict()


def test_a_nul_character_is_named_with_its_line_from_wherever_it_comes(complaints: Complaints) -> None:
    (problem,) = complaints(HEAD + 'generator = "a\\u0000b"\n')
    assert (problem.row, problem.column, problem.rule) == (5, "workload.generator", "has a NUL character")
    (problem,) = complaints(HEAD + '"lo\\u0000ad" = 1\n')
    assert (problem.row, problem.column, problem.rule) == (5, "workload.lo\\x00ad", "has a NUL character in its name")
    (problem,) = complaints(HEAD, ['workload.generator="a\\u0000b"'])
    assert (problem.column, problem.rule) == ("workload.generator", "has a NUL character")
    with pytest.raises(InvalidInput, match=r"workload.trace: has half of a surrogate pair"):
        scenario_from_dict({"cluster": {"accelerators": {"v100": 4}}, "workload": {"trace": "a\ud800"}}, Path())
