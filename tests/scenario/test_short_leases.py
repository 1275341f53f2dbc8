"""Leases that leave no time to work are refused where gangs do not keep their seats, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.runs import simulate
from eunomia.scenario import load_scenario, scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig

BLIND = ("consolidated", "gandiva_original", "locality", "quincy")
Row = tuple[float, int, float]  # submitted, accelerators, seconds of work


def scenario(folder: Path, *rows: Row, policy: str = "locality", **more: Any) -> dict[str, Any]:
    """Return a scenario on two v100, with leases of 300 s that end apart and restores of 300 s."""
    lines = [f"j{n},{at},{size},x,{seconds}" for n, (at, size, seconds) in enumerate(rows)]
    header = "job_id,submitted_s,scale_factor,job_type,duration_s"
    (folder / "trace.csv").write_text("\n".join([header, *lines, ""]))
    said: dict[str, Any] = {
        "cluster": {"accelerators": {"v100": 2}},
        "workload": {"trace": str(folder / "trace.csv")},
        "throughputs": {"source": "uniform"},
        "policy": {"name": policy},
        "mechanism": {"length_s": 300, "aligned": False},
        "overheads": {"restore_s": 300},
    }
    return said | more


def setup(said: dict[str, Any]) -> RunConfig:
    return set_up(scenario_from_dict(said, Path()))


@pytest.mark.parametrize("policy", BLIND)
@pytest.mark.parametrize("costs", [{"restore_s": 300}, {"checkpoint_s": 100, "restore_s": 200}, {"restore_s": 1e6}])
def test_a_lease_no_longer_than_a_restart_is_refused(tmp_path: Path, policy: str, costs: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=r"j0 needs .* it would never end; give longer leases"):
        setup(scenario(tmp_path, (0, 1, 1000), policy=policy, overheads=costs))


@pytest.mark.parametrize("policy", BLIND)
def test_a_lease_longer_than_a_restart_by_a_second_is_enough(tmp_path: Path, policy: str) -> None:
    """300 s of work in the first lease, and one second in each of the ten that follow."""
    said = scenario(tmp_path, (0, 1, 310), policy=policy, overheads={"restore_s": 299})
    assert simulate(said).jobs["jct_s"].tolist() == [11 * 300.0]


def test_the_refusal_names_file_and_line_and_the_first_job_that_is_stuck(tmp_path: Path) -> None:
    scenario(tmp_path, (0, 1, 200), (0, 1, 400))
    text = (
        '[cluster]\naccelerators = { v100 = 2 }\n[workload]\ntrace = "trace.csv"\n[throughputs]\nsource = "uniform"\n'
    )
    text += '[policy]\nname = "locality"\n[overheads]\nrestore_s = 300\n[mechanism]\naligned = false\nlength_s = 300\n'
    (tmp_path / "live.toml").write_text(text)
    with pytest.raises(InvalidInput) as refusal:
        set_up(load_scenario(tmp_path / "live.toml"))
    (problem,) = refusal.value.problems
    assert (Path(problem.file).name, problem.row, problem.column) == ("live.toml", 13, "mechanism.length_s")
    assert (problem.value, problem.rule.split(" needs")[0]) == ("300", "job j1")


@pytest.mark.parametrize("policy", BLIND)
def test_jobs_that_end_in_their_first_lease_are_never_started_again(tmp_path: Path, policy: str) -> None:
    said = scenario(tmp_path, (0, 1, 290), (0, 1, 10), policy=policy, overheads={"start_s": 10, "restore_s": 300})
    assert simulate(said).summary["jobs_finished"] == 2


def test_a_start_that_takes_of_the_first_lease_counts(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="never end"):
        setup(scenario(tmp_path, (0, 1, 290), overheads={"start_s": 11, "restore_s": 300}))


def test_a_restore_counts_that_only_wide_gangs_take_so_long_for(tmp_path: Path) -> None:
    costs = {"restore_s": 30, "restore_by_size": {"2": 300}}
    assert simulate(scenario(tmp_path, (0, 1, 1000), overheads=costs)).summary["jobs_finished"] == 1
    with pytest.raises(InvalidInput, match="job j1 needs 300 s"):
        setup(scenario(tmp_path, (0, 1, 1000), (0, 2, 1000), overheads=costs))


@pytest.mark.parametrize("policy", ["astraea", "fifo", "las", "max_min_fairness", "philly", "themis"])
def test_policies_that_give_gangs_their_seats_anew_are_not_refused(tmp_path: Path, policy: str) -> None:
    assert setup(scenario(tmp_path, (0, 1, 1000), policy=policy)).overheads.restore_s == 300
    if policy in ("astraea", "fifo"):
        assert simulate(scenario(tmp_path, (0, 1, 1000), policy=policy)).jobs["jct_s"].tolist() == [1000.0]


@pytest.mark.parametrize("policy", BLIND)
def test_leases_that_end_together_continue_while_no_job_waits(tmp_path: Path, policy: str) -> None:
    said = scenario(tmp_path, (0, 1, 1000), (0, 1, 1000), policy=policy, mechanism={"length_s": 300})
    assert simulate(said).jobs["jct_s"].tolist() == [1000.0] * 2
    later = scenario(tmp_path, (0, 2, 1000), (1100, 2, 1000), policy=policy, mechanism={"length_s": 300})
    assert simulate(later).summary["jobs_finished"] == 2


@pytest.mark.parametrize("policy", BLIND)
def test_leases_that_end_together_are_refused_where_more_jobs_are_stuck_than_there_is_room_for(
    tmp_path: Path, policy: str
) -> None:
    """Three that need at least 1000 s are there at 900 s, or two wide ones at 300 s, on two accelerators."""
    for rows in ([(0, 1, 1000)] * 3, [(200 * n, 2, 1500) for n in range(2)]):
        with pytest.raises(InvalidInput, match="never end"):
            setup(scenario(tmp_path, *rows, policy=policy, mechanism={"length_s": 300}))


def test_where_two_may_share_an_accelerator_twice_as_many_have_room(tmp_path: Path) -> None:
    """Gandiva packs four A3C on two accelerators, and then no job waits; five are too many."""
    common: dict[str, Any] = {
        "policy": "gandiva_original",
        "mechanism": {"length_s": 300},
        "throughputs": {"source": "catalogue"},
    }
    said = scenario(tmp_path, *[(0, 1, 1000)] * 4, **common)
    trace = tmp_path / "trace.csv"
    trace.write_text(trace.read_text().replace(",x,", ",A3C,"))
    assert simulate(said).summary["jobs_finished"] == 4
    said = scenario(tmp_path, *[(0, 1, 1000)] * 5, **common)
    trace.write_text(trace.read_text().replace(",x,", ",A3C,"))
    with pytest.raises(InvalidInput, match="never end"):
        setup(said)


def test_endless_leases_and_real_clusters_are_never_refused(tmp_path: Path) -> None:
    assert simulate(scenario(tmp_path, (0, 1, 1000), mechanism={"length_s": float("inf"), "aligned": False})).summary
    said = scenario(tmp_path, (0, 1, 1000), world={"backend": "local"})
    assert setup(said).overheads.restore_s == 300
