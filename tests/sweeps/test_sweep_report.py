"""The page about a sweep: what it says in words, which differences it calls noise, and that it opens anywhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from eunomia.report.sweep.page import page
from eunomia.verdict.sweep_content import BaselineDifference, Group, Interval, SweepContent, SweepSetting, Verdict
from eunomia.verdict.sweep_findings import details, findings

HOSTILE = "<script>alert(1)</script>"


def interval(mean: float, half: float | None = None) -> Interval:
    if half is None:
        return Interval(mean=mean, low=None, high=None, seeds=1)
    return Interval(mean=mean, low=mean - half, high=mean + half, seeds=3)


def setting(
    name: str, place: float, hours: float, change: tuple[float, float | None, Verdict] | None = None
) -> SweepSetting:
    """Return a setting that takes so many hours, and changes that by a part of the baseline."""
    half = 0.5 if change is None or change[1] is not None else None
    versus = {}
    if change is not None:
        part, width, said = change
        relative = interval(part, width)
        versus["jct_mean_s"] = BaselineDifference(
            change=interval(3600 * hours * part, width), relative=relative, verdict=said
        )
    return SweepSetting(name=name, place=place, averages={"jct_mean_s": interval(3600 * hours, half)}, versus=versus)


def content(*settings: SweepSetting, failures: tuple[tuple[str, str], ...] = ()) -> SweepContent:
    return SweepContent(
        title="Tiny",
        subtitle="six runs",
        compared=tuple(dict.fromkeys(each.name for each in settings)),
        baseline="fifo",
        along="load",
        places=tuple(sorted({each.place for each in settings})),
        groups=(Group(name="", settings=settings),),
        confidence=0.95,
        failures=failures,
        notes=(),
        sweep_toml='scenario = "tiny.toml"\n',
    )


TWO = content(
    setting("fifo", 1.0, 2.0),
    setting("las", 1.0, 1.5, (-0.25, 0.05, "better")),
    setting("fifo", 2.0, 4.0),
    setting("las", 2.0, 4.1, (0.02, 0.3, "noise")),
)


def test_the_verdict_says_what_to_do_where_it_is_certain() -> None:
    assert findings(TWO).answer == (
        "Use las: jobs complete sooner on average than under fifo at load 1 (−25 %, −30 % to −20 %). "
        "Not for certain at load 2. Nothing else here is worse for certain."
    )
    assert findings(TWO).chosen == "las"


def test_where_no_policy_is_better_for_certain_the_baseline_stays() -> None:
    noisy = content(setting("fifo", 1.0, 2.0), setting("las", 1.0, 1.5, (-0.25, 0.5, "noise")))
    assert findings(noisy).answer == "Keep fifo: no other run completes jobs sooner, by more than 1 %, for certain."


def test_where_the_recommended_run_is_worse_is_named_with_its_place() -> None:
    three = [setting("las", place, 1.5, (-0.25, 0.05, "better")) for place in (1.0, 2.0)]
    later = setting("las", 3.0, 3.0, (0.5, 0.05, "worse"))
    answer = findings(content(*(setting("fifo", place, 2.0) for place in (1.0, 2.0, 3.0)), *three, later)).answer
    assert "at load 1 (−25 %, −30 % to −20 %), 2 (−25 %, −30 % to −20 %). Later at load 3 (+50 %, +45 % to +55 %)." in (
        answer
    )


def test_a_run_that_is_better_at_one_place_and_worse_at_two_is_not_called_no_better() -> None:
    las = [setting("las", 1.0, 1.5, (-0.25, 0.05, "better"))]
    las += [setting("las", place, 3.0, (0.5, 0.05, "worse")) for place in (2.0, 3.0)]
    found = findings(content(*(setting("fifo", place, 2.0) for place in (1.0, 2.0, 3.0)), *las))
    assert found.answer.endswith("by more than 1 %, for certain at more places than later.")


def test_nothing_is_called_not_worse_that_the_table_shows_as_worse() -> None:
    las = setting("las", 1.0, 1.5, (-0.25, 0.05, "better"))
    stops = BaselineDifference(change=interval(10.0, 1.0), relative=None, verdict="worse")
    las = replace(las, versus={**las.versus, "preemptions": stops})
    answer = findings(content(setting("fifo", 1.0, 2.0), las)).answer
    assert answer.endswith("Worse for certain: preemptions.")


def test_one_run_below_one_per_cent_is_no_reason_to_change() -> None:
    fifo = SweepSetting(name="fifo", place=1.0, averages={"jct_mean_s": interval(7200.0)}, versus={})
    found = findings(content(fifo, setting("las", 1.0, 1.99, (-0.005, None, "unknown"))))
    assert found.answer == "On these jobs keep fifo: no other run completes them sooner by more than 1 %."


def test_a_run_that_knows_durations_is_marked_and_the_soonest_of_the_others_is_named() -> None:
    srtf = replace(setting("srtf", 1.0, 1.0, (-0.5, 0.05, "better")), knows_durations=True)
    las = setting("las", 1.0, 1.5, (-0.25, 0.05, "better"))
    report = content(setting("fifo", 1.0, 2.0), srtf, las)
    assert findings(report).answer.endswith(
        "srtf knows durations, which a real cluster does not: of the runs that do not know them the lowest average "
        "completion time is that of las (90.0 min)."
    )
    assert "srtf <small>knows durations</small>" in page(report)


def test_the_schedule_as_it_was_is_no_baseline_of_policies() -> None:
    past = replace(setting("fifo", 1.0, 2.0), is_history=True)
    found = findings(content(past, setting("las", 1.0, 1.5, (-0.25, 0.05, "better"))))
    assert found.chosen == ""
    assert "no policy is credited with a difference to it" in found.answer


def test_the_price_of_the_recommendation_is_named() -> None:
    las = setting("las", 1.0, 1.5, (-0.25, 0.05, "better"))
    cost = BaselineDifference(change=interval(10.0, 1.0), relative=interval(0.1, 0.01), verdict="worse")
    las = replace(las, versus={**las.versus, "cost_usd": cost})
    assert "The price: cost (+10 %, +9.0 % to +11 %)." in findings(content(setting("fifo", 1.0, 2.0), las)).answer


def test_the_details_separate_real_differences_from_noise() -> None:
    assert details(TWO)[0] == (
        "las against fifo, average completion time: better at load 1 (−25 %, −30 % to −20 %); "
        "a difference that is noise at load 2 (+2.0 %, −28 % to +32 %)."
    )


def test_every_difference_of_the_table_is_counted() -> None:
    """Two places, two measures, one of them (number of jobs) without a better end."""
    settings = []
    for each in TWO.groups[0].settings:
        more = dict.fromkeys(("jct_p50_s", "jobs_finished"), each.versus["jct_mean_s"]) if each.versus else {}
        settings.append(replace(each, versus={**each.versus, **more}))
    last = findings(content(*settings)).more[-1]
    assert last == "4 differences were tested: if there were none, about 0.2 would still look significant."


def test_one_seed_holds_for_these_jobs_and_is_not_called_noise() -> None:
    fifo = SweepSetting(name="fifo", place=1.0, averages={"jct_mean_s": interval(7200.0)}, versus={})
    alone = content(fifo, setting("las", 1.0, 1.5, (-0.25, None, "unknown")))
    assert (
        findings(alone).answer
        == "On these jobs use las: the average completion time changes by −25 %. Nothing else here is worse for it."
    )
    assert details(alone)[0] == "las against fifo, average completion time: on these jobs (−25 %)."
    assert findings(alone).certainty.startswith("This holds for these jobs: there is one seed")


def test_seeds_that_change_nothing_count_as_one_run() -> None:
    one = SweepSetting(name="fifo", place=1.0, averages={"jct_mean_s": interval(7200.0)}, versus={}, alike=3)
    certain = findings(content(one, replace(one, name="las"))).certainty
    assert certain.startswith("Nothing is random: the 3 seeds gave identical runs, and count as one. This holds for")
    assert "generate jobs" in certain


def test_a_policy_that_draws_nothing_beside_one_that_does_is_named() -> None:
    fifo = SweepSetting(name="fifo", place=1.0, averages={"jct_mean_s": interval(7200.0)}, versus={}, alike=3)
    found = findings(content(fifo, setting("lottery", 1.0, 1.5, (-0.25, 0.05, "better"))))
    assert "Nothing is random under fifo: the 3 seeds gave identical runs, and count as one." in found.more
    assert found.certainty.startswith("Averages over 1 to 3 seeds")


def test_failed_runs_are_listed_first() -> None:
    report = content(setting("fifo", 1.0, 2.0), failures=(("policy las, seed 1", "RuntimeError: no"),))
    assert findings(report).sentences[0].startswith("1 run failed and is in no figure")
    assert (
        findings(content(setting("fifo", 1.0, 2.0), failures=(("a", "b"),) * 2))
        .warnings[0]
        .startswith("2 runs failed and are")
    )
    assert "policy las, seed 1: RuntimeError: no" in page(report)


def test_the_page_opens_anywhere_and_shows_names_as_words() -> None:
    text = page(content(setting("fifo", 1.0, 2.0), setting(HOSTILE, 1.0, 1.5, (-0.25, 0.05, "better"))))
    assert HOSTILE not in text
    assert not re.search(r"(?:https?:)?//[\w.]+\.\w", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
    assert "default-src 'none'" in text


def test_curves_run_along_the_load_with_their_bands_and_the_numbers_are_in_the_page() -> None:
    block = re.search(r'id="eunomia-data">(.*?)</script>', page(TWO), re.DOTALL)
    assert block
    numbers = json.loads(block[1])
    forest, chart = numbers["charts"]
    (fifo, las) = chart["panels"][0]["series"]
    at_1, at_2 = forest["panels"][0]["series"]
    assert (at_1["name"], at_1["y"], at_1["low"], at_1["tones"]) == ("load 1", [-0.25], [-0.3], ["better"])
    assert (at_2["name"], at_2["tones"], forest["categories"]) == ("load 2", ["noise"], ["las"])
    assert (chart["kind"], fifo["x"], fifo["y"]) == ("line", [1, 2], [7200, 14400])
    assert (las["low"], las["high"]) == ([5399.5, 14759.5], [5400.5, 14760.5])
    difference = numbers["groups"][0]["settings"][1]["versus"]["jct_mean_s"]
    assert (difference["verdict"], difference["relative"]["mean"]) == ("better", -0.25)
