"""A purchase plan: what the budget pays, how candidates are judged, and the recommendation."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app

Write = Callable[..., Path]
RUN = CliRunner()


def plan(path: Path, out: Path, *words: str, code: int = 0) -> dict[str, object]:
    result = RUN.invoke(app, ["plan", str(path), "--out", str(out), "--jobs", "1", *words, "--json"])
    assert result.exit_code == code, result.output
    found: dict[str, object] = json.loads(result.stdout.splitlines()[-1])
    return found


PRICES = ("--price", "v100=1000", "--price", "h100=4000", "--only", "v100", "--only", "h100")


@pytest.mark.slow
def test_the_best_purchase_on_every_week_is_recommended(scenario: Write, tmp_path: Path) -> None:
    found = plan(scenario(), tmp_path / "plan", "--budget-usd", "32000", *PRICES, "--weeks", "3")
    purchases = {tuple(one["add"].items()): one for one in found["candidates"]}
    # 32,000 US$ pay four machines of 8 v100 or one of 8 h100, which is twice as fast.
    assert (("v100", 32),) in purchases
    assert (("h100", 8),) in purchases
    assert all(one["usd"] <= 32_000 for one in found["candidates"])
    ranked = [one for one in found["candidates"] if one["periods"] == 3]
    assert [one["jct_change"]["mean"] for one in ranked] == sorted(one["jct_change"]["mean"] for one in ranked)
    name = " + ".join(f"{count} {kind}" for kind, count in ranked[0]["add"].items())
    assert found["recommendation"].startswith(f"For 32,000 US$ buy {name} (")
    assert "interval over 3 weeks" in found["recommendation"]


def test_the_folder_has_a_page_a_picture_and_the_numbers(scenario: Write, tmp_path: Path) -> None:
    out = tmp_path / "plan"
    found = plan(scenario(), out, "--budget-usd", "32000", *PRICES, "--weeks", "2")
    page = (out / "report.html").read_text()
    assert found["recommendation"].split(":")[0] in page
    assert "http" not in page.replace("http-equiv", "")
    for sentence in found["assumed"]:
        assert sentence.split("(")[0] in page
    assert (out / "plan.svg").read_text().startswith("<?xml")
    rows = list(csv.DictReader((out / "plan.csv").read_text().splitlines()))
    assert [float(row["usd"]) for row in rows] == [one["usd"] for one in found["candidates"]]
    assert json.loads((out / "plan.json").read_text()) == found


def test_the_same_command_again_repeats_no_run_and_says_the_same(scenario: Write, tmp_path: Path) -> None:
    path, out = scenario(), tmp_path / "plan"
    first = plan(path, out, "--budget-usd", "32000", *PRICES, "--weeks", "2")
    times = {run: run.stat().st_mtime_ns for run in (out / "runs").iterdir()}
    assert plan(path, out, "--budget-usd", "32000", *PRICES, "--weeks", "2") == first
    assert {run: run.stat().st_mtime_ns for run in (out / "runs").iterdir()} == times


def test_prices_of_an_hour_are_paid_for_the_months(scenario: Write, tmp_path: Path) -> None:
    words = ("--only", "h100", "--months", "12", "--weeks", "1")
    found = plan(scenario(), tmp_path / "plan", "--budget-usd", "500000", *words)
    assert found["candidates"][0]["add"] == {"h100": 8}
    assert found["candidates"][0]["usd"] == pytest.approx(8 * 6.88 * 730.5 * 12)  # the catalogue's price
    assert "one period, so no interval" in found["recommendation"]


def test_spot_prices_of_the_catalogue_are_not_mixed_with_others(scenario: Write, tmp_path: Path) -> None:
    found = plan(scenario(), tmp_path / "plan", "--budget-usd", "1e6", "--weeks", "1")
    assert not any("v100" in one["add"] for one in found["candidates"])
    assert any("spot" in sentence and "v100" in sentence for sentence in found["assumed"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--budget-usd", "100", "--only", "h100"), "pays no accelerator; the cheapest is one h100"),
        (("--budget-usd", "0"), "must be above 0"),
        (("--budget-usd", "1e6", "--only", "a40"), "has no price"),
        (("--budget-usd", "1e6", "--price", "abacus=5"), "no such accelerator type"),
        (("--budget-usd", "1e6", "--price", "h100=free"), "must be TYPE=X with X above 0"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(
    scenario: Write, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    found = plan(scenario(), tmp_path / "plan", *words, code=2)
    assert says in json.dumps(found)
    assert not (tmp_path / "plan" / "plan.json").exists()
