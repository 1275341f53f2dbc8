"""Parity with Gavel on folders made by hand: what is compared, and that all which is not compared is reported."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app

# Two jobs. A second is 10 steps on a V100, 5 on a K80: job 0 runs for two rounds on the V100, job 1 for one on the K80.
LINE = "A3C\tcommand\tfolder\t--steps\t0\t{steps}\t1\t1\t-1\t0\n"
TRACE = LINE.format(steps=7200) + LINE.format(steps=1800)
SPEEDS = {kind: {"('A3C', 1)": {"null": speed}} for kind, speed in (("v100", 10.0), ("p100", 7.0), ("k80", 5.0))}
RUN: dict[str, Any] = {
    "id": "one", "trace": "a.trace", "generated": None, "policy": "fifo_perf", "policy_name": "FIFO_Perf",
    "cluster": {"v100": 1, "k80": 1}, "gpus_per_server": {"v100": 1, "k80": 1}, "seed": 0, "round_seconds": 360,
    "global_queue": False, "window": None, "num_jobs_in_trace": 2, "jct": {"0": 720.0, "1": 360.0},
    "average_jct": 540.0, "makespan": 720.0, "utilization": 0.75, "total_cost_usd": 0.16,
}  # fmt: skip
OTHER = {**RUN, "id": "other"}
FIRST, SECOND = {"v100": 1.0, "k80": 0.0}, {"v100": 0.0, "k80": 1.0}
LOG: list[dict[str, Any]] = [
    {"t": 0.0, "allocation": {"0": FIRST, "1": SECOND}},
    {"t": 0.0, "assign": {"0": [1], "1": [0]}},
    {"t": 360.0, "allocation": {"0": FIRST}},
    {"t": 360.0, "assign": {"0": [1]}},
    {"t": 720.0, "assign": {}},
]
PRICES = {"v100": 0.74, "p100": 0.43, "k80": 0.135}
Rows = dict[tuple[str, str], dict[str, Any]]  # by series and quantity


def written(folder: Path, *runs: Any, logs: Any = None, trace: str = TRACE, speeds: Any = SPEEDS, **more: Any) -> Path:
    """Write a folder of results; without `logs` it has none."""
    (folder / "traces").mkdir(parents=True)
    (folder / "traces" / "a.trace").write_text(trace)
    (folder / "simulation_throughputs.json.gz").write_bytes(gzip.compress(json.dumps(speeds).encode()))
    reported = {"provenance": {"prices_usd_per_gpu_hour": PRICES}, "runs": runs, **more}
    (folder / "reference_results.json").write_text(json.dumps(reported))
    if logs is not None:
        (folder / "round_logs.json.gz").write_bytes(gzip.compress(json.dumps({"logs": logs}).encode()))
    return folder


def typed(folder: Path, *words: str) -> tuple[int, str, str]:
    """Compare with a folder; return exit code, stdout and stderr."""
    out = folder.absolute().parent / "out"
    asked = ("reproduce", "gavel-parity", "--reference", folder, "--out", out, "--check", "--force", *words)
    result = CliRunner().invoke(app, [str(word) for word in asked])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def compared(folder: Path) -> tuple[int, Rows]:
    """Compare with a folder; return the exit code and its rows."""
    code, said, _ = typed(folder, "--json")
    assert "rows" in json.loads(said), said
    return code, {(row["series"], row["quantity"]): row for row in json.loads(said)["rows"]}


def refused(folder: Path) -> list[tuple[int | None, str | None]]:
    """Compare with a folder that is refused; return where it is wrong."""
    code, said, _ = typed(folder, "--json")
    assert code == 2, said
    return [(problem["row"], problem["column"]) for problem in json.loads(said)["error"]["problems"]]


def failure(rows: Rows, series: str) -> str:
    """Return why a run or log was not compared; it is outside of what is tolerated."""
    row = rows[series, "runs that failed"]
    assert row["within"] is False
    return str(row["note"])


def test_a_run_and_its_log_that_were_worked_by_hand_are_met(tmp_path: Path) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN, logs={"one": LOG}))
    assert code == 0
    measured = {quantity: row["measured"] for (series, quantity), row in rows.items() if series == "one"}
    assert measured == {
        "jobs with the same JCT": 2, "jobs dropped by one only": 0, "average_jct": 540.0, "makespan": 720.0,
        "utilization": 0.75, "total_cost_usd": pytest.approx((720 * 0.74 + 360 * 0.135) / 3600),
    }  # fmt: skip
    assert rows["one log", "rounds with the same assignment"]["measured"] == 2
    assert all(row["within"] is not False and row["note"] == "" for row in rows.values())


@pytest.mark.parametrize(
    ("trace", "possible", "renewed"),
    [
        (TRACE, 1, 1),  # job 0 goes on where it was, job 1 ends with its round
        (LINE.format(steps=1800) + LINE.format(steps=7200), 2, 1),  # job 1 moves to the V100 for two rounds
        (TRACE + LINE.format(steps=100), 1, 1),  # job 2 comes in where job 1 was
    ],
)
def test_leases_that_could_be_renewed_are_counted_and_those_that_were(
    trace: str, possible: int, renewed: int, tmp_path: Path
) -> None:
    said = {"lease_extensions": renewed, "lease_opportunities": possible, "jct": {}, "window": None}
    _, rows = compared(written(tmp_path / "gavel", {**RUN, **said}, trace=trace))
    row = rows["one", "leases renewed"]
    assert (row["published"], row["measured"]) == (renewed / possible, renewed / possible)
    _, rows = compared(written(tmp_path / "other", RUN))
    assert ("one", "leases renewed") not in rows


@pytest.mark.parametrize("at", [360.0, 720.0])
def test_an_allocation_without_jobs_answers_no_question(at: float, tmp_path: Path) -> None:
    empty: dict[str, Any] = {"t": at, "allocation": {}}
    place = next(i for i, event in enumerate([*LOG, {"t": 1e9}]) if event["t"] > at)
    code, rows = compared(written(tmp_path / "gavel", RUN, logs={"one": [*LOG[:place], empty, *LOG[place:]]}))
    assert code == 0
    assert all(row["note"] == "" for row in rows.values())


def test_a_folder_may_be_given_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "data" / "gavel", RUN)
    monkeypatch.chdir(tmp_path)
    code, rows = compared(Path("data") / "gavel")
    assert (code, rows["one", "average_jct"]["measured"]) == (0, 540.0)


@pytest.mark.parametrize(
    ("run", "more", "reported"),
    [
        ({"policy": "unknown"}, {}, "gavel:unknown"),
        ({"policy": "max_min_fairness"}, {"trace": TRACE.replace("A3C", "B4D")}, "B4D"),
        ({}, {"trace": TRACE.replace("\t", "|", 1)}, "a.trace:1"),
        ({}, {"speeds": {"v100": 5}}, "simulation_throughputs.json.gz"),
        ({"cluster": {"h900": 1}, "gpus_per_server": {"h900": 1}}, {}, "h900"),
        (
            {"generated": {"rate_per_hour": 4.0, "multi_gpu": False, "multi_priority": False, "ideal": True}},
            {},
            "no rounds to compare",
        ),
    ],
)
def test_a_run_that_cannot_be_played_fails_the_check_and_says_why(
    run: dict[str, Any], more: dict[str, Any], reported: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "gavel", RUN | run, **more)
    code, rows = compared(folder)
    assert code == 1
    assert reported in failure(rows, "one")
    code, said, _ = typed(folder)
    assert code == 1
    assert reported in said


WRONG: list[tuple[str, Any, str]] = [
    ("policy", 3, "policy"),
    ("policy", "fifo_perf_alpha=0.2", "policy"),
    ("policy", "allox_alpha=much", "policy"),
    ("cluster", {"v100": "1", "k80": 1}, "cluster.v100"),
    ("cluster", {"v100": 0}, "cluster"),
    ("cluster", [], "cluster"),
    ("gpus_per_server", {"v100": 1}, "gpus_per_server.k80"),
    ("gpus_per_server", {"v100": 0, "k80": 1}, "gpus_per_server.v100"),
    ("gpus_per_server", None, "gpus_per_server"),
    ("seed", -5, "seed"),
    ("seed", True, "seed"),
    ("round_seconds", 0, "round_seconds"),
    ("jct", {"foo": 1.0}, "jct.foo"),
    ("jct", {"0": "x"}, "jct.0"),
    ("jct", [1.0], "jct"),
    ("average_jct", None, "average_jct"),
    ("makespan", float("nan"), "makespan"),
    ("utilization", "full", "utilization"),
    ("lease_extensions", 0.5, "lease_extensions"),
    ("lease_opportunities", -1, "lease_opportunities"),
    ("window", [1], "window"),
    ("window", ["a", "b"], "window"),
    ("window", [1, 1], "window"),
    ("window", [0, 500], "window"),
    ("trace", "gone.trace", "trace"),
    ("trace", "a" * 300, "trace"),
    ("generated", "x", "generated"),
    ("generated", {"rate_per_hour": 4.0, "multi_gpu": False}, "generated.multi_priority"),
]


@pytest.mark.parametrize(("field", "value", "column"), WRONG)
def test_a_run_with_a_wrong_field_is_reported_by_run_field_and_value_and_the_others_are_compared(
    field: str, value: Any, column: str, tmp_path: Path
) -> None:
    code, rows = compared(written(tmp_path / "gavel", OTHER, RUN | {field: value}))
    assert code == 1
    note = failure(rows, "one")
    assert re.search(rf"reference_results.json:2: {re.escape(column)}(:| is) ", note)
    assert "(run one); " in note
    assert rows["other", "average_jct"]["within"] is True


def test_all_that_is_wrong_with_a_run_is_reported_at_once(tmp_path: Path) -> None:
    wrong = {key: value for key, value in RUN.items() if key != "seed"} | {"window": [3], "jct": {"0": "x", "b": 1.0}}
    _, rows = compared(written(tmp_path / "gavel", OTHER, wrong))
    columns = [line.split(": ")[1].split()[0] for line in failure(rows, "one").split(" | ")]
    assert columns == ["seed", "jct.0", "jct.b", "window"]


def test_a_folder_in_which_no_run_can_be_used_is_refused(tmp_path: Path) -> None:
    assert refused(written(tmp_path / "gavel", {**RUN, "seed": "0"}, 3)) == [(1, "seed"), (2, "runs")]


@pytest.mark.parametrize(
    ("provenance", "column"),
    [
        ([], "provenance"),
        ({"prices_usd_per_gpu_hour": 3}, "provenance.prices_usd_per_gpu_hour"),
        ({"prices_usd_per_gpu_hour": {"v100": "dear"}}, "provenance.prices_usd_per_gpu_hour.v100"),
    ],
)
def test_prices_that_are_none_are_refused(provenance: Any, column: str, tmp_path: Path) -> None:
    assert refused(written(tmp_path / "gavel", RUN, provenance=provenance)) == [(None, column)]


def test_a_file_that_says_nothing_of_its_origin_is_compared(tmp_path: Path) -> None:
    assert compared(written(tmp_path / "gavel", RUN, provenance=None))[0] == 0


@pytest.mark.parametrize(
    ("cluster", "per_server"),
    [
        ({"v100": 1, "p100": 0, "k80": 1}, {"v100": 1, "p100": 1, "k80": 1}),
        ({"v100": 1, "p100": 0, "k80": 1}, {"v100": 1, "k80": 1}),
        ({"v100": 1, "p100": 3, "k80": 1}, {"v100": 1, "p100": 4, "k80": 1}),
    ],
)
def test_a_type_without_a_whole_server_is_as_good_as_absent(
    cluster: dict[str, int], per_server: dict[str, int], tmp_path: Path
) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN | {"cluster": cluster, "gpus_per_server": per_server}))
    assert (code, rows["one", "average_jct"]["measured"]) == (0, 540.0)


# ---- logs ------------------------------------------------------------------------------------------------------------


def edited(change: Callable[[list[dict[str, Any]]], object]) -> list[dict[str, Any]]:
    """Return the log, changed."""
    log = copy.deepcopy(LOG)
    change(log)
    return log


@pytest.mark.parametrize(
    ("log", "rounds", "reported"),
    [
        (
            [*LOG, {"t": 1080.0, "assign": {"1": [0]}}],
            (3, 2),
            "round 4 at 1080.000 s: 1 on (0,) there, and there is no",
        ),
        (LOG[:3], (2, 1), "round 2 at 360.000 s: the log has no such round, and 0 on (1,) here"),
        (LOG[:2], (2, 1), "round 2 at 360.000 s: the log holds 1 allocations, and one more is asked for at 360.000 s"),
        ([*LOG, LOG[2]], (3, 2), "the log holds 1 allocations more than are asked for"),
        (edited(lambda log: log[3]["assign"].update({"0": [0]})), (2, 1), "round 2 at 360.000 s: 0 on (0,) there"),
        (edited(lambda log: log[3].update(t=350.0)), (2, 1), "round 2 at 360.000 s: it begins at 350.000000 s there"),
        (edited(lambda log: log[0].update(allocation={})), (2, 0), "of 0 jobs there, of 2 here"),
    ],
)
def test_the_first_round_that_differs_is_named_whoever_has_more_rounds(
    log: list[Any], rounds: tuple[int, int], reported: str, tmp_path: Path
) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN, logs={"one": log}))
    row = rows["one log", "rounds with the same assignment"]
    assert code == 1
    assert row["within"] is False
    assert (row["published"], row["measured"]) == rounds
    assert reported in row["note"]


def test_a_last_round_of_the_log_in_which_no_job_runs_may_be_left_out(tmp_path: Path) -> None:
    assert compared(written(tmp_path / "gavel", RUN, logs={"one": LOG[:-1]}))[0] == 0


@pytest.mark.parametrize(
    ("event", "column"),
    [
        ({"assign": {"0": [1]}}, "t"),
        ({"t": "soon", "assign": {"0": [1]}}, "t"),
        ({"t": 360.0}, "event"),
        (3, "event"),
        ({"t": 360.0, "assign": [1]}, "assign"),
        ({"t": 360.0, "assign": {"x": [1]}}, "assign.x"),
        ({"t": 360.0, "assign": {"0": ["a"]}}, "assign.0"),
        ({"t": 360.0, "assign": {"0": 1}}, "assign.0"),
        ({"t": 360.0, "allocation": {"0": {"v100": "x"}}}, "allocation.0.v100"),
        ({"t": 360.0, "allocation": {"0": {"v100": 5.0}}}, "allocation.0.v100"),
        ({"t": 360.0, "allocation": {"0": 1.0}}, "allocation.0"),
        ({"t": 360.0, "allocation": {"0": FIRST, "(0, 1)": SECOND}}, "allocation.(0, 1)"),
    ],
)
def test_a_log_with_a_wrong_event_is_reported_by_its_number_and_the_run_itself_is_compared(
    event: Any, column: str, tmp_path: Path
) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN, logs={"one": [*LOG[:3], event]}))
    assert code == 1
    note = failure(rows, "one log")
    assert re.search(rf"round_logs.json.gz:4: {re.escape(column)}(:| is) ", note)
    assert "(log of one); " in note
    assert rows["one", "average_jct"]["within"] is True


def test_a_log_that_is_no_list_is_reported(tmp_path: Path) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN, logs={"one": {"a": 1}}))
    assert code == 1
    assert "logs.one" in failure(rows, "one log")


@pytest.mark.parametrize("logs", [[], 3])
def test_a_file_of_logs_that_holds_none_is_refused(logs: Any, tmp_path: Path) -> None:
    assert refused(written(tmp_path / "gavel", RUN, logs=logs)) == [(None, "logs")]


def test_a_log_of_no_run_is_reported(tmp_path: Path) -> None:
    code, said, _ = typed(written(tmp_path / "gavel", RUN, logs={"unknown": LOG}), "--json")
    assert code == 0
    assert "unknown" in json.loads(said)["notes"][0]


# ---- what is checked -------------------------------------------------------------------------------------------------


def test_the_second_of_two_runs_of_one_name_is_not_compared(tmp_path: Path) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN, {**RUN, "policy": "isolated"}, logs={"one": LOG}))
    assert code == 1
    assert "run 1" in failure(rows, "one, run 2")
    assert rows["one", "average_jct"]["measured"] == 540.0


@pytest.mark.parametrize(
    ("jct", "reported"),
    [
        ({"0": 720.0, "1": 361.0}, "job 1, 361.0 s there, 360.0 s here"),
        ({"0": 720.0}, "job 1, not ended there, 360.0 s here"),
        ({"0": 720.0, "1": None}, "job 1, dropped there, 360.0 s here"),
        ({"0": 720.0, "1": 360.0, "2": 9.0}, "job 2, 9.0 s there, not ended here"),
    ],
)
def test_the_first_job_that_ends_otherwise_or_on_one_side_only_is_named(
    jct: dict[str, float | None], reported: str, tmp_path: Path
) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN | {"jct": jct}, logs={"one": LOG}))
    assert code == 1
    for series in ("one", "one log"):
        row = rows[series, "jobs with the same JCT"]
        assert row["within"] is False
        assert row["published"] - row["measured"] == 1
        assert reported in row["note"]


@pytest.mark.parametrize(
    ("cost", "within"),  # here it is 0.1615
    [(0.1615, True), (0.161, True), (0.16, True), (0.2, True), (0, True), (0.1617, False), (0.17, False),
     (0.24, False), (0.0, False), (1, False)],
)  # fmt: skip
def test_the_cost_of_a_small_run_is_met_to_half_of_its_last_printed_digit(
    cost: float, within: bool, tmp_path: Path
) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN | {"total_cost_usd": cost}))
    assert rows["one", "total_cost_usd"]["within"] is within
    assert code == (0 if within else 1)


def test_a_cost_that_is_not_reported_is_not_compared(tmp_path: Path) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN | {"total_cost_usd": None}))
    assert (code, rows["one", "total_cost_usd"]["within"]) == (0, None)


def test_jobs_that_are_not_named_are_not_compared(tmp_path: Path) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN | {"jct": {}}, logs={"one": LOG}))
    assert code == 0
    for series in ("one", "one log"):
        row = rows[series, "jobs with the same JCT"]
        assert (row["within"], row["published"]) == (None, None)
        assert "names no job" in row["note"]


def test_a_run_that_drops_every_job_has_no_average_jct(tmp_path: Path) -> None:
    short = RUN | {"round_seconds": 0.01}
    code, rows = compared(written(tmp_path / "gavel", short))
    assert code == 1
    assert (rows["one", "average_jct"]["measured"], rows["one", "average_jct"]["within"]) == (None, False)
    assert rows["one", "jobs dropped by one only"]["note"] == "0, 1"
    both = short | {"jct": {"0": None, "1": None}, "average_jct": None}
    _, rows = compared(written(tmp_path / "dropped" / "gavel", both))
    assert rows["one", "jobs with the same JCT"]["within"] is True
    assert rows["one", "average_jct"]["within"] is None


@pytest.mark.parametrize("policy", ["allox", "allox_alpha=1", "allox_alpha=0.2"])
def test_a_policy_with_a_parameter_is_checked_as_without(policy: str, tmp_path: Path) -> None:
    code, rows = compared(written(tmp_path / "gavel", RUN | {"policy": policy}))
    assert code == 0
    assert rows["one", "jobs with the same JCT"]["within"] is True
    assert rows["one", "average_jct"]["within"] is True


def test_water_filling_with_space_sharing_is_played(tmp_path: Path) -> None:
    packed = {**RUN, "policy": "max_min_fairness_water_filling_packed"}
    _, rows = compared(written(tmp_path / "gavel", OTHER, packed))
    assert rows["one", "average_jct"]["measured"] > 0


def test_a_check_that_checks_nothing_fails_and_says_so(tmp_path: Path) -> None:
    folder = written(tmp_path / "gavel", RUN | {"policy": "max_min_fairness_packed"})
    code, said, error = typed(folder, "--json")
    assert code == 1
    assert json.loads(said)["checked"] == 0
    assert "nothing was checked" in error
    assert "leave --check out" in error
