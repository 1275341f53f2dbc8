"""The page about a sweep: what it says in words, which differences it calls noise, and that it opens anywhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from eunomia.report.sweep.content import BaselineDifference, Group, Interval, SweepContent, SweepSetting, Verdict
from eunomia.report.sweep.findings import findings
from eunomia.report.sweep.page import page

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


def test_the_verdict_separates_real_differences_from_noise() -> None:
    assert findings(TWO)[0] == (
        "las against fifo, average completion time: better at load 1 (−25 %, −30 % to −20 %); "
        "a difference that is noise at load 2 (+2.0 %, −28 % to +32 %)."
    )
    assert "2 differences were tested: if there were none, about 0.1 would still look significant." in findings(TWO)[-1]


def test_one_seed_has_no_interval_which_the_verdict_states() -> None:
    fifo = SweepSetting(name="fifo", place=1.0, averages={"jct_mean_s": interval(7200.0)}, versus={})
    alone = content(fifo, setting("las", 1.0, 1.5, (-0.25, None, "unknown")))
    assert "a difference of one run, which may be noise (−25 %)" in findings(alone)[0]
    assert findings(alone)[-1].startswith("One seed: there are no intervals")


def test_seeds_that_change_nothing_count_as_one_run() -> None:
    one = SweepSetting(name="fifo", place=1.0, averages={"jct_mean_s": interval(7200.0)}, versus={}, alike=3)
    sentences = findings(content(one, replace(one, name="las")))
    assert sentences[-2] == "Nothing is random: the 3 seeds gave identical runs, and count as one."
    assert sentences[-1].startswith(
        "There are no intervals; to learn how much other jobs would change these numbers, generate jobs"
    )


def test_a_policy_that_draws_nothing_beside_one_that_does_is_named() -> None:
    fifo = SweepSetting(name="fifo", place=1.0, averages={"jct_mean_s": interval(7200.0)}, versus={}, alike=3)
    sentences = findings(content(fifo, setting("lottery", 1.0, 1.5, (-0.25, 0.05, "better"))))
    assert "Nothing is random under fifo: the 3 seeds gave identical runs, and count as one." in sentences
    assert any(sentence.startswith("Averages over 1 to 3 seeds") for sentence in sentences)


def test_failed_runs_are_listed_first() -> None:
    report = content(setting("fifo", 1.0, 2.0), failures=(("policy las, seed 1", "RuntimeError: no"),))
    assert findings(report)[0].startswith("1 run failed and is in no figure")
    assert findings(content(setting("fifo", 1.0, 2.0), failures=(("a", "b"),) * 2))[0].startswith(
        "2 runs failed and are"
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
    (chart,) = numbers["charts"]
    (fifo, las) = chart["panels"][0]["series"]
    assert (chart["kind"], fifo["x"], fifo["y"]) == ("line", [1, 2], [7200, 14400])
    assert (las["low"], las["high"]) == ([5399.5, 14759.5], [5400.5, 14760.5])
    difference = numbers["groups"][0]["settings"][1]["versus"]["jct_mean_s"]
    assert (difference["verdict"], difference["relative"]["mean"]) == ("better", -0.25)
