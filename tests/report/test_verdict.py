"""The verdict says what to do, at whose cost, and how certain that is."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.verdict.findings import findings
from eunomia.verdict.further_notes import worst_at_own_measure
from eunomia.verdict.judgement import PART, blocks, quantiles_of_resamples
from eunomia.verdict.number_format import shown
from eunomia.verdict.ranking import COLUMNS, signed
from eunomia.verdict.run_figures import TenantFigures
from eunomia.verdict.seed_groups import seed_groups

HOUR, DAY = 3600.0, 86400.0


def test_two_policies_golden(a_report, a_run):
    fifo = a_run("fifo", [4 * HOUR, 4 * HOUR], summary={"rho_themis_max": 1.2})
    srtf = a_run("srtf", [HOUR, 5 * HOUR], summary={"rho_themis_max": 3.0, "preemptions": 7})
    found = findings(a_report(fifo, srtf))
    assert found.sentences == (
        "Use srtf: jobs complete after 3.00 h on average, 25 % sooner than under fifo, the alternative (4.00 h). "
        "The price: its slowest jobs take 4.96 h (99th percentile), 4.00 h under fifo; its worst-treated job has ρ "
        "3.00, fifo keeps it to 1.20. Also worse under it: preemptions.",
        "This holds for these 2 jobs. How far other jobs would change it is not known: there is one seed, and the "
        "trace is too short to resample its weeks.",
    )
    assert [(row.measure, row.chosen, row.best_other, row.difference, row.worse) for row in found.rows] == [
        ("average completion time", "3.00 h", "4.00 h (fifo)", "−25 %", False),
        ("99th percentile of completion time", "4.96 h", "4.00 h (fifo)", "+24 %", True),
        ("worst finish-time fairness ρ", "3.00", "1.20 (fifo)", "+150 %", True),
        ("preemptions", "7", "0 (fifo)", "more", True),
    ]


def test_what_is_worse_without_being_a_price_is_named(a_report, a_run):
    waits = [
        a_run("las", [HOUR], summary={"queueing_mean_s": 600.0}),
        a_run("fifo", [2 * HOUR], summary={"queueing_mean_s": 0.0}),
    ]
    assert findings(a_report(*waits)).answer.endswith("Worse under it: average wait to the first start.")


def test_one_run_golden(a_report, a_run):
    assert findings(a_report(a_run("fifo", [HOUR, 3 * HOUR], offered_load=0.4))).sentences == (
        "fifo finished 2 of 2 jobs. Average completion time 2.00 h, 99th percentile 2.98 h, "
        "average wait to the first start 60.0 s.",
        "Accelerators were busy 50.0 % of the time (the jobs ask for 40.0 % of them while they arrive), jobs were "
        "preempted 0 times, and the worst finish-time fairness ρ was 1.50.",
        "One policy at one load: there is nothing to compare it with.",
    )


def test_a_difference_below_one_per_cent_is_a_tie(a_report, a_run):
    found = findings(a_report(a_run("fifo", [1000.0]), a_run("srtf", [995.0]), a_run("las", [3000.0])))
    assert found.answer.startswith(
        "Use srtf: jobs complete after 16.6 min on average, a tie with fifo, 67 % sooner than under las, the "
        "alternative (50.0 min)."
    )
    alone = findings(a_report(a_run("fifo", [1000.0]), a_run("srtf", [995.0])))
    assert alone.answer.startswith("It makes no difference to the average completion time: srtf and fifo tie")
    assert alone.chosen == ""


@pytest.mark.parametrize(
    ("other", "tie"), [([1100.0, 1190.0, 1330.0], False), ([1500.0, 900.0, 1300.0], True)], ids=["steady", "noisy"]
)
def test_a_difference_within_what_seeds_vary_by_is_a_tie(a_report, a_run, other, tie):
    ours = [a_run("srtf", [jct], seed=seed) for seed, jct in enumerate([1000.0, 1100.0, 1200.0])]
    theirs = [a_run("fifo", [jct], seed=seed) for seed, jct in enumerate(other)]
    found = findings(a_report(*ours, *theirs))
    assert ("no difference" in found.answer) == tie
    assert "over 3 seeds" in found.certainty
    assert ("Certain at 95 %" in found.certainty) != tie


def weekly(a_run, label, jct_by_week):
    """Return one run on a trace of many weeks, ten jobs in each."""
    submitted = np.repeat(np.arange(len(jct_by_week)) * 7 * DAY, 10)
    return a_run(label, np.repeat(jct_by_week, 10), submitted_s=submitted)


def test_on_one_trace_weeks_are_resampled_and_a_difference_that_holds_in_every_week_is_certain(a_report, a_run):
    weeks = np.array([900.0, 1000.0, 1100.0, 1300.0, 800.0, 1000.0, 950.0, 1200.0])
    found = findings(a_report(weekly(a_run, "fifo", weeks), weekly(a_run, "srtf", 0.7 * weeks)))
    assert found.answer.startswith("Use srtf")
    assert found.certainty == "Certain at 95 %, over 8 resampled weeks: the difference to fifo is −30 % to −30 %."


def test_on_one_trace_a_difference_that_one_week_makes_is_a_tie(a_report, a_run):
    weeks = np.full(8, 1000.0)
    other = weeks.copy()
    other[3] = 3000.0
    found = findings(a_report(weekly(a_run, "fifo", weeks), weekly(a_run, "srtf", other)))
    assert found.answer.startswith("It makes no difference to the average completion time: fifo and srtf tie")
    assert "other weeks might reverse it" in found.certainty


def test_seeds_that_draw_nothing_are_one_run_and_prove_nothing(a_report, a_run):
    runs = [
        a_run(label, jct, seed=seed)
        for seed in range(3)
        for label, jct in (("fifo", [90.0, 110.0]), ("srtf", [50.0] * 2))
    ]
    found = findings(a_report(*runs))
    assert found.certainty.startswith(
        "This holds for these 2 jobs. How far other jobs would change it is not known: the 3 seeds draw nothing and "
        "count as one"
    )
    assert not any("were judged" in line for line in found.more)


def test_a_trace_of_days_is_resampled_by_days_and_a_shorter_one_not_at_all():
    assert blocks(np.arange(10) * DAY).unit == "day"
    assert blocks(np.arange(60) * DAY).unit == "week"
    assert blocks(np.arange(5) * DAY) is None
    assert blocks(None) is None


@pytest.mark.parametrize("jobs", [0, 1, 700, PART, 3 * PART + 5])
@pytest.mark.parametrize("quantile", [0.5, 0.99])
def test_a_quantile_of_a_resample_is_that_of_its_blocks_written_out(jobs, quantile):
    rng = np.random.default_rng(jobs)
    values, of = np.sort(rng.integers(0, 50, jobs).astype(float)), rng.integers(0, 9, jobs)
    times = np.concatenate([rng.integers(0, 4, (30, 9)), np.zeros((1, 9), dtype=np.int64)])
    found = quantiles_of_resamples(values, of, times, quantile)
    for row, each in zip(times, found, strict=True):
        written_out = np.repeat(values, row[of])
        if written_out.size:
            assert each == written_out[int(np.ceil(quantile * written_out.size)) - 1]
        else:
            assert np.isnan(each)


def test_every_judged_difference_is_counted(a_report, a_run):
    """Of the measures of a run here, seven have a better end; each compares two policies with the first."""
    runs = [
        a_run(label, [jct + 10 * seed], seed=seed)
        for seed in range(3)
        for label, jct in (("a", 100.0), ("b", 200.0), ("c", 300.0))
    ]
    report = a_report(*runs)
    named = [column.name for column in COLUMNS if column.better and report.runs[0].summary.get(column.name) is not None]
    assert f"{2 * len(named)} differences were judged at 95 %" in findings(report).more[-1]


def owed(*parts):
    """Return tenants that were owed 100 hours each and got these parts."""
    zero, n = np.zeros((len(parts), len(parts))), len(parts)
    hours = np.full(n, 100 * HOUR)
    return TenantFigures(
        names=tuple("abcdef"[:n]), quota=np.ones(n), jobs=np.ones(n, dtype=int), total_wait_s=np.zeros(n),
        deserved=hours, received=hours * np.array(parts), lent=zero, paid=zero, at_s=np.array([HOUR]),
        ltgf=np.ones((n, 1)),
    )  # fmt: skip


def test_tenants_that_pay_for_the_recommendation_are_named(a_report, a_run):
    quick = a_run("quick", [HOUR], tenants=owed(0.57, 1.4))
    found = findings(a_report(quick, a_run("fair", [2 * HOUR], tenants=owed(0.97, 1.0))))
    assert "The price: tenant a gets 57 % of what it is owed (under fair none gets less than 97 %)" in found.answer


def test_of_tied_policies_the_one_that_treats_tenants_best_is_recommended(a_report, a_run):
    quick = a_run("quick", [HOUR], tenants=owed(0.57, 1.4))
    fair = a_run("fair", [HOUR + 10], tenants=owed(0.97, 1.0))
    found = findings(a_report(quick, fair, a_run("slow", [3 * HOUR], tenants=owed(1.0, 1.0))))
    assert found.chosen == "fair"
    assert "a tie with quick" in found.answer


def test_one_run_warns_of_tenants_that_get_too_little(a_report, a_run):
    found = findings(a_report(a_run("fifo", [HOUR], tenants=owed(0.5, 0.8, 1.0))))
    assert found.warnings == ("Some tenants do not get what they are owed: a gets 50 % of what it is owed, b 80 %.",)


def test_a_cluster_too_idle_to_tell_policies_apart_comes_first_with_the_load_at_which_it_would_not_be(a_report, a_run):
    runs = [a_run(label, [HOUR], offered_load=0.11, queueing_s=np.zeros(1), summary={"queueing_mean_s": 0.0})
            for label in ("fifo", "srtf")]  # fmt: skip
    first, second, *_ = findings(a_report(*runs)).sentences
    assert first.startswith("The cluster is too idle to tell policies apart: the jobs ask for 11.0 % of it")
    assert "(--load 8.2)" in first
    assert second.startswith("It makes no difference")


def test_policies_that_differ_are_not_called_too_idle_to_differ(a_report, a_run):
    runs = [a_run(label, [jct], offered_load=0.11, summary={"queueing_mean_s": 38.3})
            for label, jct in (("fifo", 4000.0), ("srtf", 3000.0))]  # fmt: skip
    found = findings(a_report(*runs))
    assert not found.warnings
    assert found.answer.startswith("Use srtf")


def test_where_jobs_of_an_idle_cluster_wait_a_little_the_warning_says_how_long(a_report, a_run):
    runs = [a_run(label, [4000.0], offered_load=0.11, summary={"queueing_mean_s": wait})
            for label, wait in (("fifo", 38.3), ("srtf", 0.0))]  # fmt: skip
    assert "and wait 38.3 s at most on average to their first start." in findings(a_report(*runs)).warnings[0]


def test_a_policy_that_knows_durations_is_marked_and_the_best_that_does_not_is_named(a_report, a_run):
    oracle = a_run("srtf", [HOUR], knows_durations=True)
    found = findings(a_report(oracle, a_run("las", [2 * HOUR]), a_run("fifo", [4 * HOUR])))
    assert found.answer.endswith(
        "It knows durations, which a real cluster does not: of the policies that do not know them use las: jobs "
        "complete after 2.00 h on average, 50 % sooner than under fifo, the alternative (4.00 h)."
    )
    assert (found.chosen, found.without_durations) == ("srtf", "las")
    assert "srtf knows durations, which a real cluster does not." in found.more
    alone = findings(a_report(oracle, a_run("themis", [2 * HOUR], knows_durations=True)))
    assert "and so do all policies that are compared here" in alone.answer


def test_of_policies_that_tie_one_that_does_not_know_durations_is_recommended(a_report, a_run):
    oracle = a_run("srtf", [HOUR], knows_durations=True)
    assert findings(a_report(oracle, a_run("las", [HOUR + 10]), a_run("fifo", [4 * HOUR]))).chosen == "las"


def test_the_recommended_policy_ties_with_no_other_than_those_it_is_said_to_tie_with(a_report, a_run):
    """fair is within 1 % of quick and of slow, which are not within 1 % of each other."""
    runs = [a_run(label, [jct], tenants=owed(part, 1.0)) for label, jct, part in
            (("quick", 1000.0, 0.5), ("fair", 1008.0, 1.0), ("slow", 1015.0, 0.5))]  # fmt: skip
    found = findings(a_report(*runs))
    assert found.chosen == "quick"
    assert "a tie with fair, 1.5 % sooner than under slow" in found.answer


def test_averages_that_differ_against_the_ratios_of_each_seed_are_a_tie(a_report, a_run):
    """Under five of six seeds a takes half as long as b, under the sixth so much longer that its average is larger."""
    ours = [a_run("a", [jct], seed=seed) for seed, jct in enumerate([100.0] * 5 + [9000.0])]
    theirs = [a_run("b", [jct], seed=seed) for seed, jct in enumerate([200.0] * 5 + [7000.0])]
    found = findings(a_report(*ours, *theirs))
    assert "no difference" in found.answer
    assert "the averages differ in one direction" in found.certainty


def test_the_history_is_no_rival_and_the_wait_that_no_policy_explains_is_credited_to_none(a_report, a_run):
    past = a_run("as_it_was", [2.7 * HOUR], is_history=True, summary={"queueing_mean_s": 600.0})
    fifo = a_run("fifo", [2.53 * HOUR], summary={"queueing_mean_s": 0.0})
    found = findings(a_report(past, fifo))
    assert found.warnings == (
        "As it was, jobs completed after 2.70 h and waited 10.0 min to the first start on average. The simulation "
        "explains none of that, as jobs wait under no policy here: it has causes that are not simulated, and no policy "
        "is credited with it.",
    )
    assert found.answer.startswith("fifo finished 1 of 1 jobs.")
    las = a_run("las", [HOUR], summary={"queueing_mean_s": 150.0})
    assert (
        "explains at most 2.50 min of that, 25.0 %: so long they wait under las, the policy here under which they wait "
        "longest. The rest has causes"
    ) in findings(a_report(past, fifo, las)).warnings[0]
    las = a_run("las", [HOUR], summary={"queueing_mean_s": 700.0})
    found = findings(a_report(past, fifo, las))
    assert (
        "A queue can explain that: under las, the policy here under which they wait longest, it is 11.7 min."
        in (found.warnings[0])
    )
    assert found.answer.startswith("Use las: jobs complete after 60.0 min on average, 60 % sooner than under fifo, the")


def test_what_is_below_ninety_per_cent_is_not_rounded_up_to_it(a_report, a_run):
    found = findings(a_report(a_run("fifo", [HOUR], tenants=owed(0.8999, 1.0))))
    assert found.warnings == ("Some tenants do not get what they are owed: a gets 89 % of what it is owed.",)


def test_apps_have_no_interval_and_the_reason_is_not_the_length_of_the_trace(a_report, a_run):
    found = findings(a_report(searched(a_run, "fifo", 2 * HOUR), searched(a_run, "las", HOUR)))
    assert found.certainty.startswith("This holds for these 45 jobs.")
    assert found.certainty.endswith("there is one seed, and it is no average of single jobs, which could be resampled.")


@pytest.mark.parametrize("change", [0.0003, -0.0003, 0.2, 0.0])
def test_a_change_that_is_not_zero_is_not_shown_as_zero(change):
    assert (signed(change).strip("+−0. %") == "") == (change == 0)


def test_policies_that_made_the_same_run_are_named_together(a_report, a_run):
    found = findings(a_report(*(a_run(label, [HOUR]) for label in ("edf", "by_weight")), a_run("fifo", [2 * HOUR])))
    assert "edf and by_weight made the very same run: nothing in these jobs tells them apart." in (found.more)


def test_a_policy_that_is_worst_at_its_own_measure_is_named(a_report, a_run):
    def run(label, rho, own_measure=""):
        return a_run(label, [HOUR], summary={"rho_themis_max": rho}, own_measure=own_measure)

    others = run("fifo", 2.0), run("las", 1.25)
    (sentence,) = worst_at_own_measure(seed_groups(a_report(run("themis", 3.0, "rho_themis_max"), *others)))
    assert sentence == (
        "themis is the worst of 3 at what it is meant to keep small, the worst finish-time fairness ρ: 3.00, "
        "1.25 under las."
    )
    assert not worst_at_own_measure(seed_groups(a_report(run("themis", 2.0, "rho_themis_max"), *others)))  # a tie


def test_a_policy_that_finished_fewer_jobs_does_not_win(a_report, a_run):
    lazy = a_run("lazy", [60.0], summary={"jobs_submitted": 100, "jobs_finished": 1})
    diligent = [a_run(name, [jct] * 100) for name, jct in (("fifo", 500.0), ("srtf", 400.0))]
    found = findings(a_report(lazy, *diligent))
    assert found.warnings[0].startswith("lazy finished only 1 of 100 jobs")
    assert found.chosen == "srtf"


def test_jobs_that_failed_or_were_cancelled_are_counted_beside_the_averages(a_report, a_run):
    ends = {"jobs_submitted": 10, "jobs_finished": 7, "jobs_failed": 2, "jobs_cancelled": 1, "jobs_rejected": 0}
    fifo, las = (a_run(name, [jct] * 7, summary=ends) for name, jct in (("fifo", 100.0), ("las", 200.0)))
    assert findings(a_report(fifo)).answer.startswith("fifo finished 7 of 10 jobs; 2 failed, 1 was cancelled. Average")
    assert (
        "Averages are of finished jobs: fifo and las each finished 7 of 10 jobs; 2 failed, 1 was cancelled."
        in findings(a_report(fifo, las)).more
    )


SEARCHES = {"jobs_submitted": 45, "jobs_cancelled": 45, "jobs_cancelled_by_tuner": 45, "apps_submitted": 5}


def searched(a_run, label, took, **summary):
    summary = SEARCHES | {"apps_finished": 5, "apps_without_model": 0, "app_jct_mean_s": took} | summary
    return a_run(label, [], summary=summary)


def test_searches_are_compared_by_the_apps_that_finished_and_their_time(a_report, a_run):
    fifo, las = searched(a_run, "fifo", 2 * HOUR), searched(a_run, "las", HOUR, rho_themis_max=3.0)
    found = findings(a_report(fifo, las))
    assert found.answer == (
        "Use las: apps take 60.0 min on average, 50 % sooner than under fifo, the alternative (2.00 h). "
        "The price: its worst-treated job has ρ 3.00, fifo keeps it to 1.50."
    )
    assert found.more == (
        "Averages are of finished apps: fifo and las each finished 5 of 5 apps.",
        "Averages are of finished jobs: fifo and las each finished 0 of 45 jobs; 45 were ended by their searches.",
    )


def test_one_run_with_searches_describes_apps_first_and_no_average_of_nothing(a_report, a_run):
    lost = searched(a_run, "las", HOUR, apps_finished=2, apps_without_model=3)
    assert findings(a_report(lost)).sentences[:2] == (
        "las finished 2 of 5 apps; 3 searches ended without a model. Average time of an app, from its first job on: "
        "60.0 min.",
        "las finished 0 of 45 jobs; 45 were ended by their searches. Average wait to the first start 60.0 s.",
    )


def test_a_policy_whose_searches_found_nothing_does_not_win(a_report, a_run):
    lost = searched(a_run, "lost", 60.0, apps_finished=1, apps_without_model=4)
    found = findings(a_report(lost, searched(a_run, "fifo", HOUR), searched(a_run, "las", 2 * HOUR)))
    assert found.warnings[0].startswith("lost finished only 1 of 5 apps")
    assert found.chosen == "fifo"


def test_a_setting_with_unfinished_trials_is_warned_of_and_left_out_of_the_measures_of_jobs(a_report, a_run):
    ends = {"jobs_submitted": 10, "jobs_cancelled": 6, "jobs_cancelled_by_tuner": 6}
    quick = searched(a_run, "quick", HOUR, **(ends | {"jobs_finished": 2, "rho_themis_max": 8.0, "preemptions": 9}))
    whole = [
        searched(a_run, name, took, **(ends | {"jobs_finished": 4, "rho_themis_max": rho, "preemptions": 1}))
        for name, took, rho in (("fifo", 3 * HOUR, 2.0), ("las", 2 * HOUR, 1.0))
    ]
    found = findings(a_report(quick, *whole))
    assert found.chosen == "quick"
    assert found.warnings[0].startswith(
        "quick finished only 2 of 10 jobs and its searches ended 6, fewer than others in all: "
    )
    assert [row.measure for row in found.rows] == ["average time of an app"]


def test_trials_that_their_search_cancelled_count_as_finished(a_report, a_run):
    few = a_run("few", [60.0], summary={"jobs_submitted": 10, "jobs_cancelled": 9, "jobs_cancelled_by_tuner": 9})
    found = findings(a_report(few, a_run("fifo", [120.0] * 10)))
    assert not found.warnings
    assert found.answer.startswith("Use few: jobs complete after 60.0 s on average, 50 % sooner")


def test_each_of_several_loads_has_a_winner_and_the_highest_is_compared_in_full(a_report, a_run):
    runs = [a_run("fifo", [100.0], load=0.5), a_run("srtf", [300.0], load=0.5)]
    runs += [a_run("fifo", [900.0], load=2), a_run("srtf", [600.0], load=2)]
    found = findings(a_report(*runs))
    assert found.answer.startswith("At load 2 use srtf: jobs complete after 10.0 min on average, 33 % sooner")
    assert found.more[0] == "Lowest average completion time: fifo at load 0.5 (1.67 min); srtf at load 2 (10.0 min)."


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
