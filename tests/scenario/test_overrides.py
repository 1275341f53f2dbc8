"""`--set key=value` and the spelling of policies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario import Scenario, parse_policy

Tiny = Callable[..., Scenario]
NODES = "[cluster]\nnodes = [{ type = 'a', accelerators = 1 }, { type = 'b', accelerators = 2 }]\n"


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("policy.x=3", 3),
        ("policy.x=3.5", 3.5),
        ("policy.x = 1e3", 1000.0),
        ("policy.x=true", True),
        ("policy.x=inf", float("inf")),
        ("policy.x=skip", "skip"),
        ('policy.x="3"', "3"),
        ("policy.x='a b'", "a b"),
        ("policy.x=/a/b c#d.csv", "/a/b c#d.csv"),
        ("policy.x=a=b", "a=b"),
        ("policy.x=[1, 2]", [1, 2]),
        ("policy.x={ a = 1 }", {"a": 1}),
        ("policy.x=True", "True"),
        ("policy.x=1\nseed = 2", "1\nseed = 2"),
    ],
)
def test_a_value_is_read_as_toml_and_a_bare_word_as_a_text(tiny: Tiny, override: str, value: object) -> None:
    found = tiny(override).policy.parameters["x"]
    assert (found, type(found)) == (value, type(value))


def test_a_key_may_be_quoted(tiny: Tiny) -> None:
    assert tiny("workload.job_types={}", 'workload.job_types."A (size 4)"=2').workload.job_types == {"A (size 4)": 2.0}


def test_the_last_of_two_overrides_holds(tiny: Tiny) -> None:
    scenario = tiny("seed=1", "seed=2")
    assert scenario.seed == 2
    assert scenario.where(("seed",)) == ("--set seed=2", None)


def test_an_element_of_an_array_is_set_by_its_number(load: Callable[..., Scenario]) -> None:
    scenario = load(NODES + "[workload]\ntrace = 'a'\n", ["cluster.nodes.1.count=7"])
    assert [group.count for group in scenario.cluster.nodes] == [1, 7]
    assert scenario.where(("cluster", "nodes", 1, "count")) == ("--set cluster.nodes.1.count=7", None)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("seed", "key=value"),
        ("=3", "key=value"),
        ("a b=3", "key=value"),
        ("seed=", "there is no value"),
        ("seed=[1", "not TOML"),
        ("policy.x={ a = ", "not TOML"),
        ("policy.x=" + "[" * 100_000, "nested too deeply"),
        ("cluster.nodes.2.count=1", "array of 2"),
        ("cluster.nodes.last.count=1", "array of 2"),
        ("cluster.nodes.0.type.x=1", "cluster.nodes.0.type is not a table"),
        ("wrld.backend=local", "did you mean 'world'?"),
        ("seed=-1", "at least 0"),
        ("world.node_repair_s=inf", "finite"),
    ],
)
def test_an_override_that_is_wrong_is_named_as_it_was_typed(
    complaints: Callable[..., tuple[Problem, ...]], override: str, says: str
) -> None:
    (problem,) = complaints(NODES + "[workload]\ntrace = 'a'\n", [override])
    assert problem.row is None
    assert says in f"{problem.rule}; {problem.fix}"
    assert problem.file == f"--set {override}" or override.startswith("wrld")


def test_a_policy_is_spelled_with_its_parameters() -> None:
    assert parse_policy("srtf") == ("srtf", {})
    assert parse_policy("gavel:fifo_perf") == ("gavel:fifo_perf", {})
    name, parameters = parse_policy("fifo?backfill=skip&types=agnostic&n=3&q=0.5&on=true&end=inf&text='3'")
    assert name == "fifo"
    assert parameters == {
        "backfill": "skip", "types": "agnostic", "n": 3, "q": 0.5, "on": True, "end": float("inf"), "text": "3",
    }  # fmt: skip
    assert [type(value) for value in parameters.values()] == [str, str, int, float, bool, float, str]


@pytest.mark.parametrize(
    "spelling",
    ["", "?a=1", "fifo?", "fifo?a", "fifo?a=", "fifo?=1", "fifo?a=1&a=2", "fifo?name=x", "fifo?a=nan", "f?a=[1"],
)
def test_a_policy_that_is_misspelt_is_refused_by_its_spelling(spelling: str) -> None:
    with pytest.raises(InvalidInput, match="--policy"):
        parse_policy(spelling)


names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(lambda key: key != "name")
parameters_of_all_kinds = st.integers(-99, 99) | st.booleans() | st.sampled_from(["skip", "a-b", "1x"])


@given(st.dictionaries(names, parameters_of_all_kinds, max_size=3))
def test_what_is_spelled_is_what_is_read(parameters: dict[str, int | bool | str]) -> None:
    text = "&".join(f"{key}={str(value).lower()}" for key, value in parameters.items())
    assert parse_policy(f"fifo?{text}" if text else "fifo") == ("fifo", parameters)


def test_a_name_in_the_file_may_be_spelled_with_parameters(load: Callable[..., Scenario], tiny: Tiny) -> None:
    scenario = tiny("policy.name=fifo?backfill=skip")
    assert (scenario.policy.name, scenario.policy.parameters) == ("fifo", {"backfill": "skip"})
    assert scenario.where(("policy", "name")) == ("--set policy.name=fifo?backfill=skip", None)


def test_a_parameter_is_said_once(complaints: Callable[..., tuple[Problem, ...]]) -> None:
    head = '[cluster]\naccelerators.a = 1\n[workload]\ntrace = "a"\n'
    (problem,) = complaints(head + '[policy]\nname = "fifo?backfill=skip"\nbackfill = "stop"\n')
    assert (problem.row, problem.column) == (7, "policy.backfill")


def test_a_later_complaint_can_name_the_line_of_a_parameter(load: Callable[..., Scenario], tmp_path: object) -> None:
    head = '[cluster]\naccelerators.a = 1\n[workload]\ntrace = "a"\n'
    scenario = load(head + '[policy]\nname = "fifo"\nbackfil = "skip"\n')
    assert scenario.where(("policy", "backfil"))[1] == 7
    assert scenario.where(("policy", "absent"))[1] == 5
    assert scenario.where(("mechanism", "length_s"))[1] is None
