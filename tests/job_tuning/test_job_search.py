"""The search of a job's shape: its shapes, rates with intervals, the next shape, and how it ends and goes on."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.job_tuning.measurements import (
    MeasuredShape,
    StepRate,
    rate_of_reports,
    read_measurements,
    write_measurements,
)
from eunomia.job_tuning.objective import objective_of
from eunomia.job_tuning.progress import Progress, StepsToMeasure
from eunomia.job_tuning.search import JobSearch, JobTuning, first_shapes, tune_job
from eunomia.job_tuning.shapes import JobShape, ShapeSpace, parse_counts
from eunomia.solvers.bayesian.gaussian_process import GaussianProcess

SPACE = ShapeSpace(tuple(range(1, 17)), (1, 2, 4), ("v100", "k80"))
SPEED = objective_of("speed", SPACE.types, SPACE.servers, {})


def steps_per_s(shape: JobShape) -> float:
    """Work that the workers share, and a worker's traffic at a server."""
    compute = 0.8 if shape.type == "v100" else 2.4
    return 1 / (compute / shape.workers + 0.01 * shape.workers / shape.servers + 0.02)


def measured(shape: JobShape) -> MeasuredShape:
    return MeasuredShape(shape, StepRate(steps_per_s=steps_per_s(shape)))


def search(
    measure: Callable[[JobShape], MeasuredShape] = measured, known: tuple[MeasuredShape, ...] = (), **more: object
) -> JobTuning:
    request = JobSearch(**{"space": SPACE, "objective": SPEED, **more})  # type: ignore[arg-type]
    return tune_job(request, measure, known, lambda found: None)


@pytest.mark.parametrize(
    ("text", "counts"), [("3", (3,)), ("1-4", (1, 2, 3, 4)), ("8,1,2", (1, 2, 8)), (" 1-2 , 2-3", (1, 2, 3))]
)
def test_counts_are_a_range_a_list_or_both(text: str, counts: tuple[int, ...]) -> None:
    assert parse_counts("--workers", text, 1) == counts


@pytest.mark.parametrize("text", ["", "0", "4-1", "1,x", "-3", "1-2000", "1.5", "9999999", "1--2"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--workers 1-8 or --workers 1,2,4,8"):
        parse_counts("--workers", text, 1)


def test_a_shape_fills_its_counts_and_type_into_every_word_of_a_command() -> None:
    words = JobShape(4, 2, "v100").fill(("{type}.sh", "--n={workers}/{servers}", "{other}"))
    assert words == ("v100.sh", "--n=4/2", "{other}")


def test_a_rate_counts_from_the_first_report_after_the_warm_up_with_students_interval_of_its_parts() -> None:
    """Steps of 0.5 s and of 0.25 s in turn after a slow start; by hand: mean 0.375, s = 0.125 · √(8/7), t₇ = 2.3646."""
    reports = [(0.0, 0.0), (9.0, 5.0)]
    for k in range(8):
        reports.append((reports[-1][0] + (0.25, 0.5)[k % 2], 6.0 + k))
    found = rate_of_reports(reports, 5.0)
    assert found is not None
    half = 2.3646 * 0.125 * math.sqrt(8 / 7) / math.sqrt(8)
    assert found.steps_per_s == pytest.approx(8 / 3)
    assert (found.low, found.high) == pytest.approx((1 / (0.375 + half), 1 / (0.375 - half)), rel=1e-4)
    assert (found.steps, found.seconds) == (8.0, 3.0)


def test_a_rate_needs_two_reports_after_the_warm_up_and_an_interval_three() -> None:
    assert rate_of_reports([(0.0, 4.0), (1.0, 5.0)], 5.0) is None
    found = rate_of_reports([(1.0, 5.0), (2.0, 7.0)], 5.0)
    assert found is not None
    assert (found.steps_per_s, found.low, found.high) == (2.0, None, None)


def test_an_interval_allows_for_reports_that_are_read_late() -> None:
    two = [(0.0, 0.0), (2.0, 40.0)]  # 20 steps/s, in 1.5 to 2.5 s
    assert rate_of_reports(two, 0, 0.5) == StepRate(steps_per_s=20.0, low=16.0, high=40 / 1.5, steps=40.0, seconds=2.0)
    fast = rate_of_reports(two, 0, 2.0)  # perhaps in no time
    assert fast is not None and (fast.low, fast.high) == (10.0, None)
    even = [(float(at), 20.0 * at) for at in range(9)]
    most = rate_of_reports(even, 0, 0.5)
    assert most is not None and (most.low, most.high) == (160 / 8.5, 160 / 7.5)
    uneven = [(0.0, 0.0), (1.0, 40.0), (8.0, 80.0), (9.0, 120.0), (16.0, 160.0)]
    read_late, in_time = rate_of_reports(uneven, 0, 0.5), rate_of_reports(uneven, 0)
    assert read_late == in_time  # Student's is wider


def test_a_measurement_begins_anew_when_a_job_was_started_again() -> None:
    progress = Progress(JobShape(1, 0, "cpu"), StepsToMeasure(warm_up=0, steps=2, limit_s=9))
    for at, steps in ((0.0, 10.0), (1.0, 11.0), (5.0, 1.0), (6.0, 2.0)):
        progress.add(at, steps)
    assert not progress.is_enough
    progress.add(7.0, 3.0)
    assert progress.is_enough
    assert progress.reports[0] == (5.0, 1.0)


def test_the_next_shape_is_the_one_of_the_largest_expected_improvement() -> None:
    """The oracle: the posterior by numpy's solver and EI by the error function, with the lengths of a fit."""
    space = ShapeSpace((1, 2, 3, 4, 6, 8, 12, 16), (0,), ("cpu",))
    known = [JobShape(w, 0, "cpu") for w in (1, 4, 8, 16)]

    def rate(w: int) -> float:
        return 1 / (1 / w + 0.03 * w)

    asked: list[JobShape] = []

    def measure(shape: JobShape) -> MeasuredShape:
        asked.append(shape)
        return MeasuredShape(shape, StepRate(steps_per_s=rate(shape.workers)))

    rows = tuple(MeasuredShape(one, StepRate(steps_per_s=rate(one.workers))) for one in known)
    search(measure, rows, space=space, objective=SPEED, budget=5, method="gp-ei")
    x = np.log(np.array(space.workers)) / np.log(16)
    seen = np.array([space.workers.index(one.workers) for one in known])
    logs = -np.log([rate(one.workers) for one in known])
    y = (logs - logs.mean()) / logs.std()
    fit = GaussianProcess.fit(space.grid().coordinates(np.array([space.point(one) for one in known])), y,
                              np.random.default_rng(7))  # fmt: skip
    r = np.sqrt(5) * abs(x[:, None] - x[None]) / fit.length[0]
    k = (1 + r + r * r / 3) * np.exp(-r)
    inner = k[np.ix_(seen, seen)]
    noise = (fit.factor[0, 0] ** 2 - 1) * np.eye(4)
    weights = np.linalg.solve(inner + noise, k[seen])
    mean = fit.mean + (y - fit.mean) @ weights
    sd = np.sqrt(fit.variance * np.maximum(1 - (k[seen] * weights).sum(axis=0), 0))
    best = y.min()
    z = [(best - m) / s if s > 0 else 0.0 for m, s in zip(mean, sd, strict=True)]
    ei = np.array([
        (best - m) * (1 + math.erf(v / math.sqrt(2))) / 2 + s * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)
        for m, s, v in zip(mean, sd, z, strict=True)
    ])  # fmt: skip
    ei[seen] = -1.0
    assert asked == [JobShape(space.workers[int(ei.argmax())], 0, "cpu")]


def test_the_fastest_of_96_shapes_is_found_within_three_per_cent_by_10_measurements() -> None:
    fastest = max(steps_per_s(SPACE.shape(point)) for point in range(SPACE.grid().points))
    best = search(budget=10).best
    assert best is not None
    assert steps_per_s(best.shape) > fastest / 1.03


def test_a_search_for_price_takes_the_cheap_type_and_one_for_speed_the_fast_one() -> None:
    prices = objective_of("price", SPACE.types, SPACE.servers, {"v100": 8.0, "k80": 0.4, "server": 0.1})
    assert prices.hourly(JobShape(2, 4, "k80")) == pytest.approx(1.2)
    assert prices.gain(JobShape(2, 4, "k80"), 6.0) == pytest.approx(18_000)
    cheap, fast = search(objective=prices, budget=8).best, search(budget=8).best
    assert cheap is not None
    assert fast is not None
    assert (cheap.shape.type, fast.shape.type) == ("k80", "v100")
    assert cheap.shape.workers < fast.shape.workers


def test_prices_come_from_the_catalogue_and_every_missing_or_idle_one_is_named() -> None:
    assert objective_of("price", ("v100",), (0,), {}).prices["v100"] > 0
    with pytest.raises(InvalidInput) as refused:
        objective_of("price", ("cpu",), (0, 1), {"h100": 2.0})
    assert [problem.value for problem in refused.value.problems] == ["h100", "cpu", "server"]
    with pytest.raises(InvalidInput, match="with --objective price only"):
        objective_of("speed", ("cpu",), (0,), {"cpu": 2.0})


def test_a_shape_that_fails_is_noted_counts_and_is_not_tried_again() -> None:
    def measure(shape: JobShape) -> MeasuredShape:
        return MeasuredShape(shape, None, "no memory") if shape.type == "k80" else measured(shape)

    found = search(measure, budget=9)
    failed = [one.shape for one in found.measured if one.rate is None]
    assert failed
    assert len({one.shape for one in found.measured}) == len(found.measured) == 9
    assert found.best is not None
    assert found.best.shape.type == "v100"


def test_a_job_that_runs_in_no_shape_uses_up_the_measurements_and_has_no_best() -> None:
    found = search(lambda shape: MeasuredShape(shape, None, "it always fails"), budget=7)
    assert found.best is None
    assert len(found.measured) == 7
    assert found.ended == "7 shapes are measured"


def test_a_search_ends_when_little_more_is_expected_or_everything_is_measured() -> None:
    def flat(shape: JobShape) -> MeasuredShape:
        return MeasuredShape(shape, StepRate(steps_per_s=5.0))

    assert search(flat, epsilon=0.05).ended == "less than 5 % more is expected"
    small = ShapeSpace((1, 2), (0,), ("cpu",))
    assert search(flat, space=small).ended == "every shape is measured"


@pytest.mark.parametrize("method", ["gp-ei", "rf-ei", "random", "grid"])
def test_an_interrupted_search_goes_on_as_if_it_had_not_been(method: str, tmp_path: Path) -> None:
    whole = search(method=method, budget=7, epsilon=0.0)
    write_measurements(tmp_path / "part.csv", whole.measured[:5])
    again: list[JobShape] = []

    def measure(shape: JobShape) -> MeasuredShape:
        again.append(shape)
        return measured(shape)

    known = tuple(read_measurements(tmp_path / "part.csv"))
    found = search(measure, known, method=method, budget=7, epsilon=0.0)
    assert found == whole
    assert again == [one.shape for one in whole.measured[5:]]


def test_a_dry_run_lists_what_the_search_measures_first() -> None:
    for method, count in (("gp-ei", 4), ("random", 6), ("grid", 6)):
        request = JobSearch(space=SPACE, objective=SPEED, method=method, budget=6)
        listed = first_shapes(request, ())
        assert len(listed) == count
        done = search(method=method, budget=6)
        assert listed == [one.shape for one in done.measured[:count]]


def test_shapes_whose_intervals_meet_that_of_the_best_are_not_distinguished() -> None:
    def one(workers: int, rate: float, low: float, high: float) -> MeasuredShape:
        return MeasuredShape(JobShape(workers, 0, "cpu"), StepRate(steps_per_s=rate, low=low, high=high))

    found = JobTuning(objective=SPEED, measured=(one(1, 8, 7, 8.9), one(2, 9.5, 9, 10), one(4, 10, 9.2, 11)))
    assert found.best is not None
    assert found.best.shape.workers == 4
    assert [shape.workers for shape in found.as_good] == [2]


def test_repeated_rows_of_a_table_are_one_shape_with_an_interval(tmp_path: Path) -> None:
    """Seconds per step 0.4 and 0.5: mean 0.45, and t₁ = 12.706 makes the upper end of the rate endless."""
    path = tmp_path / "t.csv"
    path.write_text("workers,servers,type,steps_per_s\n1,0,cpu,2.5\n1,0,cpu,2\n2,0,cpu,0\n")
    twice, never = read_measurements(path)
    assert twice.rate is not None
    assert twice.rate.steps_per_s == pytest.approx(1 / 0.45)
    assert twice.rate.low == pytest.approx(1 / (0.45 + 12.7062 * 0.05), rel=1e-4)
    assert twice.rate.high is None
    assert never.rate is None


def test_every_problem_of_a_table_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("workers,servers,type,steps_per_s,speed\n0,0,cpu,1,\n1,1.5,cpu,1,\n1,0,,x,\n2,0,cpu,-1,\n")
    with pytest.raises(InvalidInput) as refused:
        read_measurements(path)
    assert [(one.row, one.column) for one in refused.value.problems] == [
        (1, "speed"), (2, "workers"), (3, "servers"), (4, "type"), (4, "steps_per_s"), (5, "steps_per_s")
    ]  # fmt: skip
