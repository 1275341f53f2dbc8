"""What-if on a history: weeks, changed clusters, and the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.history.cluster_change import ClusterChange, can_run, changed, parse_counts
from eunomia.history.weeks import DAY_S, WEEK_S, choose_periods, described, write_periods
from eunomia.inputs.problems import InvalidInput
from eunomia.scenario import load_scenario
from eunomia.setup.workload import read_trace
from eunomia.traces import Trace, read
from eunomia.traces.table import trace_of

Write = Callable[..., Path]
RUN = CliRunner()


def trace_at(days: list[float]) -> Trace:
    times = DAY_S * np.array(days)
    return trace_of("x", [str(m) for m in range(len(days))], times, np.ones(len(days), dtype=np.int64),
                    duration_s=np.full(len(days), 60.0))  # fmt: skip


def test_a_long_history_is_split_into_weeks_that_are_spread_over_it() -> None:
    periods = choose_periods(trace_at(np.arange(0, 84.1, 0.5).tolist()), 4)
    assert [period.start_s / WEEK_S for period in periods] == [0, 4, 7, 11]
    assert all(period.end_s - period.start_s == WEEK_S for period in periods)
    assert described(periods) == "4 weeks"


def test_a_short_history_is_split_into_equal_parts() -> None:
    periods = choose_periods(trace_at(np.arange(0, 8.01, 0.1).tolist()), 4)
    assert len(periods) == 4
    assert periods[1].start_s == pytest.approx(2 * DAY_S, rel=0.01)
    assert sum(period.jobs for period in periods) == 81
    assert "4 periods of 2" in described(periods)


def test_sparse_weeks_are_not_used() -> None:
    sparse = [0.5, *np.arange(7, 28, 0.1).tolist(), 29]
    assert [period.start_s / WEEK_S for period in choose_periods(trace_at([0, *sparse]), 4)] == [1, 2, 3]


def test_a_history_of_a_handful_of_jobs_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no period of it has"):
        choose_periods(trace_at([0, 1, 2]), 2)


def test_the_run_of_a_period_begins_with_a_warm_up(tmp_path: Path) -> None:
    trace = trace_at(np.arange(0, 28.1, 0.5).tolist())
    periods = choose_periods(trace, 4)
    assert [period.warm_up_s for period in periods] == [0, WEEK_S / 4, WEEK_S / 4, WEEK_S / 4]
    files = write_periods(trace, periods, tmp_path / "weeks")
    for period, file in zip(periods, files, strict=True):
        part = read(file)
        assert int((part.submitted_s >= period.warm_up_s).sum()) == period.jobs
        assert (len(part) > period.jobs) == (period.warm_up_s > 0)


def test_accelerators_are_added_as_whole_machines_of_the_size_of_their_type(scenario: Write) -> None:
    today = load_scenario(scenario("accelerators = { v100 = 8 }\naccelerators_per_node = 4"))
    groups = changed(today, ClusterChange(add={"v100": 6, "h100": 16})).cluster.nodes
    assert [(g.type, g.count, g.accelerators) for g in groups] == [
        ("v100", 2, 4), ("v100", 1, 4), ("v100", 1, 2), ("h100", 2, 8),
    ]  # fmt: skip


def test_a_type_may_be_named_as_its_driver_does(scenario: Write) -> None:
    today = load_scenario(scenario())
    assert changed(today, ClusterChange(add={"NVIDIA-A100-SXM4-80GB": 8})).cluster.types == ("v100", "a100-80gb")
    with pytest.raises(InvalidInput, match="no such accelerator type"):
        changed(today, ClusterChange(add={"abacus": 8}))


@pytest.mark.parametrize(
    ("count", "left"), [(1, [(2, 4), (1, 3)]), (4, [(2, 4)]), (6, [(1, 4), (1, 2)]), (11, [(1, 1)])]
)
def test_accelerators_are_removed_by_machines(scenario: Write, count: int, left: list[tuple[int, int]]) -> None:
    today = load_scenario(scenario("accelerators = { v100 = 12 }\naccelerators_per_node = 4"))
    groups = changed(today, ClusterChange(remove={"v100": count})).cluster.nodes
    assert [(g.count, g.accelerators) for g in groups] == left
    assert sum(g.count * g.accelerators for g in groups) == 12 - count


def test_more_than_there_is_cannot_be_removed(scenario: Write) -> None:
    today = load_scenario(scenario())
    with pytest.raises(InvalidInput, match="the cluster has 8 v100"):
        changed(today, ClusterChange(remove={"v100": 9}))
    with pytest.raises(InvalidInput, match="no accelerator would be left"):
        changed(today, ClusterChange(remove={"v100": 8}))


def test_a_price_of_a_type_that_leaves_goes_with_it(scenario: Write) -> None:
    today = load_scenario(scenario("accelerators = { v100 = 8, h100 = 8 }\nprices = { h100 = 5.0 }"))
    assert changed(today, ClusterChange(remove={"h100": 8})).cluster.prices == {}
    assert changed(today, ClusterChange(remove={"h100": 4})).cluster.prices == {"h100": 5.0}


@pytest.mark.parametrize("text", ["h100", "h100=", "=4", "h100=0", "h100=-1", "h100=1.5", "h100=x", ""])
def test_a_count_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="must be TYPE=N"):
        parse_counts([text], "--add")


def test_counts_may_be_listed() -> None:
    assert parse_counts(["h100=16, a100=8", "h100=1"], "--add") == {"h100": 17, "a100": 8}


def test_jobs_that_must_have_a_type_fit_no_other(scenario: Write) -> None:
    today = load_scenario(scenario("accelerators = { v100 = 8, h100 = 8 }", job_type="only v100"))
    trace = read_trace(today)
    assert can_run(today, trace).all()
    assert not can_run(changed(today, ClusterChange(remove={"v100": 8})), trace).any()


def answer(path: Path, *words: str) -> dict[str, object]:
    result = RUN.invoke(app, ["whatif", str(path), *words, "--jobs", "1", "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout.splitlines()[-1])
    return found


def test_a_second_machine_shortens_the_queue_of_every_week(scenario: Write) -> None:
    found = answer(scenario(), "--add", "v100=8")
    periods = found["periods"]
    assert len(periods) == 4
    for period in periods:
        # By hand: two gangs of 4 at a time on 8, so of six gangs two wait an hour and two wait two hours;
        # on 16 four run at a time and two wait an hour. They come a minute apart.
        hour = period["before"]["jct_mean_s"] - period["before"]["queueing_mean_s"]
        assert period["before"]["queueing_mean_s"] == pytest.approx(
            (0 + 0 + 2 * (hour - 120) + 2 * (2 * hour - 240)) / 6
        )
        assert period["after"]["queueing_mean_s"] == pytest.approx((4 * 0 + 2 * (hour - 240)) / 6)
    change = found["jct_change"]
    assert change["low"] <= change["mean"] <= change["high"] < 0
    assert found["sentence"].startswith("With 8 v100 more, jobs are done 3")
    assert {one["tenant"] for one in found["tenants"]} == {"a", "b"}


def test_the_answer_is_the_same_each_time(scenario: Write) -> None:
    path = scenario()
    assert answer(path, "--add", "h100=8") == answer(path, "--add", "h100=8")


def test_jobs_that_would_not_fit_are_counted_and_left_out_of_both(scenario: Write) -> None:
    path = scenario("accelerators = { v100 = 8 }\naccelerators_per_node = 4")
    with (path.parent / "jobs.csv").open("a") as file:
        file.write(f"wide,{4 * 604800},8,any,60,a\n")
    found = answer(path, "--remove", "v100=4")
    assert found["jobs_that_never_fit"] == 1
    assert "1 job would not fit" in found["sentence"]
    assert "later" in found["sentence"]


def test_another_policy_is_a_change_too(scenario: Write) -> None:
    assert answer(scenario(), "--policy", "srtf")["change"] == "the policy srtf"


def test_a_history_in_which_no_job_finishes_has_no_answer(scenario: Write) -> None:
    path = scenario(weeks=1)
    text = (path.parent / "jobs.csv").read_text().splitlines()
    (path.parent / "jobs.csv").write_text(
        "\n".join([f"{text[0]},status", *(f"{line},failed" for line in text[1:]), ""])
    )
    path.write_text(path.read_text() + "[world]\nreplay_status = true\n")
    result = RUN.invoke(app, ["whatif", str(path), "--add", "v100=8", "--weeks", "1", "--jobs", "1"])
    assert result.exit_code == 1
    assert "no job of a period finished" in result.output


def test_a_change_must_be_named(scenario: Write) -> None:
    result = RUN.invoke(app, ["whatif", str(scenario()), "--json"])
    assert result.exit_code == 2
    assert "--add" in json.loads(result.stdout)["error"]["problems"][0]["fix"]


def test_the_answer_for_people_ends_with_the_sentence(scenario: Write) -> None:
    result = RUN.invoke(app, ["whatif", str(scenario()), "--add", "v100=8", "--weeks", "2", "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].startswith("With 8 v100 more, jobs are done")
