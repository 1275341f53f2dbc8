"""Parsing of sweep files: all problems are reported, by line and key, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.runs.fingerprint import scenario_hash
from eunomia.scenario import load_scenario
from eunomia.scenario.schema_models import PolicySection
from eunomia.sweeps import PlannedRun, plan, read
from eunomia.sweeps.axes import frame_of

if TYPE_CHECKING:
    from conftest import Desk

BASE = 'scenario = "tiny.toml"\n'
SMALL = 'cluster = [\n  { accelerators = { gpu = 2 } },\n  { nodes = [{ type = "gpu", accelerators = 2 }] },\n]\n'
SCENARIO_WITH = "{key} = 1\n[cluster]\naccelerators = {{ gpu = 2 }}\n"


def rows(desk: Desk, text: str) -> tuple[PlannedRun, ...]:
    """Return the runs that a sweep asks for."""
    desk.write("sweep.toml", text)
    return plan(read(Path("sweep.toml")))


def test_every_combination_is_a_run_the_last_axis_changing_fastest(desk: Desk) -> None:
    found = rows(desk, BASE + '[axes]\npolicy = ["fifo", "las?types=agnostic"]\nload = [1, 2.5]\nseed = [3, 4]\n')
    assert [tuple(row.labels.values()) for row in found] == [
        (policy, load, seed) for policy in ("fifo", "las?types=agnostic") for load in (1.0, 2.5) for seed in (3, 4)
    ]
    last = found[-1].scenario
    assert (last.policy.name, last.policy.parameters) == ("las", {"types": "agnostic"})
    assert (last.workload.load, last.seed) == (2.5, 4)
    assert len({row.scenario_hash for row in found}) == len(found)


@pytest.mark.parametrize("key", ["mechanism.length_s", '"mechanism.length_s"'])
def test_any_key_may_be_an_axis_however_it_is_quoted(desk: Desk, key: str) -> None:
    found = rows(desk, BASE + f"[axes]\n{key} = [60.0, 360.0]\n")
    assert [row.labels["mechanism.length_s"] for row in found] == [60.0, 360.0]
    assert [row.scenario.mechanism.length_s for row in found if row.scenario.mechanism] == [60.0, 360.0]


def test_extra_runs_are_blocks_of_axes_of_their_own(desk: Desk) -> None:
    found = rows(desk, BASE + '[axes]\nseed = [0, 1]\n[[runs]]\npolicy = "srtf"\nseed = [0, 5]\n[[runs]]\nload = 3.0\n')
    assert [tuple(row.labels.values()) for row in found] == [
        ("fifo", 1.0, 0), ("fifo", 1.0, 1), ("srtf", 1.0, 0), ("srtf", 1.0, 5), ("fifo", 3.0, 0)
    ]  # fmt: skip


def test_a_sweep_without_axes_is_its_scenario_and_the_scenario_may_stand_in_it(desk: Desk) -> None:
    inline = (desk.folder / "tiny.toml").read_text().replace("[", "[scenario.")
    (alone,), (inside,) = rows(desk, BASE), rows(desk, inline)
    assert alone.scenario_hash == inside.scenario_hash
    assert alone.jobs == 12


def test_clusters_have_names_and_take_the_place_of_the_scenarios_own(desk: Desk) -> None:
    text = BASE + '[axes]\ncluster = ["wide", "mixed"]\n[clusters.wide]\naccelerators = { gpu = 9 }\n'
    text += '[clusters.mixed]\nnodes = [{ type = "a", accelerators = 2 }, { type = "b", accelerators = 2 }]\n'
    found = rows(desk, text)
    assert [row.labels["cluster"] for row in found] == ["wide", "mixed"]
    assert [row.scenario.cluster.types for row in found] == [("gpu",), ("a", "b")]


def test_set_overrides_the_scenario_of_every_run(desk: Desk) -> None:
    found = rows(desk, BASE + '[set]\nworkload.max_jobs = 5\npolicy = "srtf"\n[axes]\nseed = [0, 1]\n')
    assert [(row.jobs, row.labels["policy"]) for row in found] == [(5, "srtf")] * 2


def test_the_hash_follows_the_files_that_are_read_and_not_where_they_lie(desk: Desk) -> None:
    before = [row.scenario_hash for row in rows(desk, BASE)]
    elsewhere = desk.folder / "deeper"
    elsewhere.mkdir()
    for name in ("tiny.toml", "jobs.csv"):
        (elsewhere / name).write_bytes((desk.folder / name).read_bytes())
    assert [row.scenario_hash for row in rows(desk, 'scenario = "deeper/tiny.toml"\n')] == before
    desk.write("jobs.csv", (desk.folder / "jobs.csv").read_text().replace("j11,143", "j11,144"))
    assert [row.scenario_hash for row in rows(desk, BASE)] != before


def test_bad_runs_among_a_thousand_are_named_all_of_them_with_line_and_key(desk: Desk) -> None:
    lines = [f'{{ policy = "fifo", load = {1 + k / 1000}, seed = {k % 7} }},' for k in range(1000)]
    bad = {
        37: ('{ policy = "fifoo", seed = 1 },', "policy"),
        210: ("{ load = -1.0, seed = 2 },", "load"),
        211: ("{ load = 1e9, seed = 2 },", "load"),
        499: ('{ policy = "fifo?backfil=skip" },', "policy.backfil"),
        500: ('{ policy = "fifoo", seed = 2 },', "policy"),
        640: ('{ seed = "x" },', "seed"),
        641: ("{ laod = 2.0 },", "laod"),
        700: ('{ cluster = "narrow" },', "clusters.narrow"),
        701: ('{ cluster = "narow", seed = 9 },', "cluster"),
        702: ("{ cluster = { accelerators = { gpu = 1 } }, seed = 8 },", "cluster"),
        800: ('{ workload.trace = "gone.csv" },', "workload.trace"),
        801: ("{ measure.last_job = 12 },", "measure.last_job"),
        802: ("{ mechanism.length_s = 0.0 },", "mechanism.length_s"),
        803: ('{ world.backend = "local" },', "world.backend"),
        999: (lines[3], None),  # once more
    }
    for number, (line, _) in bad.items():
        lines[number] = line
    text = BASE + "runs = [\n" + "\n".join(lines) + "\n]\n[clusters.narrow]\naccelerators = { gpu = 1 }\n"
    found = [problem for problem in desk.problems(text) if problem[0] == "sweep.toml"]
    where = {"clusters.narrow": 1004}
    expected = [("sweep.toml", where.get(str(key), number + 3), key) for number, (_, key) in bad.items()]
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[axes]\nseed = [0]\n", (None, "scenario")),
        ("scenario = 3\n", (1, "scenario")),
        (BASE + "[axes]\nseed = []\n", (3, "axes.seed")),
        (BASE + "seeds = [1]\n", (2, "seeds")),
        (BASE + '[axes]\nload = [1.0]\n"workload.load" = [2.0]\n', (4, "axes.workload.load")),
        (BASE + "confidence = 95\n", (2, "confidence")),
        (BASE + 'baseline = "las"\n[axes]\npolicy = ["fifo", "srtf"]\n', (2, "baseline")),
        (BASE + 'along = "policy"\n[axes]\npolicy = ["fifo", "srtf"]\n', (2, "along")),
        (BASE + 'compare = "polcy"\n[axes]\npolicy = ["fifo", "srtf"]\n', (2, "compare")),
        (BASE + "runs = 3\n", (2, "runs")),
        (BASE + "[axes]\ncluster = [3]\n", (3, "cluster")),
    ],
)
def test_a_sweep_of_the_wrong_shape_is_refused_with_line_and_key(
    desk: Desk, text: str, place: tuple[int | None, str]
) -> None:
    assert desk.problems(text) == [("sweep.toml", *place)]


def test_all_problems_of_the_file_and_of_its_runs_are_reported_at_once(desk: Desk) -> None:
    text = BASE + 'seeds = [1]\nconfidence = 95\n[axes]\nseed = []\npolicy = ["fifo", "fifoo"]\nload = [1.0, -1.0]\n'
    assert desk.problems(text) == [
        ("sweep.toml", 2, "seeds"), ("sweep.toml", 3, "confidence"), ("sweep.toml", 5, "axes.seed"),
        ("sweep.toml", 6, "policy"), ("sweep.toml", 7, "load"),
    ]  # fmt: skip
    found = desk.problems(text.replace("tiny", "gone"))
    assert found == [
        ("sweep.toml", 2, "seeds"), ("sweep.toml", 3, "confidence"), ("sweep.toml", 5, "axes.seed"),
        ("gone.toml", None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(("axes", "causes"), [('policy = ["fifo", "srtf"]\nseed = [0, 1]\n', 0), (SMALL, 2)])
def test_all_problems_of_a_trace_are_counted_once_however_many_runs_have_them(
    desk: Desk, axes: str, causes: int
) -> None:
    """30 gangs are too wide for every run; a message shows 20 problems, where the sweep is to blame it too."""
    lines = "".join(f"j{k},{k},9,LM,60\n" for k in range(30))
    desk.write("jobs.csv", "job_id,submitted_s,scale_factor,job_type,duration_s\n" + lines)
    desk.write("sweep.toml", f"{BASE}[axes]\n{axes}")
    with pytest.raises(InvalidInput) as caught:
        plan(read(Path("sweep.toml")))
    assert (len(caught.value.problems), caught.value.count) == (20, 30 + causes)


def test_a_sweep_that_is_not_there_is_called_a_sweep(desk: Desk) -> None:
    assert desk.type("sweep", "gone.toml", "--out", "out") == 2
    assert "gone.toml: the sweep cannot be read (No such file or directory)" in desk.stderr


def test_a_key_of_thousands_of_parts_is_refused_everywhere(desk: Desk) -> None:
    long = ".".join(["a"] * 1500)
    assert desk.problems(BASE + f"[axes]\n{long} = [1]\n") == [("sweep.toml", 3, None)]
    assert desk.problems(BASE + f'[axes]\n"{long}" = [1]\n') == [("sweep.toml", 3, long)]
    desk.write("deep.toml", SCENARIO_WITH.format(key=long))
    for words in (("deep.toml",), ("tiny.toml", "--set", f"{long}=1")):
        assert desk.type("simulate", *words, "--out", "out") == 2
        assert "a key has at most 32 parts" in desk.stderr


@pytest.mark.parametrize("said", ["mine.py:Mine", "mine.py:Mine?x=a:b", "mine.py:Mine?x=1&y=2"])
def test_the_hash_follows_a_policys_file_however_the_policy_is_spelled(desk: Desk, said: str) -> None:
    def now() -> str:
        scenario = rows(desk, BASE)[0].scenario
        return scenario_hash(scenario.model_copy(update={"policy": PolicySection(name="pop", inner=said)}))

    desk.write("mine.py", "one = 1\n")
    before = now()
    desk.write("mine.py", "two = 22\n")
    assert now() != before


def test_the_hash_follows_a_policys_file_where_the_command_was_typed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.folder / "typed").mkdir()
    desk.write("tiny.toml", (desk.folder / "tiny.toml").read_text() + '[policy]\nname = "mine.py:Mine"\n')
    monkeypatch.chdir(desk.folder / "typed")
    before = typed(desk, "one")
    assert typed(desk, "two") != before
    assert typed(desk, "one") == before


def typed(desk: Desk, note: str) -> str:
    """Return the hash with a policy of this note in the folder that is the current one."""
    text = f"from eunomia.policies.order.fifo import Fifo\n\nclass Mine(Fifo):\n    note = {note!r}\n"
    desk.write("typed/mine.py", text)
    return scenario_hash(load_scenario(desk.folder / "tiny.toml"))


def test_the_hash_follows_the_table_of_outcomes_that_lies_beside_the_trace(desk: Desk) -> None:
    """A relative `status_file` counts from the trace, and one of the same name beside the scenario is not read."""
    (desk.folder / "data").mkdir()
    desk.write("data/jobs.csv", "job_id,submit_s,gpus,service_s,clamped\n1,0,1,50,0\n2,5,1,60,0\n")
    status = "job_id,user,status\n1,ann,{}\n"
    desk.write("data/st.csv", status.format("Pass"))
    keys = 'trace = "data/jobs.csv"\nformat = "venus"\nstatus_file = "st.csv"'
    desk.write("tiny.toml", (desk.folder / "tiny.toml").read_text().replace('trace = "jobs.csv"', keys))
    before = rows(desk, BASE)[0].scenario_hash
    desk.write("st.csv", status.format("Killed"))
    assert rows(desk, BASE)[0].scenario_hash == before
    desk.write("data/st.csv", status.format("Killed"))
    assert rows(desk, BASE)[0].scenario_hash != before


@pytest.mark.parametrize(
    ("key", "name", "first", "second"),
    [
        ("throughputs.source", "speeds.csv", "job_type,a,b\nLM,1,2\n", "job_type,a,b\nLM,1,3\n"),
        ("workload.tenant_weights", "weights.csv", "tenant,weight\na,1\n", "tenant,weight\na,2\n"),
        ("physics.placement", "places.csv", "x\n1\n", "x\n2\n"),
        (
            "cluster.nodes_file",
            "machines.csv",
            "type,accelerators,count\ngpu,2,1\n",
            "type,accelerators,count\ngpu,2,2\n",
        ),
    ],
)
def test_the_hash_follows_every_table_that_a_key_names(
    desk: Desk, key: str, name: str, first: str, second: str
) -> None:
    def now(text: str) -> str:
        desk.write(name, text)
        plain = (desk.folder / "tiny.toml").read_text()
        if key == "cluster.nodes_file":
            plain = plain.replace("accelerators = { gpu = 2 }", f'nodes_file = "{name}"')
            (desk.folder / "listed.toml").write_text(plain)
            return scenario_hash(load_scenario(desk.folder / "listed.toml"))
        return scenario_hash(load_scenario(desk.folder / "tiny.toml", [f'{key}="{name}"']))

    assert now(first) != now(second)


def test_a_text_that_is_too_long_for_a_files_name_names_none(desk: Desk) -> None:
    scenario = rows(desk, BASE)[0].scenario
    changed = scenario.model_copy(update={"policy": PolicySection(name="fifo", backfill="x" * 3000)})
    assert scenario_hash(changed) != scenario_hash(scenario)


def test_a_problem_of_the_scenario_is_reported_once_at_its_line(desk: Desk) -> None:
    desk.write("tiny.toml", (desk.folder / "tiny.toml").read_text().replace("gpu = 2", "gpu = 0"))
    assert desk.problems(BASE + "[axes]\nseed = [0, 1, 2]\n") == [("tiny.toml", 2, "cluster.accelerators.gpu")]
    assert desk.problems('scenario = "gone.toml"\n') == [("gone.toml", None, None)]


def test_policies_are_compared_along_the_load_and_other_axes_set_runs_apart(desk: Desk) -> None:
    text = BASE + '[axes]\npolicy = ["fifo", "srtf"]\nload = [2, 1]\nseed = [0, 1]\nmechanism.length_s = [60, 90]\n'
    frame = frame_of(read(Path("sweep.toml")), rows(desk, text))
    assert (frame.compare, frame.along, frame.apart) == ("policy", "load", ("mechanism.length_s",))
    assert (frame.baseline, frame.places) == ("fifo", (1.0, 2.0))


def test_without_policies_the_first_axis_of_several_values_is_compared(desk: Desk) -> None:
    found = rows(
        desk, BASE + 'compare = "overheads.start_s"\nbaseline = 9\n[axes]\noverheads.start_s = [0, 9]\nload = [1, 2]\n'
    )
    frame = frame_of(read(Path("sweep.toml")), found)
    assert (frame.compare, frame.along, frame.baseline) == ("overheads.start_s", "load", 9)
    assert frame.name(9) == "overheads.start_s 9"


def test_the_only_axis_of_several_values_is_compared(desk: Desk) -> None:
    found = rows(desk, BASE + "[axes]\noverheads.start_s = [0, 9]\nseed = [0, 1]\n")
    frame = frame_of(read(Path("sweep.toml")), found)
    assert (frame.compare, frame.along, frame.baseline) == ("overheads.start_s", "load", 0)


def test_a_refusal_to_plan_is_an_invalid_input_from_python_too(desk: Desk) -> None:
    with pytest.raises(InvalidInput):
        rows(desk, BASE + '[axes]\npolicy = ["fifoo"]\n')
