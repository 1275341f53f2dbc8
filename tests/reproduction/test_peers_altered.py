"""Results of other systems that are not whole, or not right: all that they were given is compared, or reported."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia_reproduction.peers import astraea, blox, helios, pollux, shockwave, tiresias
from eunomia_reproduction.peers.blox import tracked
from eunomia_reproduction.peers.job_comparison import JobComparison, compared
from eunomia_reproduction.peers.pollux.comparison import RESULTS as POLLUX
from eunomia_reproduction.peers.pollux.inputs import MEASURED, WORKLOADS
from eunomia_reproduction.peers.running import Life
from eunomia_reproduction.rounding import half_a_digit
from eunomia_reproduction.table import FigureRow, Request

Change = Callable[[str], str]

# The second job waits for the first, under both schedules.
TRACE = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,2,0,1,vgg,100,10\n1,2,10,1,vgg,50,0\n"
CLUSTER = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,1,2,8,8\n"
RESULTS = "job_id,num_gpu,submit_time,start_time,end_time,jct,duration,pending_time,preempt\n"
RESULTS += "0,2,0,0,100,100,100,0,0\n1,2,10,100,150,140,50,90,0\n"
SUMMARY = "schedule,placement,n,avg_jct_s,p50_jct_s,p99_jct_s,jobs_in_trace,makespan_s,avg_pending_s,avg_preemptions\n"
SUMMARY += "fifo,count,2,120.0,140.0,140.0,2,150.0,45.0,0.0\nfjf,count,2,120.0,140.0,140.0,2,150.0,45.0,0.0\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A case of Tiresias with two runs."""
    case = tmp_path / "peers" / "tiresias" / "tiny"
    case.mkdir(parents=True)
    for name, text in {
        "trace.csv": TRACE,
        "cluster_spec.csv": CLUSTER,
        "jobs_count_fifo.csv": RESULTS,
        "jobs_count_fjf.csv": RESULTS,
        "summary.csv": SUMMARY,
    }.items():
        (case / name).write_text(text)
    return case


def altered(file: Path, change: Change) -> None:
    """Change the text of a file, which has to make a difference."""
    text = file.read_text()
    assert change(text) != text
    file.unlink()  # it may be a link to the whole one
    file.write_text(change(text))


def without(*jobs: int) -> Change:
    """Return what takes the rows of these jobs out."""
    return lambda text: "".join(
        line for line in text.splitlines(keepends=True) if line.split(",")[0] not in map(str, jobs)
    )


def rows_of(found: JobComparison, series: str) -> dict[str, FigureRow]:
    """Return the rows of a run by their quantities."""
    return {row.quantity: row for row in found.rows if row.series == series}


def outside(found: JobComparison) -> set[tuple[str, str]]:
    """Return which rows are further off than they may be."""
    return {(row.series, row.quantity) for row in found.rows if row.within is False}


def check(folder: Path, out: Path) -> tuple[int, list[dict[str, object]]]:
    """Compare as the command does; return its exit code and its rows."""
    words = ["reproduce", "peers", "--reference", str(folder), "--out", str(out), "--check", "--json"]
    result = CliRunner().invoke(app, words)
    return result.exit_code, json.loads(result.stdout)["rows"]


def test_whole_results_are_met_and_so_is_every_number_of_their_summary(tiny: Path) -> None:
    found = tiresias.reproduce(tiny.parent, Request())
    assert outside(found) == set()
    assert [row.published for row in found.rows if row.quantity == "summary_equal"] == [8, 8]
    assert not [note for note in found.notes if "summary" in note]


def test_a_job_that_ended_here_and_has_no_result_there_is_reported_and_fails_the_check(
    tiny: Path, tmp_path: Path
) -> None:
    altered(tiny / "jobs_count_fifo.csv", without(1))
    code, rows = check(tmp_path / "peers", tmp_path / "out")
    assert code == 1
    (row,) = (row for row in rows if row["within"] is False)
    assert (row["series"], row["quantity"], row["published"], row["measured"]) == (
        "tiresias tiny fifo",
        "jobs_equal",
        2,
        1,
    )
    reported = (
        "first to differ: job 1, not ended there, 100 to 150 s, 0 stops here; 1 ended here and have no result there"
    )
    assert row["note"] == reported


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda text: text + "77,2,10,100,150,140,50,90,0\n", "results of 1 jobs that were not run, such as '77'"),
        (lambda text: text + text.splitlines()[-1] + "\n", ":4: job_id is '1': a job has one result"),
        (lambda text: text.replace("end_time", "ended"), "end_time: this column is missing"),
        (lambda text: text.replace("150", "soon"), "end_time is 'soon'"),
    ],
)
def test_a_file_that_cannot_be_compared_is_a_run_that_failed_and_the_others_are_compared(
    change: Change, reported: str, tiny: Path, tmp_path: Path
) -> None:
    altered(tiny / "jobs_count_fifo.csv", change)
    code, rows = check(tmp_path / "peers", tmp_path / "out")
    assert code == 1
    (lost,) = (row for row in rows if row["within"] is False)
    assert (lost["series"], lost["quantity"]) == ("tiresias tiny fifo", "runs that failed")
    assert reported in str(lost["note"])
    assert {row["series"] for row in rows} == {"tiresias tiny fifo", "tiresias tiny fjf"}


def test_results_of_no_known_schedule_are_a_run_that_failed(tiny: Path) -> None:
    (tiny / "jobs_count_mynew.csv").write_text(RESULTS)
    (tiny / "jobs_gandiva_gandiva.csv").write_text(RESULTS)
    found = tiresias.reproduce(tiny.parent, Request())
    assert outside(found) == {("tiresias tiny count_mynew", "runs that failed")}
    assert "'count_mynew' is none of count_fifo, " in found.rows[0].note
    assert "tiresias tiny: not compared: jobs_gandiva_gandiva.csv" in found.notes


def test_a_case_that_cannot_be_run_leaves_the_others(tiny: Path) -> None:
    other = tiny.parent / "other"
    other.mkdir()
    (other / "trace.csv").write_text(TRACE)
    (other / "cluster_spec.csv").write_text(CLUSTER + "1,1,4,8,8\n")
    found = tiresias.reproduce(tiny.parent, Request())
    assert outside(found) == {("tiresias other", "runs that failed")}
    assert "cluster_spec.csv:3: num_gpu_p_node is '4.0': row 2 says 2" in found.rows[0].note


@pytest.mark.parametrize(
    ("column", "there"),
    [(1, "num_gpu 3 there, where 2"), (2, "submit_time 3 there, where 10"), (5, "jct 3 there, where 140"),
     (6, "duration 3 there, where 50"), (7, "pending_time 3 there, where 90")],
)  # fmt: skip
def test_a_job_differs_whose_other_columns_are_not_what_follows(column: int, there: str, tiny: Path) -> None:
    cells = RESULTS.splitlines()[-1].split(",")
    wrong = ",".join([*cells[:column], "3", *cells[column + 1 :]])
    altered(tiny / "jobs_count_fifo.csv", lambda text: text.replace(",".join(cells), wrong))
    found = tiresias.reproduce(tiny.parent, Request())
    assert outside(found) == {("tiresias tiny fifo", "jobs_equal")}
    assert f"job 1, {there} follows" in rows_of(found, "tiresias tiny fifo")["jobs_equal"].note


def test_the_jobs_of_results_that_are_only_reported_have_to_be_all_there(tiny: Path) -> None:
    (tiny / "jobs_count_gittins_patched.csv").write_text(RESULTS)
    assert outside(tiresias.reproduce(tiny.parent, Request())) == set()
    altered(tiny / "jobs_count_gittins_patched.csv", without(1))
    series = "tiresias tiny gittins_patched"
    lost = outside(tiresias.reproduce(tiny.parent, Request()))
    assert (series, "jobs_equal") in lost
    assert {quantity for _, quantity in lost} == {"jobs_equal"}


# ---- summaries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", SUMMARY.splitlines()[0].split(",")[2:])
def test_a_wrong_number_of_a_summary_is_named(column: str, tiny: Path) -> None:
    with (tiny / "summary.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    reported = f"{float(lines[1][column]) + 1:.1f}"
    lines[1][column] = reported
    with (tiny / "summary.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    found = tiresias.reproduce(tiny.parent, Request())
    assert outside(found) == {("tiresias tiny fjf", "summary_equal")}
    row = rows_of(found, "tiresias tiny fjf")["summary_equal"]
    assert (row.published, row.measured) == (8, 7)
    assert row.note.startswith(f"first to differ: {column} {reported} there, ")


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda text: text + text.splitlines()[1] + "\n", ":4: a run has one line"),
        (lambda text: text.replace("120.0", "much", 1), ":2: avg_jct_s is 'much': is a number"),
        (lambda text: text.replace("fifo,", "fifo,,"), "this row has 11 cells"),
    ],
)
def test_a_summary_that_cannot_be_read_is_a_run_that_failed(change: Change, reported: str, tiny: Path) -> None:
    other = tiny.parent / "other"
    other.mkdir()
    for file in tiny.iterdir():
        (other / file.name).write_text(file.read_text())
    altered(tiny / "summary.csv", change)
    found = tiresias.reproduce(tiny.parent, Request())
    (lost,) = (row for row in found.rows if row.within is False)
    assert lost.quantity == "runs that failed"
    assert reported in lost.note


def test_what_of_a_summary_is_not_compared_is_reported(tiny: Path) -> None:
    altered(tiny / "summary.csv", lambda text: text.replace("fjf,count", "sjf,yarn").replace("avg_pending_s", "mood"))
    notes = tiresias.reproduce(tiny.parent, Request()).notes
    assert "tiresias tiny: summary.csv: not compared: runs sjf yarn" in notes
    assert "tiresias tiny: summary.csv: not compared: columns mood" in notes
    assert "tiresias tiny: summary.csv says nothing of fjf count" in notes
    altered(tiny / "summary.csv", lambda text: text.replace("placement", "where"))
    notes = tiresias.reproduce(tiny.parent, Request()).notes
    assert "tiresias tiny: summary.csv: not compared: it has no columns schedule, placement" in notes


@pytest.mark.parametrize(
    ("written", "half"), [("0.266", 5e-4), ("0.2", 0.05), ("12", 0.5), ("1e-05", 5e-6), ("1e16", 0.5)]
)
def test_half_a_digit_is_that_of_the_number_as_it_is_written(written: str, half: float) -> None:
    assert half_a_digit(written) == pytest.approx(half)


# ---- each system -----------------------------------------------------------------------------------------------------


def test_helios_compares_the_waits_and_the_summary(tmp_path: Path) -> None:
    # Two jobs of one accelerator on one: the shorter comes later, stops the first for 7 s of work; each lingers 1 s.
    case = tmp_path / "tiny"
    case.mkdir()
    (case / "trace.csv").write_text("job_id,num_gpu,submit_time,duration\n0,1,0,100\n1,1,10,20\n")
    (case / "cluster.csv").write_text("vc,nodes,gpus_per_node\na,1,1\n")
    head = "job_id,num_gpu,submit_time,duration,start_time,end_time,jct,queue,preemptions\n"
    (case / "jobs_srtf.csv").write_text(head + "0,1,0,100,0,129,129,21,1\n1,1,10,20,10,31,21,0,0\n")
    head = "policy,placement,n,avg_jct_s,p50_jct_s,p99_jct_s,makespan_s,avg_queue_s,avg_preemptions\n"
    (case / "summary.csv").write_text(head + "srtf,consolidate,2,75.0,129.0,129.0,129.0,10.5,0.5\n")
    found = helios.reproduce(tmp_path, Request())
    assert outside(found) == set()
    assert rows_of(found, "helios tiny srtf")["summary_equal"].published == 7
    altered(case / "summary.csv", lambda text: text.replace("10.5", "11.5"))
    altered(case / "jobs_srtf.csv", without(1))
    found = helios.reproduce(tmp_path, Request())
    assert outside(found) == {("helios tiny srtf", "jobs_equal"), ("helios tiny srtf", "summary_equal")}


def blox_case(folder: Path, n: str = "3") -> Path:
    """Write six jobs that never wait, of which the third to the fifth are tracked, under two policies."""
    case = folder / "tiny"
    case.mkdir()
    trace = [f"{job},1,{300 * job},300" for job in range(6)]
    (case / "trace.csv").write_text("\n".join(["job_id,num_gpu,submit_time,work_s", *trace]) + "\n")
    results = [f"{job},1,{300 * job},300,{300 * job + 300},300" for job in (2, 3, 4)]
    for name in ("fifo", "las"):
        (case / f"jobs_{name}.csv").write_text(
            "\n".join(["job_id,num_gpu,submit_time,work_s,end_time,jct", *results]) + "\n"
        )
    head = "policy,machines,gpus_per_machine,n,avg_jct_s,avg_responsiveness_s,last_end_s"
    lines = [f"{name},1,2,{n},300,300.0,1500" for name in ("Fifo", "Las")]
    (case / "summary.csv").write_text("\n".join([head, *lines]) + "\n")
    return case


def test_blox_tracks_as_many_jobs_in_a_row_as_its_summary_says(tmp_path: Path) -> None:
    blox_case(tmp_path)
    found = blox.reproduce(tmp_path, Request())
    assert outside(found) == set()
    assert [row.published for row in found.rows if row.quantity == "jobs_equal"] == [3, 3]
    assert [row.published for row in found.rows if row.quantity == "summary_equal"] == [4, 4]


@pytest.mark.parametrize("job", [2, 3, 4])
def test_blox_misses_each_tracked_job(job: int, tmp_path: Path) -> None:
    altered(blox_case(tmp_path) / "jobs_fifo.csv", without(job))
    found = blox.reproduce(tmp_path, Request())
    assert ("blox tiny fifo", "jobs_equal") in outside(found)
    assert {series for series, _ in outside(found)} == {"blox tiny fifo"}
    assert f"job {job}, not ended there" in rows_of(found, "blox tiny fifo")["jobs_equal"].note


@pytest.mark.parametrize("job", [2, 3, 4])
def test_blox_misses_a_tracked_job_that_no_run_has(job: int, tmp_path: Path) -> None:
    case = blox_case(tmp_path)
    for name in ("fifo", "las"):
        altered(case / f"jobs_{name}.csv", without(job))
    lost = outside(blox.reproduce(tmp_path, Request()))
    assert {("blox tiny fifo", "jobs_equal"), ("blox tiny las", "jobs_equal")} <= lost


def test_blox_takes_no_result_of_a_job_that_is_not_tracked(tmp_path: Path) -> None:
    case = blox_case(tmp_path)
    altered(case / "jobs_fifo.csv", lambda text: text + "1,1,300,300,600,300\n")
    found = blox.reproduce(tmp_path, Request())
    assert outside(found) == {("blox tiny fifo", "runs that failed")}
    assert "1 jobs that are not tracked, such as '1'" in found.rows[0].note


def test_blox_tracks_the_same_jobs_under_all_policies(tmp_path: Path) -> None:
    case = blox_case(tmp_path)
    altered(case / "jobs_fifo.csv", without(2))
    altered(case / "summary.csv", lambda text: text.replace("Fifo,1,2,3", "Fifo,1,2,2"))
    found = blox.reproduce(tmp_path, Request())
    assert outside(found) == {("blox tiny fifo", "jobs_equal"), ("blox tiny fifo", "summary_equal")}


def test_blox_without_a_number_of_tracked_jobs_is_reported(tmp_path: Path) -> None:
    case = blox_case(tmp_path)
    altered(case / "summary.csv", lambda text: text.replace(",n,", ",m,"))
    altered(case / "jobs_fifo.csv", without(3))
    found = blox.reproduce(tmp_path, Request())
    assert ("blox tiny fifo", "jobs_equal") in outside(found)
    assert any("does not say how many jobs are tracked" in note for note in found.notes)


@given(st.integers(1, 30), st.data())
def test_the_tracked_jobs_are_found_whichever_one_result_is_lost(jobs: int, data: st.DataObject) -> None:
    names = [str(job) for job in range(jobs)]
    first = data.draw(st.integers(0, jobs - 1))
    window = names[first : data.draw(st.integers(first + 1, jobs))]
    lost = data.draw(st.sampled_from(window))
    results = [set(window) - {lost}, set(window)]
    assert tracked(names, results, len(window)) == window
    assert tracked(names, results, None) == window


def test_a_mean_that_is_near_is_not_enough_where_jobs_have_no_result() -> None:
    ours = {name: Life(float("nan"), 10.0) for name in "abc"}
    submitted = dict.fromkeys(ours, 0.0)
    equal, mean, _ = compared("s", {"a": ours["a"], "b": ours["b"]}, ours, submitted, "f", near=0.02)
    assert (equal.within, equal.published, equal.measured, mean.within) == (False, 3, 2, True)
    assert compared("s", ours, ours, submitted, "f", near=0.02)[0].within is None


def test_who_never_ended_on_either_side_is_not_missed() -> None:
    ours = {"a": Life(0.0, 10.0, 0.0), "b": Life(float("nan"), float("nan"), 0.0)}
    equal = compared("s", {"a": ours["a"]}, ours, dict.fromkeys(ours, 0.0), "f")[0]
    assert (equal.within, equal.published) == (True, 1)


@pytest.fixture
def short(peers: Path, tmp_path: Path) -> Path:
    """Pollux' measurements, its first two workloads cut to three jobs each, and results of these."""
    data = peers.parent
    if not (data / WORKLOADS).is_file() or not (data / MEASURED).is_dir():
        pytest.skip(f"{data / WORKLOADS} or {data / MEASURED} is absent")
    with gzip.open(data / WORKLOADS, "rt") as file:
        header, *lines = file.read().splitlines()
    group, workload, name = (header.split(",").index(column) for column in ("set", "workload", "name"))
    kept: dict[str, list[tuple[str, str]]] = {"1": [], "2": []}
    for line in lines:
        cells = line.split(",")
        if cells[group] == "workloads" and cells[workload] in kept and len(kept[cells[workload]]) < 3:
            kept[cells[workload]].append((line, cells[name]))
    (tmp_path / WORKLOADS).parent.mkdir(parents=True)
    (tmp_path / WORKLOADS).write_bytes(
        gzip.compress("\n".join([header, *(line for one in kept.values() for line, _ in one)]).encode())
    )
    (tmp_path / MEASURED).parent.mkdir(parents=True)
    (tmp_path / MEASURED).symlink_to(data / MEASURED)
    folder = tmp_path / "peers" / "pollux"
    folder.mkdir(parents=True)
    rows = [f"workload-{number},{job},1.0,1.0" for number, one in kept.items() for _, job in one]
    (folder / POLLUX).write_text("\n".join(["workload,name,tiresias,optimus", *rows]) + "\n")
    return folder


def test_pollux_tells_every_workload_and_job_that_only_one_side_has(short: Path) -> None:
    altered(short / POLLUX, lambda text: text.replace("workload-2,", "workload-9,"))
    found = pollux.reproduce(short, Request())
    failed = {row.series: row.note for row in found.rows if row.quantity == "runs that failed"}
    assert failed.keys() == {"pollux workload-9"}
    assert sum(note.startswith("pollux workload-2 optimus: not compared: ") for note in found.notes) == 1
    altered(short / POLLUX, lambda text: "".join(text.splitlines(keepends=True)[:-4]))  # and one job of workload-1
    equal = rows_of(pollux.reproduce(short, Request()), "pollux workload-1 optimus")["jobs_equal"]
    assert (equal.published, equal.within) == (3, False)
    assert "1 ended here and have no result there" in equal.note


def test_pollux_takes_results_of_one_workload_under_one_policy(short: Path) -> None:
    lines = (short / POLLUX).read_text().splitlines()[:4]
    (short / POLLUX).write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n")
    found = pollux.reproduce(short, Request())
    assert {row.series for row in found.rows} == {"pollux workload-1 tiresias"}
    assert any(note.startswith("pollux optimus: not compared: ") for note in found.notes)


def one_job_short(folder: str, peers: Path, place: Path) -> None:
    """Lay out Shockwave's results with the last job of a folder's results missing."""
    for file in (peers / "shockwave").iterdir():
        (place / file.name).symlink_to(file)
    (place / folder).unlink()
    (place / folder).mkdir()
    for file in (peers / "shockwave" / folder).iterdir():
        (place / folder / file.name).write_text(file.read_text())
    altered(place / folder / "jct_by_job.csv", without(119))


def test_shockwave_results_of_fewer_jobs_than_the_trace_has_are_refused(peers: Path, tmp_path: Path) -> None:
    one_job_short("upstream_sim_32gpu", peers, tmp_path)
    with pytest.raises(InvalidInput, match="it has 119 jobs, the trace 120"):
        shockwave.reproduce(tmp_path, Request())


def test_shockwave_real_results_of_fewer_jobs_are_refused_beside_a_run_without_any(peers: Path, tmp_path: Path) -> None:
    one_job_short("upstream_sim_vs_physical_32gpu", peers, tmp_path)
    found = shockwave.reproduce(tmp_path, Request())
    failed = [row for row in found.rows if row.quantity == "runs that failed"]
    assert all("it has 119 jobs, the trace 120" in row.note for row in failed)
    assert {row.series for row in found.rows} - {row.series for row in failed} == {"shockwave gandiva_fair"}


def test_shockwave_takes_any_number_of_accelerators_jobs_and_runs(peers: Path, tmp_path: Path) -> None:
    there = peers / "shockwave"
    rates = "tacc_isolated_throughputs.json"
    (tmp_path / rates).symlink_to(there / rates)
    lines = (there / "tacc_120jobs.trace").read_text().splitlines(keepends=True)[:12]
    (tmp_path / "first.trace").write_text("".join(lines))
    for size, runs in ((16, ("max_min_fairness", "min_total_duration")), (24, ("max_min_fairness",))):
        (tmp_path / f"upstream_sim_{size}gpu").mkdir()
        summary = "".join(f"{run},10000.0,30000.0\n" for run in runs)
        (tmp_path / f"upstream_sim_{size}gpu" / "summary.csv").write_text(f"run,avg_jct_s,makespan_s\n{summary}")
    found = shockwave.reproduce(tmp_path, Request())
    series = {row.series for row in found.rows}
    assert series == {
        "shockwave 16gpu max_min_fairness",
        "shockwave 16gpu max_min_fairness central",
        "shockwave 16gpu min_total_duration",
        "shockwave 16gpu min_total_duration central",
        "shockwave 24gpu max_min_fairness",
        "shockwave 24gpu max_min_fairness central",
    }
    wide = rows_of(found, "shockwave 16gpu max_min_fairness")["makespan"].measured
    assert wide is not None
    assert wide >= (rows_of(found, "shockwave 24gpu max_min_fairness")["makespan"].measured or 0.0)


@pytest.mark.parametrize("folder", ["upstream_sim_0gpu", "upstream_sim_gpu", "results"])
def test_shockwave_results_without_a_number_of_accelerators_are_refused(
    folder: str, peers: Path, tmp_path: Path
) -> None:
    for file in ("tacc_isolated_throughputs.json", "tacc_120jobs.trace"):
        (tmp_path / file).symlink_to(peers / "shockwave" / file)
    (tmp_path / folder).mkdir()
    with pytest.raises(InvalidInput, match="for example upstream_sim_32gpu"):
        shockwave.reproduce(tmp_path, Request())


@pytest.fixture
def artifact(peers: Path, tmp_path: Path) -> Path:
    """A case of ASTRAEA's artifact with one run."""
    there, here = peers / "astraea" / "a400h", tmp_path / "a400h"
    here.mkdir()
    for name in ("trace.csv", "share.csv", "names.lst", "summary.csv", "jobs_a400h.fairness.fair.900.csv"):
        (here / name).write_text((there / name).read_text())
    return here


def test_the_artifact_is_asked_for_every_job_run_and_number(artifact: Path) -> None:
    series = "astraea a400h fairness.fair.900"
    altered(artifact / "jobs_a400h.fairness.fair.900.csv", without(399))
    (artifact / "jobs_mynew.csv").write_text("job_id\n")
    altered(artifact / "summary.csv", lambda text: text.replace("4892.58", "4893.58"))
    found = astraea.reproduce(artifact.parent, Request())
    assert outside(found) == {
        ("astraea a400h jobs_mynew", "runs that failed"),
        (series, "jobs_equal"),
        (series, "jobs_dropped"),
        (series, "summary_equal"),
    }
    assert "job 399, not ended there" in rows_of(found, series)["jobs_equal"].note
    assert rows_of(found, series)["summary_equal"].note.startswith("first to differ: avg_jct_s 4893.58 there, 4892.58")
