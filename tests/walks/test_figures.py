"""Pictures for papers: their options, and another figure from results that are there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eunomia.cli.figure import read_results
from eunomia.cli.options import with_default_formats

if TYPE_CHECKING:
    from conftest import Desk


@pytest.fixture
def compared(desk: Desk) -> Path:
    """Return the folder of a comparison of two policies at two loads."""
    words = ["--policy", "fifo", "--policy", "srtf", "--load", "1", "--load", "2"]
    assert desk.type("compare", "tiny.toml", *words) == 0, desk.stderr
    return desk.folder / "out" / "tiny"


def test_without_a_folder_results_go_to_one_named_after_the_scenario(compared: Path) -> None:
    assert (compared / "report.html").is_file()


def test_another_figure_is_drawn_from_the_table_of_results(desk: Desk, compared: Path) -> None:
    words = ["--y", "jct_p99_s", "--x", "load", "--name", "srtf=Ours", "--width", "84mm", "--font", "7"]
    assert desk.type("figure", str(compared), *words, "--out", "fig.svg") == 0, desk.stderr
    text = (desk.folder / "fig.svg").read_text(encoding="utf-8")
    assert ">Ours<" in text
    assert ">srtf<" not in text
    assert ">load<" in text
    width = float(text.partition('width="')[2].partition("pt")[0])
    assert width == pytest.approx(84 / 25.4 * 72, abs=0.1)


def test_numbers_of_a_table_are_read_as_numbers(compared: Path) -> None:
    row = read_results(compared)[0]
    assert (row["policy"], row["load"], row["seed"], row["jobs_submitted"]) == ("fifo", 1.0, 0, 3)


@pytest.mark.parametrize(
    ("words", "column"),
    [(["--y", "jct"], "y"), (["--x", "lode"], "x"), (["--width", "wide"], "--width"), (["--font", "900"], "--font"),
     (["--name", "srtf"], "--name"), (["--out", "fig.bmp"], "--out")],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(desk: Desk, compared: Path, words: list[str], column: str) -> None:
    known = ["--x", "load"] if "--x" not in words else []
    refused = desk.refused("figure", str(compared), *known, *words)
    assert [problem["column"] for problem in refused["problems"]] == [column]


def test_a_folder_without_results_is_refused(desk: Desk) -> None:
    assert desk.refused("figure", ".")["problems"][0]["column"] == "RESULTS"


def test_charts_without_a_format_are_png_and_svg() -> None:
    assert with_default_formats(["compare", "--charts", "--force"]) == ["compare", "--charts", "png,svg", "--force"]
    assert with_default_formats(["--charts", "pdf", "x"]) == ["--charts", "pdf", "x"]
    assert with_default_formats(["x", "--charts"]) == ["x", "--charts", "png,svg"]


def test_charts_for_a_paper_have_the_names_the_width_and_no_title(desk: Desk) -> None:
    words = ["--charts", "svg", "--width", "3.33in", "--name", "fifo=First come"]
    assert desk.type("simulate", "tiny.toml", "--out", "one", *words) == 0, desk.stderr
    drawn = (desk.folder / "one" / "charts" / "preemptions.svg").read_text(encoding="utf-8")
    assert ">First come<" in drawn
    assert ">Preemptions<" not in drawn
    assert "First come" in (desk.folder / "one" / "report.html").read_text(encoding="utf-8")


def test_a_sweep_writes_charts_and_starts_anew_when_forced(desk: Desk) -> None:
    desk.write("s.toml", 'scenario = "tiny.toml"\n[axes]\npolicy = ["fifo", "srtf"]\n')
    assert desk.type("sweep", "s.toml", "--jobs", "1", "--charts", "pdf") == 0, desk.stderr
    place = desk.folder / "out" / "s"
    assert (place / "charts" / "sweep_jct_mean_s.pdf").read_bytes().startswith(b"%PDF")
    assert desk.type("sweep", "s.toml", "--jobs", "1") == 0
    assert "2 runs done (2 were before)" in desk.stdout
    assert desk.type("sweep", "s.toml", "--jobs", "1", "--force") == 0
    assert "2 runs done (0 were before)" in desk.stdout


def test_on_a_narrow_terminal_names_are_whole_and_columns_that_do_not_fit_are_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "finish_time_fairness"
    assert desk.type("compare", "tiny.toml", "--policy", name, "--seed", "0", "--seed", "1", "--load", "1") == 0
    rows = [line for line in desk.stdout.splitlines() if line.startswith(name) and " finished " not in line]
    assert len(rows) == 1  # the seeds draw nothing here
    assert all(
        len(line) <= 80
        for line in desk.stdout.splitlines()
        if line.startswith(("run ", f"{name} ")) and " finished " not in line
    )
