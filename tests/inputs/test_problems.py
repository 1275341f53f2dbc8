"""Problems of an input: of equal ones one line, and none hidden by many of another kind."""

from __future__ import annotations

import pytest

from eunomia.inputs.problems import SHOWN, InvalidInput, Problem, Problems, Together


def wrong_widths(count: int) -> Problems:
    found = Problems("jobs.csv")
    for row in range(2, 2 + count):
        found.add("must be at least 1", "give a number", row=row, column="scale_factor", value="-1")
    return found


def raised(problems: Problems) -> InvalidInput:
    with pytest.raises(InvalidInput) as error:
        problems.raise_if_any()
    return error.value


def test_equal_problems_are_one_line_with_the_rows_and_their_number() -> None:
    assert str(raised(wrong_widths(3))) == (
        "jobs.csv:2: scale_factor is '-1': must be at least 1; give a number (also in rows 3, 4)"
    )
    assert str(raised(wrong_widths(140))) == (
        "jobs.csv:2: scale_factor is '-1': must be at least 1; give a number (also in rows 3, 4, 5, 6, 7 and 134 more)"
    )


def test_problems_that_name_their_job_are_of_one_kind() -> None:
    found = Problems("the table")
    for name in "abc":
        found.add(f"job type '{name}' has no speed on v100", "measure it")
    assert str(raised(found)) == "the table: job type 'a' has no speed on v100; measure it (also for 'b', 'c')"


def test_many_problems_of_one_kind_hide_no_other() -> None:
    found = wrong_widths(1000)
    found.add("must be a number", "give one", row=2000, column="submitted_s", value="x")
    error = raised(found)
    assert (error.count, len(error.problems)) == (1001, SHOWN)
    assert [problem.column for problem in error.problems].count("submitted_s") == 1
    assert len(str(error).splitlines()) == 3


def test_of_problems_that_all_differ_the_first_are_shown_in_their_order() -> None:
    found = Problems("x")
    for number in range(3 * SHOWN):
        found.add(f"rule {number}", "fix")
    assert [problem.rule for problem in raised(found).problems] == [f"rule {number}" for number in range(SHOWN)]


def test_problems_of_several_checks_come_in_one_error() -> None:
    checks = Together()
    for option in ("--load", "--seed"):
        with checks.check():
            raise InvalidInput([Problem(file="command line", column=option, rule="is wrong", fix="fix it")])
    with checks.check():
        pass
    with pytest.raises(InvalidInput) as error:
        checks.raise_if_any()
    assert [problem.column for problem in error.value.problems] == ["--load", "--seed"]
    Together().raise_if_any()
