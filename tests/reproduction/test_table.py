"""What a row promises, and what the command writes and answers."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia_reproduction import EXPERIMENTS, expected
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.table import COLUMNS, FigureRow, FigureTable

TRACE = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,2,0,1,vgg,100,10\n1,2,10,1,vgg,50,0\n"
CLUSTER = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,1,2,8,8\n"
RESULTS = "job_id,num_gpu,submit_time,start_time,end_time,jct,duration,pending_time,preempt\n"
TRUE = RESULTS + "0,2,0,0,100,100,100,0,0\n1,2,10,100,150,140,50,90,0\n"
FALSE = RESULTS + "0,2,0,0,100,100,100,0,0\n1,2,10,100,151,141,50,90,0\n"


def row(published: float | None, measured: float | None, tolerance: float | None = 0.05) -> FigureRow:
    return FigureRow(
        series="s", quantity="q", unit="s", published=published, measured=measured, tolerance=tolerance, source="f"
    )


@pytest.mark.parametrize(
    ("published", "measured", "within"),
    [(100, 105, True), (100, 95, True), (100, 105.1, False), (100, 94.9, False), (0, 0.05, True), (0, 0.06, False),
     (100, None, False), (None, 100, None)],
)  # fmt: skip
def test_a_row_is_within_when_it_is_off_by_no_more_than_its_tolerance(
    published: float | None, measured: float | None, within: bool | None
) -> None:
    assert row(published, measured).within is within
    assert row(published, measured, None).within is None


@pytest.mark.parametrize(("measured", "within"), [(1.0, True), (0.95, True), (0.94, True), (0.9, False), (None, False)])
def test_nothing_above_a_published_lower_bound_is_off(measured: float | None, within: bool) -> None:
    assert replace(row(0.95, measured), is_least=True).within is within


def test_the_ratio_is_measured_over_published_and_is_left_out_where_nothing_was_published() -> None:
    assert row(80, 100).ratio == 1.25
    assert row(0, 100).ratio is None
    assert row(None, 100).ratio is None


def test_the_file_has_the_columns_of_the_contract_and_numbers_that_read_back_the_same(tmp_path: Path) -> None:
    table = FigureTable(rows=(row(1 / 3, 0.1), row(None, None, None)))
    (path,) = table.write(tmp_path, "some")
    with path.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert tuple(first) == COLUMNS
    assert (float(first["published"]), float(first["measured"])) == (1 / 3, 0.1)
    assert first["within"] == "false"
    assert second["published"] == second["within"] == ""


def test_a_figure_is_drawn_as_svg_and_png_with_the_same_bytes_each_time() -> None:
    curves = (
        FigureCurve(name="a", x=[1, 2], y=[3, 4], published=True),
        FigureCurve(name="a", x=[1, 2], y=[3, 5], low=[2, 4], high=[4, 6]),
    )
    figure = Figure(name="f", title="t", x_label="x", y_label="y", curves=curves)
    pictures = figure.pictures()
    assert set(pictures) == {"svg", "png"}
    assert pictures == figure.pictures()
    assert b"a, published" in pictures["svg"]
    assert b"a, measured" in pictures["svg"]


def test_a_logarithmic_axis_has_plain_numbers() -> None:
    curve = FigureCurve(name="a", x=[1, 2, 3], y=[16, 100, 537])
    svg = Figure(name="f", title="t", x_label="x", y_label="y", curves=(curve,), y_log=True).pictures()["svg"]
    assert all(f">{number}</text>".encode() in svg for number in (20, 50, 100, 200, 500))
    assert b"mathdefault" not in svg


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """A tiny case of Tiresias: the second job waits for the first."""
    case = tmp_path / "tiresias" / "tiny"
    case.mkdir(parents=True)
    (case / "trace.csv").write_text(TRACE)
    (case / "cluster_spec.csv").write_text(CLUSTER)
    (case / "jobs_count_fifo.csv").write_text(TRUE)
    return tmp_path


def typed(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["reproduce", *map(str, words)])
    return result.exit_code, result.stdout


@pytest.mark.parametrize("inside", ["", "tiresias", "tiresias/tiny"])
def test_a_folder_of_systems_one_system_or_one_case_is_compared(reference: Path, tmp_path: Path, inside: str) -> None:
    code, said = typed("peers", "--reference", reference / inside, "--out", tmp_path / "out", "--check", "--json")
    assert code == 0
    rows = json.loads(said)["rows"]
    assert [(r["quantity"], r["published"], r["measured"]) for r in rows] == [
        ("jobs_equal", 2, 2), ("jct_mean", 120.0, 120.0), ("last_end", 150.0, 150.0),
    ]  # fmt: skip
    assert (tmp_path / "out" / "peers.csv").read_text().count("\n") == 4


def test_a_job_that_ends_otherwise_is_named_and_fails_the_check(reference: Path, tmp_path: Path) -> None:
    (reference / "tiresias" / "tiny" / "jobs_count_fifo.csv").write_text(FALSE)
    words = ("peers", "--reference", reference, "--out", tmp_path / "out", "--json")
    assert typed(*words)[0] == 0
    code, said = typed(*words, "--check", "--force")
    assert code == 1
    assert json.loads(said)["outside"] == 3
    assert json.loads(said)["rows"][0]["note"] == (
        "first to differ: job 1, 100 to 151 s, 0 stops there, 100 to 150 s, 0 stops here"
    )


def test_why_rows_are_outside_is_printed_once_for_all_of_them(reference: Path, tmp_path: Path) -> None:
    (reference / "tiresias" / "tiny" / "jobs_count_fifo.csv").write_text(FALSE)
    _, said = typed("peers", "--reference", reference, "--out", tmp_path / "out")
    (line,) = (line for line in said.splitlines() if line.startswith("outside: "))
    assert line.endswith("jobs_equal: first to differ: job 1, 100 to 151 s, 0 stops there, 100 to 150 s, 0 stops here")


def test_a_check_of_which_no_row_is_checked_fails_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eunomia_reproduction.load", lambda name: lambda request: FigureTable(rows=(row(None, 1.0),)))
    words = ["reproduce", "some", "--out", str(tmp_path / "out"), "--force"]
    assert CliRunner().invoke(app, words).exit_code == 0
    checked = CliRunner().invoke(app, [*words, "--check"])
    assert checked.exit_code == 1
    assert "nothing was checked" in checked.stderr
    assert "leave --check out" in checked.stderr
    assert (tmp_path / "out" / "some.csv").is_file()


def test_a_check_with_too_few_seeds_is_refused(tmp_path: Path) -> None:
    code, said = typed("themis-w2", "--seeds", "3", "--check", "--out", tmp_path / "out", "--json")
    (problem,) = json.loads(said)["error"]["problems"]
    assert (code, problem["column"], problem["fix"]) == (2, "--seeds", "add --seeds 10, or leave --check out")
    assert not (tmp_path / "out").exists()


def test_the_help_lists_what_can_be_measured_and_its_minutes() -> None:
    said = typed("--help")[1]
    for name, entry in EXPERIMENTS.items():
        assert re.search(rf"^ *{name} +{entry.minutes:g} ", said, re.MULTILINE), name
    assert max(map(len, said.splitlines())) <= 80


def test_a_check_passes_with_the_expected_misses_and_fails_when_any_row_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(*rows: FigureRow) -> tuple[int, str]:
        monkeypatch.setattr("eunomia_reproduction.load", lambda name: lambda request: FigureTable(rows=rows))
        result = CliRunner().invoke(app, [*words, "--check"])
        return result.exit_code, result.stderr

    monkeypatch.setattr("eunomia_reproduction.expected.FOLDER", tmp_path / "expected")
    words = ["reproduce", "some", "--out", str(tmp_path / "out"), "--force"]
    miss, hit = row(100, 200), row(100, 101)
    assert checked(miss)[0] == 1
    monkeypatch.setattr("eunomia_reproduction.load", lambda name: lambda request: FigureTable(rows=(miss, hit)))
    assert CliRunner().invoke(app, [*words, "--accept"]).exit_code == 0
    code, said = checked(miss, hit)
    assert (code, "1 rows are outside, as expected" in said) == (0, True)
    assert checked(miss, hit, hit) == (1, "changed: s (3), q: this row is new\n")
    assert checked(miss) == (1, "changed: s (2), q: this row was expected and is missing\n")
    assert checked(row(100, 104), hit)[0] == 1  # a miss that became a hit
    assert checked(miss, row(100, 102))[0] == 1  # still within, but another value
    CliRunner().invoke(app, [*words, "--accept", "--seeds", "2"])
    CliRunner().invoke(app, ["reproduce", "some-other", *words[2:], "--accept", "--seeds", "3"])
    assert {path.name for path in (tmp_path / "expected").iterdir()} == {"some-1.csv", "some-2.csv", "some-other-3.csv"}
    assert expected.kept_seeds("some") == [1, 2]


def test_an_expected_row_that_was_never_run_takes_any_value() -> None:
    table = FigureTable(rows=(row(100, 200), row(100, 101)))
    known = expected.rows_of(table)
    miss, hit = known
    assert expected.changes(table, {miss: (expected.NOT_RUN, ""), hit: known[hit]}) == []
    assert expected.changes(table, {miss: known[miss], hit: ("102", "true")}) != []


def test_rows_without_a_published_value_are_checked_against_the_expected_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(measured: float, cpu_s: float, word: str) -> int:
        slow = FigureRow(series="s", quantity="CPU time of a decision", unit="s", measured=cpu_s)
        table = FigureTable(rows=(row(None, measured), slow))
        monkeypatch.setattr("eunomia_reproduction.load", lambda name: lambda request: table)
        return CliRunner().invoke(app, ["reproduce", "some", "--out", str(tmp_path / "out"), "--force", word]).exit_code

    monkeypatch.setattr("eunomia_reproduction.expected.FOLDER", tmp_path / "expected")
    assert typed(1.0, 0.5, "--check") == 1  # nothing to check
    assert typed(1.0, 0.5, "--accept") == 0
    assert typed(1.0, 0.9, "--check") == 0  # a machine's time may differ
    assert typed(1.1, 0.5, "--check") == 1


def test_names_stay_whole_and_numbers_in_columns_at_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(series: str) -> list[str]:
        table = FigureTable(rows=tuple(replace(row(50_000, 49_152.4), series=series, x=x) for x in (0.4, 12)))
        monkeypatch.setattr("eunomia_reproduction.load", lambda name: lambda request: table)
        words = ["reproduce", "some", "--out", str(tmp_path / "out"), "--force"]
        return CliRunner().invoke(app, words, env={"COLUMNS": "80"}).stdout.splitlines()[:-1]

    assert printed("las") == [
        "series   x quantity published measured ratio within",
        "las    0.4 q [s]       50,000   49,152 0.983    yes",
        "las     12 q [s]       50,000   49,152 0.983    yes",
    ]
    name = "half ResNet-50, half A3C; rounds, shares only; max_sum_throughput_perf"
    assert printed(name) == [
        "    x quantity published measured ratio within",
        name,
        "  0.4 q [s]       50,000   49,152 0.983    yes",
        "   12 q [s]       50,000   49,152 0.983    yes",
    ]


@pytest.mark.parametrize(
    ("words", "column", "rule", "fix"),
    [
        (("peer", "--out", "out"), "NAME", "no such experiment", "peers"),
        (("--out", "out"), "NAME", "no experiment is named", "--list"),
        (("tiresias",), "--out", "no folder for the results", "--out tiresias-out"),
        (("peers", "--out", "out"), "--reference", "no folder is given", "data/peers"),
        (("peers", "--out", "out", "--reference", "gone"), "--reference", "there is no folder gone", "data/peers"),
        (("peers", "--out", "out", "--reference", "."), "--reference", "none of tiresias", "data/peers"),
    ],
)
def test_a_wrong_command_line_is_reported_with_what_to_type(
    words: tuple[str, ...], column: str, rule: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = typed(*words, "--json")
    (problem,) = json.loads(said)["error"]["problems"]
    assert (code, problem["column"]) == (2, column)
    assert rule in problem["rule"]
    assert fix in problem["fix"]
    assert not list(tmp_path.iterdir())


def test_everything_that_an_experiment_needs_is_asked_for_at_once() -> None:
    code, said = typed("gavel-fig8", "--json")
    problems = json.loads(said)["error"]["problems"]
    assert (code, [problem["column"] for problem in problems]) == (2, ["--out", "--reference"])
    assert "laid out like data/gavel" in problems[1]["fix"]


def test_results_that_are_there_are_replaced_only_when_that_is_said(reference: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "peers.csv").write_text("mine")
    words = ("peers", "--reference", reference, "--out", tmp_path / "out", "--json")
    code, said = typed(*words)
    assert (code, json.loads(said)["error"]["problems"][0]["column"]) == (2, "--out")
    assert (tmp_path / "out" / "peers.csv").read_text() == "mine"
    assert typed(*words, "--force")[0] == 0


@pytest.mark.parametrize(
    ("file", "content", "reported"),
    [
        ("trace.csv", TRACE.replace("100,10", "soon,10"), {"row": 2, "column": "duration", "value": "soon"}),
        ("trace.csv", TRACE.replace("duration", "lasts"), {"row": 1, "column": "duration"}),
        ("trace.csv", TRACE + "2,2\n", {"row": 4}),
        ("jobs_count_fifo.csv", RESULTS, {"row": None}),
        ("jobs_count_fifo.csv", TRUE.replace("1,2,10", "7,2,10"), {"column": "job_id"}),
        ("trace.csv", TRACE.replace("1,2,10", "1,0,10"), {"row": 3}),
        ("trace.csv", TRACE.replace("1,2,10", "0,2,10"), {"row": None}),
        ("cluster_spec.csv", "", {"rule": "the file has no rows"}),
        ("cluster_spec.csv", CLUSTER.replace("1,1,2", "1,0,2"), {"row": 2}),
    ],
)
def test_a_file_that_is_not_right_is_reported_with_its_line(
    reference: Path, tmp_path: Path, file: str, content: str, reported: dict[str, object]
) -> None:
    path = reference / "tiresias" / "tiny" / file
    path.write_text(content)
    code, said = typed("peers", "--reference", reference, "--out", tmp_path / "out", "--json")
    problem = json.loads(said)["error"]["problems"][0]
    assert code == 2
    assert str(path).endswith(problem["file"])
    assert {key: problem[key] for key in reported} == reported
    assert not (tmp_path / "out").exists()


LINE = "LM (batch size 10)\tcmd\tdir\t--steps\t1\t500\t1\tgns\t1\t-1.0\t100\t0\n"
SPEEDS = json.dumps({"v100": {"('LM (batch size 10)', 1)": 10.0, "('LM (batch size 20)', 1)": 8.0}})


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        (LINE.replace("\t0\n", "\n"), "it has 11 fields"),
        (LINE.replace("LM (", "BERT ("), "'BERT (batch size 10)' is not known"),
        (LINE.replace("size 10", "size 40"), "on 1 accelerators has no throughput"),
        (LINE.replace("\t500\t", "\tmany\t"), "'many'"),
    ],
)
def test_a_line_of_shockwave_that_says_no_job_is_reported(line: str, reported: str, tmp_path: Path) -> None:
    (tmp_path / "toy.trace").write_text(LINE + line)
    (tmp_path / "tacc_isolated_throughputs.json").write_text(SPEEDS)
    code, said = typed("peers", "--reference", tmp_path, "--out", tmp_path / "out", "--json")
    (problem,) = json.loads(said)["error"]["problems"]
    assert (code, problem["row"]) == (2, 2)
    assert reported in problem["rule"]


def test_the_list_says_whose_rows_are_kept() -> None:
    listed = json.loads(CliRunner().invoke(app, ["reproduce", "--list", "--json"]).stdout)
    kept = {each["name"]: each["kept_seeds"] for each in listed}
    assert (kept["tiresias"], kept["metis"], kept["peers"]) == ([10], [1], [])


def test_every_experiment_is_listed_with_what_it_measures() -> None:
    code, said = typed("--list", "--json")
    assert code == 0
    assert {entry["name"] for entry in json.loads(said)} == set(EXPERIMENTS)
    assert all(entry["about"] for entry in json.loads(said))
