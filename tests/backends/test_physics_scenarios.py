"""Physics as a user asks for them: keys of a scenario, numbers of summary.json, and what is refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia import simulate
from eunomia.backends.simulated import stall_detection
from eunomia.backends.simulated.stall_detection import MOMENTS, OUTAGES, StallDetector
from eunomia.inputs.problems import InvalidInput
from eunomia.metrics.lost_time import LOST, name_of
from eunomia.records.replay import first_difference
from eunomia.runs.simulation import Result
from eunomia.scenario import scenario_from_dict
from eunomia.scenario.schema_models import PhysicsSection
from eunomia.setup.run_config import set_up

EVERYTHING: dict[str, Any] = {
    "placement": "themis",
    "accelerators_per_slot": 2,
    "neighbours": "philly",
    "pairs": "modelled",
    "fates": "philly",
    "repair": "exponential",
    "rack_failures_per_hour": 0.02,
    "report_delay_s": 20.0,
    "report_lost": 0.1,
}


def asked(physics: dict[str, Any] | None = None, **tables: Any) -> dict[str, Any]:
    """Return a scenario of 60 jobs on two racks."""
    racks = [{"type": "v100", "count": 3, "accelerators": 4, "rack": rack} for rack in "ab"]
    scenario: dict[str, Any] = {
        "cluster": {"nodes": racks},
        "workload": {"generator": "philly-like", "jobs": 60, "rate_per_hour": 20},
        "policy": {"name": "fifo", "backfill": "skip"},
        "overheads": {"start_s": 45.0, "checkpoint_s": 10.0, "restore_s": 35.0},
        "world": {"node_failures_per_hour": 0.02, "checkpoint_every_s": 1800.0},
        **tables,
    }
    return scenario if physics is None else {**scenario, "physics": physics}


def total(result: Result) -> float:
    return sum(result.summary[name] or 0.0 for name in ("useful_accelerator_s", *map(name_of, LOST)))


@pytest.mark.parametrize("policy", ["fifo", "las", "max_min_fairness?space_sharing=true", "locality"])
def test_useful_and_lost_accelerator_seconds_are_all_that_the_cluster_had(policy: str) -> None:
    name, _, key = policy.partition("?")
    result = simulate(asked(EVERYTHING, policy={"name": name, **({"space_sharing": True} if key else {})}))
    jobs, summary = result.jobs, result.summary
    end_s = summary["end_s"]
    assert end_s is not None
    assert total(result) == pytest.approx(24 * (end_s - jobs["submitted_s"].min()), rel=1e-6)


def test_every_kind_of_physics_shows_in_the_numbers() -> None:
    summary = simulate(asked(EVERYTHING)).summary
    for cause in ("start", "restore", "placement", "neighbours", "failed_jobs", "cancelled_jobs", "unheard"):
        lost = summary[name_of(cause)]
        assert lost is not None and lost > 0, cause


def test_physics_that_are_off_change_nothing(tmp_path: Path) -> None:
    written = {}
    for name, physics in (
        ("unsaid", None),
        ("said", {key: f.default for key, f in PhysicsSection.model_fields.items()}),
    ):
        (tmp_path / name).mkdir()
        simulate(asked(physics)).write(tmp_path / name)
        written[name] = [(tmp_path / name / file).read_bytes() for file in ("summary.json", "jobs.csv")]
    assert written["unsaid"] == written["said"]


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others() -> None:
    first, again, other = (simulate(asked(EVERYTHING, seed=seed)).summary for seed in (1, 1, 2))
    assert first == again != other


def test_a_run_with_physics_replays(tmp_path: Path) -> None:
    result = simulate(asked(EVERYTHING), record_to=tmp_path / "record.jsonl.gz")
    assert result.record is not None
    assert first_difference(result.record) is None


def test_the_scheduler_knows_the_slowdowns_unless_it_is_kept_from_them() -> None:
    job_type = "LM (batch size 5)"
    knows, not_reported = (
        set_up(scenario_from_dict(asked({"placement": "themis", "believed": believed}), Path())).believed
        for believed in (True, False)
    )
    truth = set_up(scenario_from_dict(asked({"placement": "themis"}), Path())).truth
    assert (
        knows.spread_throughput(job_type, 4)
        == truth.spread_throughput(job_type, 4)
        == pytest.approx(truth.solo_throughput(job_type, 4) / 1.4)
    )  # type: ignore[attr-defined]
    assert not_reported.spread_throughput(job_type, 4) != knows.spread_throughput(job_type, 4)  # type: ignore[attr-defined]


def test_a_noisy_belief_is_as_wrong_of_a_gang_apart_as_of_one_together() -> None:
    noisy = asked({"placement": "themis"}, belief={"kind": "noisy", "error": 0.5})
    believed = set_up(scenario_from_dict(noisy, Path())).believed
    ratio = believed.solo_throughput("LM (batch size 5)", 4) / believed.spread_throughput("LM (batch size 5)", 4)  # type: ignore[attr-defined]
    assert ratio == pytest.approx(1.4)


def test_jobs_that_are_to_fail_are_tried_as_often_as_the_scenario_says() -> None:
    jobs = set_up(scenario_from_dict(asked({"fates": "philly", "retries": 4}), Path())).jobs
    assert {job.retries for job in jobs} == {4}


@pytest.mark.parametrize(
    "physics",
    [{}, {"placement": "themis"}, {"fates": "philly", "failing": 0.0, "killed": 0.0, "retries": 2}],
    ids=["plain", "physical", "tried again"],
)
def test_a_job_that_failed_in_its_trace_fails_once_and_for_good_whatever_its_retries(
    physics: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,duration_s,status,retries\n"
        "a,0,1,LM,100,failed,3\nb,0,1,LM,100,finished,3\nc,50,1,LM,100,cancelled,3\n"
    )
    said = {
        "cluster": {"accelerators": {"v100": 1}}, "workload": {"trace": "jobs.csv"}, "policy": {"name": "fifo"},
        "throughputs": {"source": "uniform"}, "world": {"replay_status": True}, "physics": physics,
    }  # fmt: skip
    assert [job.retries for job in set_up(scenario_from_dict(said, tmp_path)).jobs] == [0, 3, 3]
    result = simulate(said, record_to=tmp_path / "record.jsonl.gz")
    assert result.jobs["status"].tolist() == ["failed", "finished", "cancelled"]
    assert (result.summary["end_s"], result.jobs["attained_service_s"].tolist()) == (300.0, [100.0] * 3)
    assert result.record is not None
    assert first_difference(result.record) is None


def refused(physics: dict[str, Any], **tables: Any) -> list[tuple[str | None, str]]:
    with pytest.raises(InvalidInput) as caught:
        simulate(asked(physics, **tables))
    assert all(problem.rule and problem.fix for problem in caught.value.problems)
    return [(problem.column, problem.fix) for problem in caught.value.problems]


@pytest.mark.parametrize("key", ["placement", "neighbours", "pairs"])
def test_a_model_that_is_not_there_is_answered_with_the_nearest(key: str) -> None:
    ((column, fix),) = refused({key: "phily" if key != "pairs" else "modeled"})
    assert column == f"physics.{key}"
    assert "did you mean 'philly'" in fix or "did you mean 'modelled'" in fix


@pytest.mark.parametrize(
    ("key", "value"), [("accelerators_per_slot", 2), ("killed", 0.3), ("retries", 5), ("rack_repair_s", 1.0)]
)
def test_a_key_that_does_nothing_alone_is_refused(key: str, value: float) -> None:
    ((column, fix),) = refused({key: value})
    assert column == f"physics.{key}"
    assert "beside it" in fix


@pytest.mark.parametrize(
    ("per_slot", "sizes", "fix"), [(8, (4, 2), "1, 2, 4"), (3, (4,), "1, 2, 4"), (2, (3, 8), "1, 4, 8")]
)
def test_slots_that_machines_are_not_made_of_are_refused(per_slot: int, sizes: tuple[int, ...], fix: str) -> None:
    cluster = {"nodes": [{"type": "v100", "count": 4, "accelerators": size} for size in sizes]}
    ((column, said),) = refused({"placement": "themis", "accelerators_per_slot": per_slot}, cluster=cluster)
    assert column == "physics.accelerators_per_slot"
    assert said == f"give one of {fix}, or 0 for whole machines"


def test_slots_by_type_are_refused_by_type() -> None:
    cluster = {"nodes": [{"type": name, "count": 4, "accelerators": 4} for name in ("v100", "k80")]}
    by_type = {"v100": 2, "k80": 3}
    ((column, said),) = refused({"placement": "themis", "accelerators_per_slot": by_type}, cluster=cluster)
    assert (column, said) == ("physics.accelerators_per_slot.k80", "give one of 1, 2, 4, or 0 for whole machines")
    ((column, said),) = refused({"placement": "themis", "accelerators_per_slot": {"v1000": 2}}, cluster=cluster)
    assert (column, said) == ("physics.accelerators_per_slot.v1000", "did you mean 'v100'?")
    assert (
        set_up(
            scenario_from_dict(
                asked({"placement": "themis", "accelerators_per_slot": {"v100": 2}}, cluster=cluster), Path()
            )
        )
        .topology.slot_sizes()
        .tolist()
        == [2] * 4 + [4] * 4
    )


def test_a_machine_narrower_than_a_slot_is_one() -> None:
    cluster = {"nodes": [{"type": "v100", "accelerators": size} for size in (2, 8)]}
    said = asked({"placement": "themis", "accelerators_per_slot": 4}, cluster=cluster)
    assert set_up(scenario_from_dict(said, Path())).jobs


def test_fractions_of_fates_that_add_up_to_more_than_all_jobs_are_refused() -> None:
    assert refused({"fates": "philly", "failing": 0.7, "killed": 0.4})[0][0] == "physics.failing"


@pytest.mark.parametrize(
    ("world", "physics", "column"),
    [
        ({"node_failures_per_hour": 1e9}, {}, "world.node_failures_per_hour"),
        ({"job_failures_per_hour": 61.0}, {}, "world.job_failures_per_hour"),
        ({"node_failures_per_hour": 1.0, "node_repair_s": 1e6}, {}, "world.node_repair_s"),
        ({}, {"rack_failures_per_hour": 50.0, "rack_repair_s": 86400.0}, "physics.rack_repair_s"),
        # 45 s to start and an hour to the first checkpoint, a loss every 6 minutes: exp(-10) of the tries get there
        ({"node_failures_per_hour": 10.0, "checkpoint_every_s": 3600.0}, {}, "world.node_failures_per_hour"),
        ({}, {"rack_failures_per_hour": 59.0, "rack_repair_s": 1.0}, None),  # 45 s of 61
    ],
)
def test_what_breaks_so_often_that_no_run_would_end_is_refused(
    world: dict[str, float], physics: dict[str, float], column: str | None
) -> None:
    said = asked(physics, world=world)
    if column is None:
        assert set_up(scenario_from_dict(said, Path())).jobs
        return
    with pytest.raises(InvalidInput) as caught:
        set_up(scenario_from_dict(said, Path()))
    assert [problem.column for problem in caught.value.problems] == [column]


def test_real_processes_have_no_modelled_physics() -> None:
    assert refused({"placement": "themis"}, world={"backend": "local"})[0][0] == "physics.placement"


def test_a_table_of_slowdowns_may_be_ones_own_and_is_named_in_the_record(tmp_path: Path) -> None:
    (tmp_path / "slow.csv").write_text("job_type,scale_factor,nodes,slowdown\nLM,4,2,3.0\n")
    setup = set_up(scenario_from_dict(asked({"placement": "slow.csv"}), tmp_path))
    apart = setup.believed.spread_throughput("LM (batch size 5)", 4)  # type: ignore[attr-defined]
    assert setup.truth.solo_throughput("LM (batch size 5)", 4) / apart == pytest.approx(3.0)
    assert "slow.csv" in setup.record_header()["inputs"]


def test_users_cancel_after_as_long_as_the_scenario_says() -> None:
    waits = []
    for mean in (60.0, 6000.0):
        world = {"cancel_fraction": 1.0, "cancel_after_s": mean}
        result = simulate(asked(None, world=world, workload={"generator": "philly-like", "jobs": 200}))
        waits.append(float((result.jobs["status"] == "cancelled").mean()))
    assert waits[0] > waits[1]  # fewer have finished by then


def test_what_a_restore_costs_may_grow_with_the_gang(tmp_path: Path) -> None:
    costs = {"restore_s": 5.0, "restore_by_size": {"9": 58.0, "2": 28.0}}
    overheads = set_up(scenario_from_dict(asked(None, overheads=costs), tmp_path)).overheads
    assert [overheads.of(first=False, size=size) for size in (1, 2, 8, 9)] == [5.0, 28.0, 28.0, 58.0]


@pytest.mark.parametrize("sizes", [{"two": 1.0}, {"0": 1.0}, {"2": -1.0}])
def test_a_size_or_a_cost_that_is_none_is_named(sizes: dict[str, float], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        scenario_from_dict(asked(None, overheads={"restore_by_size": sizes}), tmp_path)
    assert str(caught.value.problems[0].column).startswith(f"overheads.restore_by_size.{next(iter(sizes))}")


@pytest.mark.parametrize("policy", ["kueue_fair_share", "philly"])  # philly asks for places again and again
@pytest.mark.parametrize("physics", [pytest.param(None, marks=pytest.mark.slow), {"placement": "themis"}])
def test_machines_that_go_and_come_keep_no_run_alive_in_which_the_rest_can_never_sit(
    physics: dict[str, Any] | None, policy: str, tmp_path: Path
) -> None:
    head = "job_id,tenant,submitted_s,scale_factor,duration_s,job_type"
    rows = ["a,lab,0,4,3600,any", "never,batch,0,8,60,any", "b,lab,7200,4,3600,any"]
    trace = tmp_path / "jobs.csv"
    trace.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    result = simulate(
        asked(
            physics,
            workload={"trace": str(trace)},
            throughputs={"source": "uniform"},
            tenants={"lab": {"weight": 5}, "batch": {"may_borrow": False}},  # 20 and 4 accelerators
            policy={"name": policy},
            world={"node_failures_per_hour": 0.2, "node_repair_s": 600.0},
        )
    )
    assert dict(zip(result.jobs["job_id"].tolist(), result.jobs["status"].tolist(), strict=True)) == {
        "a": "finished", "b": "finished", "never": "unfinished",
    }  # fmt: skip


@pytest.mark.parametrize("physics", [None, {"placement": "themis"}])
def test_who_needs_all_machines_waits_until_the_last_one_is_back(
    physics: dict[str, Any] | None, tmp_path: Path
) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,submitted_s,scale_factor,duration_s,job_type\nall,36000,24,10,any\n", encoding="utf-8")
    world = {"node_failures_per_hour": 0.5, "node_repair_s": 3600.0}
    for seed in range(5):  # some of them have a machine away at 36,000 s
        found = asked(physics, workload={"trace": str(trace)}, throughputs={"source": "uniform"}, world=world)
        result = simulate({**found, "seed": seed})
        assert result.summary["jobs_finished"] == 1


@pytest.mark.parametrize("physics", [None, {"placement": "themis"}])
def test_long_waits_that_end_are_waited_for(physics: dict[str, Any] | None, tmp_path: Path) -> None:
    """A price that grows with waiting, a repair of a day under short rounds, restarts without checkpoints."""
    trace = tmp_path / "jobs.csv"

    def finished(row: str, **more: Any) -> float | int | None:
        trace.write_text(f"job_id,submitted_s,scale_factor,duration_s,job_type\n{row},any\n", encoding="utf-8")
        return simulate(
            asked(physics, workload={"trace": str(trace)}, throughputs={"source": "uniform"}, overheads={}, **more)
        ).summary["jobs_finished"]

    two = {"accelerators": {"v100": 2, "k80": 4}}
    assert finished("j,0,4,1000", cluster=two, policy={"name": "quincy", "transfer": 30_000.0}, world={}) == 1
    one = {"nodes": [{"type": "v100", "count": 1, "accelerators": 4}]}
    rounds = {"policy": {"name": "max_min_fairness"}, "mechanism": {"length_s": 6.0}}
    failing = {"node_failures_per_hour": 0.05, "node_repair_s": 86_400.0, "checkpoint_every_s": 3600.0}
    assert finished("j,0,4,20000", cluster=one, world=failing, **rounds) == 1
    many = {"nodes": [{"type": "v100", "count": 300, "accelerators": 1}]}
    rare = {"node_failures_per_hour": 0.1, "checkpoint_every_s": 72_000.0}
    found = asked(
        physics, cluster=many, overheads={}, world=rare, policy={"name": "fifo"}, throughputs={"source": "uniform"}
    )
    trace.write_text("job_id,submitted_s,scale_factor,duration_s,job_type\nj,0,1,144000,any\n", encoding="utf-8")
    assert simulate({**found, "workload": {"trace": str(trace)}, "seed": 4}).summary["jobs_finished"] == 1


@pytest.mark.parametrize(
    ("aways", "wakes", "seconds", "most"),
    [((0,), True, 1800.0, 2 * 24 * 30), ((0,), True, 7200.0, MOMENTS - 1), ((1, 2), False, 3600.0, OUTAGES - 1),
     ((1, 2), True, 3600.0, OUTAGES - 1)],
)  # fmt: skip
def test_where_something_always_changes_it_is_given_up_in_the_end(
    aways: tuple[int, ...], wakes: bool, seconds: float, most: int
) -> None:
    """After thirty days and a thousand moments, and where machines are away after ten thousand comings and goings."""
    watch, moments = StallDetector(), 0
    while not watch.is_final(moments * seconds, True, aways[moments % len(aways)], wakes):
        moments += 1
    assert moments == most
    assert "given up: no job ran for 30 days" in watch.reason
    assert not watch.is_final(moments * seconds, False, aways[0], wakes)
    assert not watch.is_final(moments * seconds, True, aways[0], wakes)  # it is counted anew
    assert watch.is_final(moments * seconds, True, away=0, wakes=False)


@pytest.mark.parametrize("physics", [None, {"placement": "themis"}])
def test_a_run_in_which_restarts_eat_every_lease_is_given_up_and_says_so(
    physics: dict[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall_detection, "STARTS", 200)
    trace = tmp_path / "jobs.csv"
    rows = "".join(f"j{m},0,12,1000,any\n" for m in range(4))
    trace.write_text(f"job_id,submitted_s,scale_factor,duration_s,job_type\n{rows}", encoding="utf-8")
    for restore_s, finished in ((100.0, 4), (300.0, 0)):
        result = simulate(
            asked(
                physics,
                workload={"trace": str(trace)},
                throughputs={"source": "uniform"},
                policy={"name": "astraea"},
                mechanism={"length_s": 300.0},
                overheads={"restore_s": restore_s},
                world={},
            )
        )
        assert result.summary["jobs_finished"] == finished
        assert any("given up: jobs were started 200 times" in said for said in result.endings) == (not finished)


def test_a_job_that_progresses_ends_or_keeps_its_seats_is_not_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall_detection, "STARTS", 2)

    def gives_up(*looks: tuple[int, int, list[float], list[int]]) -> list[bool]:
        watch = StallDetector()
        return [
            watch.is_stalled(starts, left, partial(lambda s, e: (np.array(s), np.array(e)), steps, epoch))
            for starts, left, steps, epoch in looks
        ]

    assert gives_up((2, 2, [5.0, 0.0], [3, 0]), (4, 2, [5.0, 0.0], [0, 4])) == [False, True]
    assert gives_up((2, 2, [5.0, 0.0], [3, 0]), (3, 2, [5.0, 0.0], [0, 4])) == [False, False]
    assert gives_up((2, 2, [5.0, 0.0], [3, 0]), (4, 2, [5.0, 1.0], [0, 4])) == [False, False]
    assert gives_up((2, 2, [5.0, 0.0], [3, 0]), (4, 1, [5.0, 0.0], [0, 4])) == [False, False]
    assert gives_up((2, 2, [5.0, 0.0], [3, 0]), (4, 2, [5.0, 0.0], [3, 0])) == [False, False]
