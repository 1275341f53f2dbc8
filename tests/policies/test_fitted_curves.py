"""Optimus and SLAQ with curves that they fit to what jobs tell, by hand; and jobs that tell it in a world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.core.training_losses import MOST, SeenLosses
from eunomia.model.answers import Order
from eunomia.model.arrays import Floats
from eunomia.model.curves import curve_of
from eunomia.model.events import Measured
from eunomia.model.policy import Policy
from eunomia.model.view import View
from eunomia.policies.order.optimus import Optimus
from eunomia.policies.order.slaq import Slaq
from eunomia.records.record import Record
from eunomia.records.replay import first_difference
from eunomia.runs.simulation import simulate
from eunomia.testing.sample_views import fresh_memory

WIDEST = 6  # shapes: 1 … 6 accelerators


def view(policy: Policy, total: float, done: Sequence[float], reported: Sequence[Floats], capacity: int) -> View:
    """Return a view of jobs that do n steps/s on n accelerators; `reported` are their losses, (loss, 2) each."""
    jobs, most = len(done), max(len(one) for one in reported)
    losses = np.full((jobs, most, 2), np.nan)
    for m, one in enumerate(reported):
        losses[m, : len(one)] = one
    sizes = np.tile(np.arange(1, WIDEST + 1), (jobs, 1))
    columns: dict[str, Any] = {
        "shapes": sizes,
        "shape_throughput": sizes[:, :, None].astype(float),
        "capacity": np.array([capacity]),
        "total": np.full(jobs, total),
        "remaining": total - np.array(done),
        "losses": losses,
    }
    assert set(columns) == policy.info.needs
    return View(at=0.0, types=("gpu",), jobs=jobs, columns=columns, memory=fresh_memory(policy, jobs))


def losses_of(steps: Sequence[float], rate: float, floor: float = 0.0) -> Floats:
    """Return the losses floor + 1 / (1 + rate k) after so many steps."""
    k = np.array(steps, dtype=float)
    return np.stack((k, floor + 1 / (1 + rate * k)), axis=1)


def accelerators(order: Order, jobs: int) -> list[int]:
    """Return how many accelerators each job gets, shapes being 1 … 6."""
    assert order.rows.shape is not None
    got = np.zeros(jobs, dtype=int)
    got[order.rows.job] = order.rows.shape + 1
    return got.tolist()


FIVE = (1, 2, 3, 4, 5)


def test_slaq_gives_to_whoever_is_seen_to_learn() -> None:
    """Slots of 1 s. a tells 1 / (1 + k), so its loss falls from 1/6 to 1/7 on one accelerator: 0.048 units of 1/2; b
    tells 1 / (1 + 0.01 k), from 1/1.05 to 1/1.06 in units of 0.0099: 0.91. b has all but one, though the median
    curve, which both would have if nothing were known, is the same for both.
    """
    policy = Slaq(slot_s=1.0, curves="fitted")
    seen = view(policy, 1000.0, [5, 5], [losses_of(FIVE, 1.0), losses_of(FIVE, 0.01)], 6)
    assert accelerators(policy.decide(seen), 2) == [1, 5]
    unknown = view(policy, 1000.0, [5, 5], [losses_of((1, 2, 3), 1.0), losses_of((1, 2, 3), 0.01)], 6)  # too few losses
    assert accelerators(policy.decide(unknown), 2) == [3, 3]


def test_slaq_knows_losses_that_fall_by_halves() -> None:
    """a's loss halves with every step: 2^−k. b's is 1 / (1 + k). After 5 steps a has 2^−6 = 0.016 to lose in units of
    1/2, b 1/42 = 0.024: alike they are not, and b is first where one accelerator is there.
    """
    policy = Slaq(slot_s=1.0, curves="fitted")
    k = np.array(FIVE, dtype=float)
    seen = view(policy, 1000.0, [5, 5], [np.stack((k, 0.5**k), axis=1), losses_of(FIVE, 1.0)], 1)
    assert policy.decide(seen).rows.job.tolist() == [1, 0]


def test_optimus_foresees_when_a_curve_is_flat() -> None:
    """1 / (1 + k), 100 steps, so that an epoch is one: from k to k + 9, the last ten epochs, it falls by 9 / ((k + 1)
    (k + 10)), at most 0.05 from k = 8.65 on, so first after 9 + 9. With 4 done 14 are left and not 96: the second
    accelerator saves 7 s. Of b 95 are believed left while it has three losses: 47.5, 15.8 and 7.9 s.
    """
    policy = Optimus(young=1.0, curves="fitted")
    seen = view(policy, 100.0, [4, 5], [losses_of((1, 2, 3, 4), 1.0), losses_of((1, 2, 3), 1.0)], 5)
    assert accelerators(policy.decide(seen), 2) == [1, 4]
    curves, _ = policy._expected(seen)
    assert curves == pytest.approx([14.0, 95.0], rel=1e-3)
    over = view(policy, 100.0, [20], [losses_of((5, 10, 15, 20), 1.0)], 6)  # it is flat already, and runs to its end
    assert accelerators(policy.decide(over), 1) == [1]


@pytest.mark.parametrize("policy", [Slaq(curves="fitted"), Optimus(curves="fitted")], ids=["slaq", "optimus"])
def test_a_curve_is_fitted_anew_only_when_its_job_tells_something(policy: Slaq | Optimus) -> None:
    seen = view(policy, 100.0, [5, 5], [losses_of(FIVE, 1.0), losses_of(FIVE, 0.1)], 4)
    memory = dict(policy.decide(seen).memory)
    assert 1 / memory["curve_c"] == pytest.approx([1.0, 1.0], rel=1e-3)
    assert memory["curve_b"] / memory["curve_c"] == pytest.approx([1.0, 0.1], rel=1e-2)
    kept = {**memory, "curve_c": memory["curve_c"] * 7}  # what it remembers is believed …
    again = policy.decide(replace(seen, memory=kept)).memory
    assert again["curve_c"] == pytest.approx(kept["curve_c"])
    more = view(
        policy, 100.0, [6, 5], [losses_of((*FIVE, 6), 1.0), losses_of(FIVE, 0.1)], 4
    )  # … until there is something new
    then = policy.decide(replace(more, memory=kept)).memory
    assert then["curve_c"] == pytest.approx([1.0, kept["curve_c"][1]], rel=1e-3)


def test_other_words_than_oracle_and_fitted_are_refused() -> None:
    with pytest.raises(ValueError, match="curves is 'known'; it is 'oracle'"):
        Slaq(curves="known")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="flat is 0; it is a finite fall of the loss"):
        Optimus(flat=0)


# ---- what jobs tell


def test_when_a_job_has_reported_much_every_second_loss_is_kept() -> None:
    losses = SeenLosses()
    losses.add()
    for step in range(1, MOST + 2):
        losses.record(0, step, 1.0 / step)
    seen = losses.of(np.array([0]))[0]
    assert seen[:, 0].tolist() == [*range(2, MOST + 1, 2), MOST + 1]
    assert (seen[:, 1] == 1 / seen[:, 0]).all()


def test_what_a_job_tells_again_after_a_failure_is_nothing_new() -> None:
    losses = SeenLosses()
    losses.add()
    losses.add()
    for step, loss in ((5, 0.5), (10, 0.4), (5, 0.5), (10, 0.41), (15, np.nan), (15, 0.3)):
        losses.record(0, step, loss)
    assert losses.of(np.array([0, 1]))[:, :, 0].tolist()[0] == [5, 10, 15]
    assert np.isnan(losses.of(np.array([0, 1]))[1]).all()


@pytest.mark.parametrize("apps", [{}, {"tuner": "halving"}, {"tuner": "hyperdrive"}])
@pytest.mark.parametrize("policy", ["optimus", "slaq"])
def test_every_job_tells_its_loss_at_each_twentieth_of_its_steps(
    policy: str, apps: dict[str, Any], tmp_path: Path
) -> None:
    rows = "".join(f"t{m},0,1,4000,any,app\n" for m in range(9))
    text = f"job_id,submitted_s,scale_factor,duration_s,job_type,app\n{rows}alone,100,2,2000,any,\n"
    (tmp_path / "jobs.csv").write_text(text, encoding="utf-8")
    said = {
        "cluster": {"accelerators": {"v100": 4}},
        "workload": {"trace": str(tmp_path / "jobs.csv")},
        "throughputs": {"source": "uniform"},
        "policy": {"name": policy, "curves": "fitted"},
        "check": True,
        "apps": apps,
    }
    path = tmp_path / "record.jsonl.gz"
    result = simulate(said, record_to=path)
    assert result.summary["jobs_unfinished"] == 0
    events = [event for _, moment, _ in Record(path).steps() for event in moment.events]
    mine = [event for event in events if isinstance(event, Measured) and event.job_id == "alone"]
    assert [event.steps for event in mine] == pytest.approx([100.0 * n for n in range(1, 20)])
    assert [event.loss for event in mine] == pytest.approx([curve_of(0, "alone").loss(n / 20) for n in range(1, 20)])
    assert first_difference(Record(path)) is None
    whole = simulate({**said, "policy": {"name": "fifo"}, "overheads": {}})
    if apps:  # what a search hears at its rungs is the same, whatever else its trials tell
        best = {run.figures.apps["best_job"][0] for run in (result, whole)}
        assert len(best) == 1
