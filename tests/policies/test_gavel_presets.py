"""Presets are what the published code does under their names: two jobs by hand, where ours and theirs differ."""

from __future__ import annotations

from typing import Any

import pytest

from eunomia.allocation import solve

# On one V100 (the first type) and one K80. The first job waited 1000 s: alone on half of each it does 2.5 steps/s, so
# its 3600 steps would take 1440 s. On the V100 from now on it ends after 1000 + 900 s: 1900 / 1440 = 1.319.
TWO: dict[str, Any] = {
    "types": ["v100", "k80"],
    "capacity": [1, 1],
    "throughput": [[4.0, 1.0], [4.0, 4.0]],
    "steps_remaining": [3600.0, 3600.0],
    "elapsed_s": [1000.0, 0.0],
    "isolated_time_s": [0.0, 0.0],
    "weight": [1.0, 5.0],
    "job_type": ["a", "b"],
    "pairs": [],
}


def objective(spelling: str, **more: Any) -> float:
    proof = solve(spelling, {**TWO, **more}).certificate
    assert proof is not None
    return proof.objective


def test_finish_time_fairness_of_pairs_divides_the_speeds_by_the_weights() -> None:
    """The second job, at 4 / 5 steps/s on either type, takes five times as long as in isolation, where it does 4."""
    assert objective("finish_time_fairness?space_sharing=true") == pytest.approx(1900 / 1440)
    assert objective("gavel:finish_time_fairness_packed") == pytest.approx(5.0)
    assert objective("gavel:finish_time_fairness_packed", weight=[1.0, 1.0]) == pytest.approx(1900 / 1440)
    assert objective("finish_time_fairness?weighted_speeds=true") == pytest.approx(5.0)


def test_agnostic_finish_times_take_every_type_for_a_v100() -> None:
    """At 4 steps/s everywhere, in isolation too, the first job ends after 1900 s of 900; at its mean, 2440 of 1440."""
    assert objective("finish_time_fairness?types=agnostic") == pytest.approx(2440 / 1440)
    assert objective("gavel:finish_time_fairness") == pytest.approx(1900 / 900)


def test_agnostic_makespans_take_every_type_for_a_v100() -> None:
    """Each job has an accelerator of its own: 3600 steps at 4, or the first one's at its mean of 2.5."""
    assert objective("makespan?types=agnostic") == pytest.approx(3600 / 2.5)
    assert objective("gavel:min_total_duration") == pytest.approx(3600 / 4)


def test_a_job_that_the_reference_type_cannot_run_has_its_mean_and_so_have_all_where_there_is_none() -> None:
    cannot = [[0.0, 1.0], [4.0, 4.0]]
    assert objective("gavel:min_total_duration", throughput=cannot) == pytest.approx(3600.0)
    elsewhere = objective("gavel:min_total_duration", types=["a100", "k80"])
    assert elsewhere == objective("makespan?types=agnostic") == pytest.approx(3600 / 2.5)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("makespan?reference_type=v100", "reference_type=v100 needs types=agnostic"),
        ("finish_time_fairness?types=agnostic&reference_type=3", "reference_type is 3"),
        ("finish_time_fairness?weighted=true&weighted_speeds=true", "a weight counts once"),
        ("finish_time_fairness?weighted_speeds=2", "weighted_speeds is 2"),
    ],
)
def test_options_that_say_nothing_together_are_refused(spelling: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(spelling, TWO)


# Both need all of the V100 to be in time: 14,400 and 7,200 steps in an hour, at 4 and 2 steps/s.
LATE: dict[str, Any] = {
    "types": ["v100", "k80"],
    "capacity": [1, 1],
    "price": [2.0, 0.5],
    "throughput": [[4.0, 1.0], [2.0, 1.0]],
    "steps_remaining": [14400.0, 7200.0],
    "deadline_s": [3600.0, 3600.0],
    "elapsed_s": [0.0, 0.0],
}
SLOS = "gavel:max_sum_throughput_normalized_by_cost_perf_SLOs"


def test_of_deadlines_that_conflict_the_one_is_kept_under_which_the_objective_is_better() -> None:
    """With a in time 4 / 2 + 1 / 0.5 = 4 steps per cent of a dollar, with b in time 2 / 2 + 1 / 0.5 = 3."""
    found = solve(SLOS, LATE)
    assert (found.as_dict()["late"], found.certificate and found.certificate.objective) == ([1], pytest.approx(4.0))
    turned = {name: values[::-1] if len(values) == 2 and name not in ("types", "capacity", "price") else values
              for name, values in LATE.items()}  # fmt: skip
    found = solve(SLOS, turned)
    assert (found.as_dict()["late"], found.certificate and found.certificate.objective) == ([0], pytest.approx(4.0))


def test_a_heavier_deadline_is_kept_whatever_the_objective() -> None:
    assert solve(SLOS, {**LATE, "weight": [1.0, 2.0]}).as_dict()["late"] == [0]


def test_a_bill_is_the_smaller_one_of_equal_sets_too() -> None:
    """One type only: whoever is in time pays for its floor, 3 of 4 or 3 of 6 steps/s, and the late one has the rest."""
    one = {
        "types": ["v100"], "capacity": [1], "price": [2.0], "throughput": [[4.0], [6.0]],
        "steps_remaining": [10800.0, 14400.0], "deadline_s": [3600.0, 3600.0], "elapsed_s": [0.0, 0.0],
    }  # fmt: skip
    late = solve("min_cost", one).as_dict()["late"]
    assert late == [0]  # b needs 4 of its 6 steps/s, 2/3 of the time; a 3/4


# One V100 and one K80, three jobs in the order of submission.
QUEUE: dict[str, Any] = {
    "types": ["v100", "k80"],
    "capacity": [1, 1],
    "throughput": [[4.0, 2.0], [10.0, 1.0], [2.0, 2.0]],
}


def test_fifo_as_a_program_weighs_relative_speeds_by_rank() -> None:
    """Ranks are 3, 2 and 1. The first on the V100 and the third on the K80, where it is no slower: 3 + 1 = 4.

    With the first on the K80 and the second on the V100 it is 3 * 2 / 4 + 2 = 3.5. The queue would give the K80 to the
    second: 3 + 2 / 10 = 3.2.
    """
    found = solve("max_throughput?priority=arrival", QUEUE)
    assert found.certificate is not None
    assert found.certificate.objective == pytest.approx(4.0)
    assert found.x.ravel() == pytest.approx([1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="leave one of them out"):
        solve("max_throughput?priority=arrival&normalised=false", QUEUE)


def test_the_raw_ratio_counts_steps_and_not_parts_of_a_best_speed() -> None:
    """Steps per dollar: 10 / 2 of the second on the V100 is the most; of best speeds it is 1 / 0.5 of the third's."""
    priced = {**QUEUE, "price": [2.0, 0.5]}
    raw, ratio = solve("throughput_per_cost?objective=raw", priced), solve("throughput_per_cost", priced)
    assert raw.certificate is not None
    assert ratio.certificate is not None
    assert (raw.certificate.objective, ratio.certificate.objective) == (pytest.approx(5.0), pytest.approx(2.0))
    assert raw.x[1, 0] > 0
    assert ratio.x[2, 1] > 0
