"""The verdict says which policy is best, at what price, and how certain that is."""

from __future__ import annotations

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.report.findings import findings
from eunomia.report.number_format import shown

HOUR, DAY = 3600.0, 86400.0


def test_two_policies_golden(a_report, a_run):
    fifo = a_run("fifo", [4 * HOUR, 4 * HOUR], summary={"rho_themis_max": 1.2})
    srtf = a_run("srtf", [HOUR, 5 * HOUR], summary={"rho_themis_max": 3.0, "preemptions": 7})
    assert findings(a_report(fifo, srtf)) == (
        "srtf has the lowest average completion time, 3.00 h; fifo takes 4.00 h, 33 % more.",
        "99th percentile of completion time: srtf is worst with 4.96 h, fifo is best with 4.00 h; "
        "the best average comes at this price.",
        "Worst-treated job, by its finish-time fairness ρ: srtf is worst with 3.00, fifo is best with 1.20; "
        "the best average comes at this price.",
        "Preemptions: srtf has 7, fifo the least with 0.",
        "One seed: differences below 1 % are called ties, and how much another seed would move them is not known.",
    )


def test_one_run_golden(a_report, a_run):
    assert findings(a_report(a_run("fifo", [HOUR, 3 * HOUR]))) == (
        "fifo finished 2 of 2 jobs. Average completion time 2.00 h, 99th percentile 2.98 h, "
        "average wait before the first start 60.0 s.",
        "Accelerators were busy 50.0 % of the time, jobs were preempted 0 times, "
        "and the worst finish-time fairness ρ was 1.50.",
        "One policy at one load: there is nothing to compare it with.",
    )


def test_a_difference_below_one_per_cent_is_a_tie(a_report, a_run):
    first, *_ = findings(a_report(a_run("fifo", [1000.0]), a_run("srtf", [995.0]), a_run("las", [3000.0])))
    assert first == (
        "srtf and fifo tie for the lowest average completion time (16.6 min); las has the highest, 50.0 min, "
        "3.0 times as long."
    )


@pytest.mark.parametrize(
    ("other", "tie"), [([1100.0, 1190.0, 1330.0], False), ([1500.0, 900.0, 1300.0], True)], ids=["steady", "noisy"]
)
def test_a_difference_within_what_seeds_vary_by_is_a_tie(a_report, a_run, other, tie):
    ours = [a_run("srtf", [jct], seed=seed) for seed, jct in enumerate([1000.0, 1100.0, 1200.0])]
    theirs = [a_run("fifo", [jct], seed=seed) for seed, jct in enumerate(other)]
    first, *_, last = findings(a_report(*ours, *theirs))
    assert ("tie" in first) == tie
    assert last.startswith("Averages over 3 seeds;")


def test_a_policy_that_finished_fewer_jobs_does_not_win(a_report, a_run):
    lazy = a_run("lazy", [60.0], summary={"jobs_submitted": 100, "jobs_finished": 1})
    diligent = [a_run(name, [jct] * 100) for name, jct in (("fifo", 500.0), ("srtf", 400.0))]
    warning, first, *_ = findings(a_report(lazy, *diligent))
    assert warning.startswith("lazy finished only 1 of 100 jobs")
    assert first.startswith("srtf has the lowest")


def test_jobs_that_failed_or_were_cancelled_are_counted_beside_the_averages(a_report, a_run):
    ends = {"jobs_submitted": 10, "jobs_finished": 7, "jobs_failed": 2, "jobs_cancelled": 1, "jobs_rejected": 0}
    fifo, las = (a_run(name, [jct] * 7, summary=ends) for name, jct in (("fifo", 100.0), ("las", 200.0)))
    assert findings(a_report(fifo))[0].startswith("fifo finished 7 of 10 jobs; 2 failed, 1 was cancelled. Average")
    assert findings(a_report(fifo, las))[0] == (
        "Averages are of finished jobs: fifo and las each finished 7 of 10 jobs; 2 failed, 1 was cancelled."
    )


SEARCHES = {"jobs_submitted": 45, "jobs_cancelled": 45, "jobs_cancelled_by_tuner": 45, "apps_submitted": 5}


def searched(a_run, label, took, **summary):
    summary = SEARCHES | {"apps_finished": 5, "apps_without_model": 0, "app_jct_mean_s": took} | summary
    return a_run(label, [], summary=summary)


def test_searches_are_compared_by_the_apps_that_finished_and_their_time(a_report, a_run):
    fifo, las = searched(a_run, "fifo", 2 * HOUR), searched(a_run, "las", HOUR, rho_themis_max=3.0)
    assert findings(a_report(fifo, las)) == (
        "Averages are of finished apps: fifo and las each finished 5 of 5 apps.",
        "las has the lowest average time of an app, 60.0 min; fifo takes 2.00 h, 2.0 times as long.",
        "Averages are of finished jobs: fifo and las each finished 0 of 45 jobs; 45 were ended by their searches.",
        "Worst-treated job, by its finish-time fairness ρ: las is worst with 3.00, fifo is best with 1.50; "
        "the best average comes at this price.",
        "One seed: differences below 1 % are called ties, and how much another seed would move them is not known.",
    )


def test_one_run_with_searches_describes_apps_first_and_no_average_of_nothing(a_report, a_run):
    lost = searched(a_run, "las", HOUR, apps_finished=2, apps_without_model=3)
    assert findings(a_report(lost))[:2] == (
        "las finished 2 of 5 apps; 3 searches ended without a model. Average time of an app, from its first job on: "
        "60.0 min.",
        "las finished 0 of 45 jobs; 45 were ended by their searches. Average wait before the first start 60.0 s.",
    )


def test_a_policy_whose_searches_found_nothing_does_not_win(a_report, a_run):
    lost = searched(a_run, "lost", 60.0, apps_finished=1, apps_without_model=4)
    warning, _, first, *_ = findings(a_report(lost, searched(a_run, "fifo", HOUR), searched(a_run, "las", 2 * HOUR)))
    assert warning.startswith("lost finished only 1 of 5 apps")
    assert first.startswith("fifo has the lowest average time of an app")


def test_a_setting_with_unfinished_trials_is_warned_of_and_left_out_of_the_tails(a_report, a_run):
    ends = {"jobs_submitted": 10, "jobs_cancelled": 6, "jobs_cancelled_by_tuner": 6}
    quick = searched(a_run, "quick", HOUR, **(ends | {"jobs_finished": 2, "rho_themis_max": 8.0, "preemptions": 9}))
    whole = [
        searched(a_run, name, took, **(ends | {"jobs_finished": 4, "rho_themis_max": rho, "preemptions": 1}))
        for name, took, rho in (("fifo", 3 * HOUR, 2.0), ("las", 2 * HOUR, 1.0))
    ]
    sentences = findings(a_report(quick, *whole))
    assert any(line.startswith("quick has the lowest average time of an app") for line in sentences)
    assert any(
        line.startswith("quick finished only 2 of 10 jobs and its searches ended 6, fewer than others in all: ")
        for line in sentences
    )
    assert (
        "Worst-treated job, by its finish-time fairness ρ: fifo is worst with 2.00, las is best with 1.00." in sentences
    )
    assert not any(line.startswith("Preemptions") for line in sentences)


def test_trials_that_their_search_cancelled_count_as_finished(a_report, a_run):
    few = a_run("few", [60.0], summary={"jobs_submitted": 10, "jobs_cancelled": 9, "jobs_cancelled_by_tuner": 9})
    sentences = findings(a_report(few, a_run("fifo", [120.0] * 10)))
    assert not any("so it is not compared" in sentence for sentence in sentences)
    assert "few has the lowest average completion time, 60.0 s; fifo takes 2.00 min, 2.0 times as long." in sentences


def test_each_of_several_loads_has_a_winner_and_the_highest_is_compared_in_full(a_report, a_run):
    runs = [a_run("fifo", [100.0], load=0.5), a_run("srtf", [300.0], load=0.5)]
    runs += [a_run("fifo", [900.0], load=2), a_run("srtf", [600.0], load=2)]
    assert findings(a_report(*runs))[:2] == (
        "Lowest average completion time: fifo at load 0.5 (1.67 min); srtf at load 2 (10.0 min).",
        "At load 2, srtf has the lowest average completion time, 10.0 min; fifo takes 15.0 min, 50 % more.",
    )


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(12.34, "s", "12.3 s"), (5400, "s", "90.0 min"), (1.5 * DAY, "s", "36.0 h"), (3 * DAY, "s", "3.00 d"),
     (0.0, "s", "0 s"), (float("nan"), "s", "–"), (None, "usd", "–"), (0.781, "share", "78.1 %"),
     (12340, "count", "12,340"), (1234.5, "usd", "$1,234"), (0.0456, "ratio", "0.0456")],
)  # fmt: skip
def test_numbers_read_with_three_digits_and_a_unit(value, unit, text):
    assert shown(value, unit) == text


def test_columns_of_wrong_shapes_are_refused_together(a_run):
    with pytest.raises(InvalidInput) as refused:
        a_run("fifo", [1.0, 2.0], tenant=("only one",), load=0.0, utilization_at_s=[0.0, 2.0, 1.0])
    assert {problem.column for problem in refused.value.problems} == {"tenant", "load", "utilization_at_s"}


def test_a_report_of_nothing_is_refused(a_report):
    with pytest.raises(InvalidInput, match="has at least one run"):
        a_report()
