"""Each verdict of docs/reproduce.md follows from the kept rows by the rule that stands above the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia_reproduction import EXPERIMENTS
from eunomia_reproduction.claims import CLAIMS, judge_all
from eunomia_reproduction.claims.claim import Cause, Claim, judge
from eunomia_reproduction.claims.kept_rows import KeptRows
from eunomia_reproduction.claims.page import with_claims, with_part
from eunomia_reproduction.claims.quantities import Ratio, Row, SeedRows
from eunomia_reproduction.claims.readings import BEGIN, END, readings
from eunomia_reproduction.claims.statements import (
    AheadUnderSeeds,
    All,
    Bound,
    Equals,
    RowsWithin,
    Statement,
    Verdict,
    sign_test,
)
from eunomia_reproduction.claims.themis import WORKLOADS

PAGE = Path(__file__).parents[2] / "docs" / "reproduce.md"
GAIN = Row("some", "a", "gain")


def rows_of(*rows: tuple[str, str, str, float | str, str]) -> KeptRows:
    """Rows of the experiment `some`: series, x, quantity, measured, within."""
    return KeptRows({"some": {(s, x, q): (str(value), within) for s, x, q, value, within in rows}}, {"some": 1})


def interval(value: float, low: float | None = None, high: float | None = None) -> KeptRows:
    ends = (("gain", value), ("gain, low", low), ("gain, high", high))
    return rows_of(*(("a", "", quantity, end, "") for quantity, end in ends if end is not None))


def test_the_page_has_the_verdict_of_each_claim_as_the_kept_rows_decide_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_claims(page, judge_all()) == page, "docs/reproduce.md is out of date: make docs"


def test_the_page_has_themis_by_three_readings_as_the_kept_rows_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_part(page, BEGIN, END, readings(KeptRows.shipped())) == page, (
        "docs/reproduce.md is out of date: make docs"
    )
    for workload in WORKLOADS:
        assert f"| {WORKLOADS[workload][0]} | published | rigid, `share` |" in page


def test_a_row_that_changes_makes_the_page_out_of_date() -> None:
    kept = KeptRows.shipped()
    rows = {key: ("0.5", within) for key, (_, within) in kept.by_experiment["symphony"].items()}
    changed = KeptRows({**kept.by_experiment, "symphony": rows}, kept.seeds)
    page = PAGE.read_text(encoding="utf-8")
    assert with_claims(page, [judge(claim, changed) for claim in CLAIMS]) != page


def test_every_claim_rests_on_an_experiment_that_can_be_run() -> None:
    assert {name for claim in CLAIMS for name in claim.experiments} <= set(EXPERIMENTS)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.cause], ids=lambda claim: claim.words)
def test_every_cause_that_is_declared_is_shown_by_its_rows(claim: Claim) -> None:
    assert claim.cause is not None
    kept = KeptRows.shipped()
    if all(name in kept for name in claim.cause.shown.experiments):
        assert claim.cause.shown.judge(kept).verdict is Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("kept", "verdict"),
    [
        (interval(5.4, 5.3, 5.6), Verdict.REPRODUCED),
        (interval(3.7, 2.5, 5.5), Verdict.NOT_DECIDED),  # holds 5.5, and much else
        (interval(3.7, 2.5, 5.2), Verdict.DIRECTION),
        (interval(1.2, 0.9, 1.5), Verdict.NOT),
        (interval(0.7, 0.6, 0.8), Verdict.NOT),
        (interval(5.5), Verdict.NOT_DECIDED),  # one run of our own draws
    ],
)
def test_a_factor_is_decided_by_its_interval(kept: KeptRows, verdict: Verdict) -> None:
    found = Equals(of=GAIN, to=5.5, no_difference=1.0).judge(kept)
    assert found.verdict is verdict
    assert (found.interval == "none kept") is (len(kept.by_experiment["some"]) == 1)


@pytest.mark.parametrize(
    ("value", "verdict"), [(1.04, Verdict.REPRODUCED), (1.06, Verdict.NOT), (0.96, Verdict.REPRODUCED)]
)
def test_one_run_decides_a_number_whose_draws_are_the_published_ones(value: float, verdict: Verdict) -> None:
    assert Equals(of=GAIN, to=1.0, same_draws=True).judge(interval(value)).verdict is verdict


@pytest.mark.parametrize(
    ("kept", "verdict"),
    [
        (interval(0.7, 0.6, 0.8), Verdict.REPRODUCED),
        (interval(0.9, 0.7, 1.1), Verdict.NOT_DECIDED),
        (interval(1.2, 1.1, 1.3), Verdict.NOT),
        (interval(0.7), Verdict.NOT_DECIDED),
    ],
)
def test_an_order_is_decided_when_its_interval_is_on_one_side(kept: KeptRows, verdict: Verdict) -> None:
    assert Bound(of=GAIN, most=1.0).judge(kept).verdict is verdict
    mirrored = interval(*(2 - float(value) for value, _ in kept.by_experiment["some"].values()))
    ends = mirrored.by_experiment["some"]
    if len(ends) == 3:
        mirrored = interval(*(float(ends["a", "", f"gain{end}"][0]) for end in ("", ", high", ", low")))
    assert Bound(of=GAIN, least=1.0).judge(mirrored).verdict is verdict


def test_the_sign_test_needs_nine_of_ten_seeds() -> None:
    assert sign_test(10, 10) == 2 / 1024
    assert sign_test(9, 10) == sign_test(1, 10) == 22 / 1024
    assert sign_test(5, 10) == 1.0
    found = [AheadUnderSeeds(of=GAIN, seeds=10).judge(interval(ahead)).verdict for ahead in (9, 8, 2, 1)]
    assert found == [Verdict.REPRODUCED, Verdict.NOT_DECIDED, Verdict.NOT_DECIDED, Verdict.NOT]


@pytest.mark.parametrize(
    ("within", "verdict"),
    [(19, Verdict.REPRODUCED), (18, Verdict.DIRECTION), (10, Verdict.DIRECTION), (9, Verdict.NOT)],
)
def test_of_many_points_nineteen_in_twenty_have_to_be_within(within: int, verdict: Verdict) -> None:
    kept = rows_of(
        *(("a", str(k), "gain", 1.0, str(k < within).lower()) for k in range(20)),
        ("a", "20", "gain", 1.0, ""),  # not checked
        ("b", "0", "gain", 1.0, "false"),  # another series
    )
    assert RowsWithin("some", ("a",), "gain").judge(kept).verdict is verdict


def test_of_several_numbers_the_worst_verdict_counts() -> None:
    good, bad = Bound(of=GAIN, most=1.0), Bound(of=GAIN, least=1.0)
    found = All((good, bad, good)).judge(interval(0.7, 0.6, 0.8))
    assert (found.verdict, found.ours) == (Verdict.NOT, "0.7; 0.7; 0.7")


def test_a_ratio_of_rows_by_seed_is_paired_and_has_an_interval() -> None:
    kept = rows_of(*(("a", str(k), "jct", 2.0 ** (k + 1), "") for k in range(2)),
                   *(("b", str(k), "jct", 1.0, "") for k in range(2)))  # fmt: skip
    found = Ratio(SeedRows("some", "a", "jct"), SeedRows("some", "b", "jct")).measured(kept)
    assert found.value == pytest.approx(8**0.5)
    assert found.low is not None and found.high is not None and found.low < found.value < found.high
    assert SeedRows("some", "a", "jct").measured(kept).value == 3.0
    assert Ratio(Row("some", "a", "jct", 1), Row("some", "b", "jct", 1)).measured(kept).value == 4.0


@pytest.mark.parametrize("shown", [True, False])
def test_a_cause_is_given_only_where_its_rows_show_it(shown: bool) -> None:
    statement: Statement = Bound(of=GAIN, most=0.5)
    cause = Cause("the goal is out of reach", Bound(of=GAIN, least=0.6 if shown else 0.9))
    found = judge(Claim(words="w", source="s", statement=statement, cause=cause), interval(0.7, 0.65, 0.75))
    assert found.verdict == ("not, with cause" if shown else "not")
    assert found.why == (cause.words if shown else "")


def test_a_claim_without_kept_rows_says_so() -> None:
    claim = Claim(words="w", source="s", statement=Bound(of=Row("other", "a", "gain"), most=1.0))
    assert judge(claim, interval(0.7)).verdict == Verdict.NO_ROWS


def test_a_row_that_is_missing_is_named_with_the_nearest_one() -> None:
    with pytest.raises(InvalidInput, match="gian") as error:
        Row("some", "a", "gian").measured(interval(0.7))
    assert "gain" in str(error.value)
    with pytest.raises(InvalidInput, match="no kept value"):
        GAIN.measured(rows_of(("a", "", "gain", "?", "")))


def test_the_command_prints_the_claims_of_an_experiment() -> None:
    found = CliRunner().invoke(app, ["reproduce", "metis", "--claims", "--json"])
    assert found.exit_code == 0
    assert {command for one in json.loads(found.stdout) for command in one["commands"]} == {"metis"}
    lines = CliRunner().invoke(app, ["reproduce", "--claims"])
    assert lines.exit_code == 0
    assert f"{len(CLAIMS)} claims: " in lines.stdout
    assert CliRunner().invoke(app, ["reproduce", "mettis", "--claims"]).exit_code == 2
