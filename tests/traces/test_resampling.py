"""Days or weeks of a trace, drawn anew by the seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.scenario import scenario_from_dict
from eunomia.setup.workload import read_trace
from eunomia.traces.sampling import BLOCK_S, resample
from eunomia.traces.table import Trace, trace_of

DAY = BLOCK_S["days"]


def three_days() -> Trace:
    """One job in the morning of each of three days; each has a deadline two hours later and started after an hour."""
    submitted = np.array([0.25, 1.25, 2.25]) * DAY
    return trace_of(
        "t", ("a", "b", "c"), submitted, np.array([1, 2, 4]), app=("x", "", ""), duration_s=np.array([5.0, 6.0, 7.0]),
        deadline_s=submitted + 7200.0, started_s=submitted + 3600.0,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_a_drawn_trace_has_as_many_days_each_one_of_the_trace(seed: int) -> None:
    source, found = three_days(), resample(three_days(), "days", seed)
    assert np.allclose(found.submitted_s, np.array([0.25, 1.25, 2.25]) * DAY)
    for column in ("scale_factor", "duration_s"):
        rows = [source.job_id.index(name.partition("#")[0]) for name in found.job_id]
        assert (getattr(found, column) == getattr(source, column)[rows]).all()
    assert np.allclose(found.deadline_s - found.submitted_s, 7200.0)
    assert np.allclose(found.started_s - found.submitted_s, 3600.0)
    assert len(set(found.job_id)) == 3
    assert found.notes[-1] == f"The jobs are 3 of its days, drawn from them with seed {seed}."


def test_seeds_differ_and_a_seed_draws_the_same_again() -> None:
    drawn = {seed: resample(three_days(), "days", seed).job_id for seed in range(20)}
    assert len(set(drawn.values())) > 5
    assert all(resample(three_days(), "days", seed).job_id == names for seed, names in drawn.items())
    twice = next(names for names in drawn.values() if names.count("a") and "a#2" in names)
    assert twice.index("a") < twice.index("a#2")


def test_a_job_that_is_drawn_again_is_of_an_app_of_its_own() -> None:
    found = next(one for seed in range(50) if "a#2" in (one := resample(three_days(), "days", seed)).job_id)
    assert {found.app[found.job_id.index(name)] for name in ("a", "a#2")} == {"x", "x#2"}


def test_a_job_that_is_drawn_again_never_has_the_name_of_another() -> None:
    source = replace(three_days(), job_id=("a", "a#2", "c"))  # as an import names an id that was given again
    for seed in range(30):
        assert len(set(resample(source, "days", seed).job_id)) == 3


def test_a_trace_of_one_week_cannot_be_drawn_by_weeks() -> None:
    with pytest.raises(InvalidInput, match='write resample = "days"'):
        resample(three_days(), "weeks", 0)


def test_the_refusal_of_a_trace_of_one_day_does_not_advise_days() -> None:
    with pytest.raises(InvalidInput, match="use a longer trace or leave it out"):
        resample(three_days().take(np.array([0])), "days", 0)


def test_a_scenario_draws_within_its_window_and_by_its_seed(tmp_path: Path) -> None:
    lines = "".join(f"j{k},{k * DAY / 4},1,LM,60\n" for k in range(40))
    (tmp_path / "jobs.csv").write_text("job_id,submitted_s,scale_factor,job_type,duration_s\n" + lines)

    def drawn(seed: int) -> tuple[str, ...]:
        work = {"trace": "jobs.csv", "resample": "days", "start_s": 2 * DAY, "end_s": 8 * DAY}
        data = {"seed": seed, "cluster": {"accelerators": {"v100": 2}}, "workload": work}
        return read_trace(scenario_from_dict(data, tmp_path)).job_id

    assert drawn(0) != drawn(1)
    assert {name.partition("#")[0] for seed in range(8) for name in drawn(seed)} == {f"j{k}" for k in range(8, 32)}
    with pytest.raises(InvalidInput, match="a generator draws its jobs by the seed already"):
        scenario_from_dict(
            {"cluster": {"accelerators": {"v100": 2}}, "workload": {"generator": "poisson", "resample": "days"}},
            tmp_path,
        )
