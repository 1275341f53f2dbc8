"""What is said of a trace is true: worked by hand, and beside the numbers that the publishers of the real ones give."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.report.trace_charts import trace_charts, trace_page
from eunomia.report.trace_tables import facts, trace_tables
from eunomia.traces import Trace, read
from eunomia.traces.cluster_state import read_cluster_history
from eunomia.traces.statistics import describe
from eunomia.traces.table import trace_of

Real = Callable[[str], Path]
Write = Callable[..., Path]


def small() -> Trace:
    """Three jobs of two tenants and sizes; the day begins an hour before time 0."""
    return trace_of(
        "by hand",
        ("a", "b", "c"),
        np.array([0.0, 7200.0, 90_000.0]),
        np.array([1, 1, 8]),
        duration_s=np.array([3600.0, 7200.0, 3600.0]),
        tenant=("ann", "ann", ""),
        status=("finished", "failed", ""),
        began=datetime(2020, 1, 1, 1),
    )


def test_a_description_is_what_one_counts_by_hand() -> None:
    found = describe(small())
    assert (found.jobs, found.first_s, found.last_s, found.began) == (3, 0, 90_000, "2020-01-01 01:00:00")
    assert found.accelerator_hours == 1 + 2 + 8
    assert found.mean_demand == pytest.approx(11 * 3600 / 90_000)
    assert found.size.mean == pytest.approx(10 / 3)
    assert found.duration_s is not None and found.duration_s.quantile["p50"] == 3600
    assert [(part.name, part.jobs, part.time_share) for part in found.sizes] == [
        ("1", 2, pytest.approx(3 / 11)),
        ("8", 1, pytest.approx(8 / 11)),
    ]
    assert {part.name: part.jobs for part in found.statuses} == {"finished": 1, "failed": 1, "not said": 1}
    assert (found.tenants, found.busiest_tenants[0].name, found.busiest_tenants[0].jobs) == (1, "ann", 2)
    assert [hour for hour, jobs in enumerate(found.by_hour) if jobs] == [1, 2, 3]
    assert found.by_hour[2] == 1  # 25 hours after time 0
    assert found.by_day == (2, 1)
    assert set(found.duration_s_by_class) == {"1", "5-8"}


def test_what_a_trace_does_not_know_is_none_and_not_a_number() -> None:
    one = trace_of("one", ("a",), np.zeros(1), np.ones(1, dtype=np.int64), total_steps=np.array([5.0]))
    found = describe(one)
    assert (found.accelerator_hours, found.mean_demand, found.duration_s, found.gap_s) == (None, None, None, None)
    assert found.total_steps is not None
    json.dumps(found.as_dict(), allow_nan=False)
    assert facts(found)
    assert [table.heads[0] for table in trace_tables(found)] == ["", "accelerators"]
    assert {chart.name for chart in trace_charts(one, found)} == {"steps", "sizes", "days", "hours"}


@settings(max_examples=50)
@given(
    jobs=st.lists(
        st.tuples(st.floats(0, 1e308), st.integers(1, 1_000_000), st.floats(1e-300, 1e308) | st.just(float("nan"))),
        min_size=1,
        max_size=5,
    )
)
def test_whatever_numbers_a_trace_holds_its_description_is_json_and_words(jobs: list[tuple[float, int, float]]) -> None:
    submitted, sizes, durations = zip(*sorted(jobs), strict=True)
    trace = trace_of(
        "any", tuple(map(str, range(len(jobs)))), np.array(submitted), np.array(sizes), duration_s=np.array(durations)
    )
    found = describe(trace)
    json.dumps(found.as_dict(), allow_nan=False)
    assert facts(found)
    assert trace_page("any", found, trace_charts(trace, found))
    assert sum(found.by_hour) == len(jobs)


def test_the_page_of_a_trace_holds_its_numbers_and_no_address() -> None:
    trace = small()
    found = describe(trace)
    page = trace_page("<b>", found, trace_charts(trace, found))
    block = page.split('id="eunomia-data">')[1].split("</script>")[0]
    assert json.loads(block)["jobs"] == 3
    assert [chart["name"] for chart in json.loads(block)["charts"]] == [
        "durations",
        "sizes",
        "days",
        "hours",
        "outcomes",
    ]
    assert page.count('<figure class="chart"') == 5
    sizes = json.loads(block)["charts"][1]["panels"][0]["series"]
    assert [(bars["name"], bars["y"]) for bars in sizes] == [
        ("of jobs", [0.666667, 0.333333]),
        ("of accelerator-time", [0.272727, 0.727273]),
    ]
    assert "<b>" not in page and "://" not in page.replace(block, "")


STATE = "vc,time,running_gpu_num,pending_gpu_num,idle_gpu_num,total_gpu_num,gpu_utilization"


def test_the_state_of_a_virtual_cluster_is_averaged_over_its_minutes(written: Write) -> None:
    path = written(
        STATE,
        "a,2020-05-01 00:00:00,6,4,2,8,0.75",
        "b,2020-05-01 00:00:00,0,0,8,8,0.0",
        "a,2020-05-01 00:01:00,8,2,0,8,1.0",
    )
    a, b = read_cluster_history(path).states
    assert (a.name, a.minutes, a.busy, a.waiting, a.utilization, a.peak) == ("a", 2, 7, 3, 0.875, 8)
    assert (a.share_waiting, a.share_waiting_beside_idle) == (1, 0.5)
    assert (b.share_waiting, b.share_waiting_beside_idle) == (0, None)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("a,2020-05-01 00:00:00,6,4,1,8,0.75", "idle_gpu_num"),
        ("a,2020-05-01 00:00:00,-6,4,2,8,0.75", "running_gpu_num"),
        ("a,2020-05-01 00:00:00,6,4,2,8,1.75", "gpu_utilization"),
        ("a,2020-05-99 00:00:00,6,4,2,8,0.75", "time"),
        ("a,2020-05-01 00:00:00,0,4,0,0,0", "total_gpu_num"),
        (",2020-05-01 00:00:00,6,4,2,8,0.75", "vc"),
    ],
)
def test_a_wrong_state_is_reported_with_its_row_and_column(row: str, column: str, written: Write) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_cluster_history(written(STATE, row))
    assert [(problem.row, problem.column) for problem in caught.value.problems] == [(2, column)]


def test_a_minute_that_is_repeated_is_refused_by_its_second_line(written: Write) -> None:
    row, other = "a,2020-05-01 00:00:00,6,4,2,8,0.75", "b,2020-05-01 00:00:00,0,0,8,8,0.0"
    with pytest.raises(InvalidInput, match="line 2 has it too") as caught:
        read_cluster_history(written(STATE, row, other, row))
    assert [(problem.row, problem.column) for problem in caught.value.problems] == [(4, "time")]
    minute = "2017-10-03 00:00:00,500,551"
    with pytest.raises(InvalidInput) as caught:
        read_cluster_history(written("time,active,total", minute, minute))
    assert [(problem.row, problem.column) for problem in caught.value.problems] == [(3, "time")]


def test_the_real_state_of_earth_adds_up(real: Real) -> None:
    found = read_cluster_history(real("traces/helios-earth-vcs/earth_vc_sequence_may2020.csv.gz"))
    assert (len(found.states), {state.minutes for state in found.states}) == (11, {44_640})
    assert found.notes == ()  # running over total is the published utilisation of every minute


def test_the_real_state_of_philly_has_a_row_a_minute(real: Real) -> None:
    (found,) = read_cluster_history(real("traces/philly/philly_node_sequence.csv.gz")).states
    assert found.minutes == 61_321
    assert found.peak < 552  # machines of the cluster


def _published(real: Real, name: str, cluster: str) -> dict[str, float]:
    with real(f"traces/published-summaries/{name}").open(newline="") as file:
        (row,) = (row for row in csv.DictReader(file) if row["id"] == cluster)
    return {key: float(value) for key, value in row.items() if key != "id" and value}


def test_venus_is_what_was_published_but_for_the_period_and_the_clamp(real: Real) -> None:
    """Five of six months, durations cut at two days: fewer jobs, shorter on average, sizes and median all but equal."""
    theirs = _published(real, "helios_cluster_summary.csv", "Venus")
    trace = read(real("traces/helios-venus"), "venus")
    ours = describe(trace)
    assert ours.jobs / theirs["gpu_job_num"] == pytest.approx(5 / 6, abs=0.05)
    assert ours.size.mean == pytest.approx(theirs["avg_gpu_num"], rel=0.05)
    assert ours.duration_s is not None
    assert ours.duration_s.quantile["p50"] == pytest.approx(theirs["med_run_time_gpu"], rel=0.1)
    assert ours.duration_s.mean < 0.8 * theirs["avg_run_time_gpu"]  # the clamp
    outcomes = describe(read(real("traces/helios-venus/venus_status_15k.csv.gz"), "outcomes"))
    share = {part.name: part.job_share for part in outcomes.statuses}
    assert share["finished"] == pytest.approx(theirs["complete_rate_gpu"], abs=0.1)  # three weeks of six months


def test_philly_is_what_was_published_but_for_the_period_and_the_attempts(real: Real) -> None:
    """The publication counts attempts, over five months: ours are jobs, of three months, so they last longer."""
    theirs = _published(real, "acme_cluster_summary.csv", "Philly")
    ours = describe(read(real("traces/philly"), "philly"))
    assert max(int(part.name) for part in ours.sizes) == theirs["max_gpu"]
    assert ours.jobs < theirs["gpu_job_num"]
    assert ours.size.mean == pytest.approx(theirs["avg_gpu_num"], rel=0.25)
    finished = next(part for part in ours.statuses if part.name == "finished")
    assert finished.job_share > theirs["complete_rate_gpu"]  # a job that fails is tried again and counted again there
