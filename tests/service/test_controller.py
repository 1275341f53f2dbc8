"""What the controller makes of requests and reports, and that a restart forgets nothing of it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from tests.service.bench import ADMIN, ANN, BOB, OPERATOR, SITE, Bench

from eunomia.backends.reports import (
    GangEnded,
    GangFound,
    LaunchDelayed,
    Launched,
    MemoryUsed,
    NodeState,
    OrderTaken,
    SeatsIdle,
    SeatsTaken,
    StepsSaved,
)
from eunomia.records.scheduler_digest import digest
from eunomia.service import living_state
from eunomia.service.core_job import core_job
from eunomia.service.draining import NOW
from eunomia.service.living_state import why
from eunomia.service.messages import Cancel, ChangeJob, ChangeNode, Halt, Hold, Launch, Release, Request
from eunomia.service.site import load_site
from eunomia.service.site_change import apply_site
from eunomia.service.store import SqliteStore, StoreProblem, opening
from eunomia.service.store.reader import Reader
from eunomia.service.store.row_sums import COLUMNS, SINCE
from eunomia.service.store.schema import VERSION
from eunomia.service.turn import Turn
from eunomia.service.typed_speeds import TypedSpeeds
from eunomia.service.writer import Writer


def launched(bench: Bench) -> list[str]:
    """Let the world carry out all launches."""
    orders = [order for order in bench.orders if isinstance(order, Launch)]
    bench.do(*(report for o in orders for report in (OrderTaken(o.number), Launched(o.job_id, o.epoch))))
    return [order.job_id for order in orders]


def test_a_job_is_launched_runs_and_succeeds(bench: Bench) -> None:
    job = bench.submit(accelerators=2, duration_s=60).body["id"]
    assert [(o.job_id, o.epoch, o.seats) for o in bench.orders if isinstance(o, Launch)] == [(job, 1, (0, 1))]
    assert launched(bench) == [job]
    assert bench.state(job) == "running"
    bench.clock.at = 5.0
    bench.do(GangEnded(job, 1, "finished"))
    assert bench.state(job) == "succeeded"
    assert bench.store.unsent() == {}


def test_the_same_key_gives_the_same_job_and_another_body_is_refused_by_its_field(bench: Bench) -> None:
    first = bench.submit(key="same-key", name="a")
    assert first.status == 201
    for _ in range(2):
        again = bench.submit(key="same-key", name="a")
        assert (again.status, again.body["id"]) == (200, first.body["id"])
        bench.restart()
    other = bench.submit(key="same-key", name="b")
    assert (other.status, other.problems[0].field) == (409, "name")
    assert bench.submit(BOB, key="same-key", name="a").status == 201  # another tenant's keys are its own


def test_the_least_served_job_preempts_and_the_other_goes_on_from_its_checkpoint(bench: Bench) -> None:
    first = bench.submit(accelerators=2, duration_s=1000).body["id"]
    launched(bench)
    bench.clock.at = 100.0
    bench.do(StepsSaved(first, 1, 80.0))
    second = bench.submit(BOB, accelerators=2, duration_s=10).body["id"]
    halts = [order for order in bench.orders if isinstance(order, Halt)]
    assert [(halt.job_id, halt.save) for halt in halts] == [(first, True)]
    assert bench.state(first) == "stopping"
    bench.do(GangEnded(first, 1, "stopped"))
    assert bench.state(first) == "preempted"
    bench.do(Launched(second, 1), GangEnded(second, 1, "finished"))
    assert [(o.job_id, o.epoch) for o in bench.orders if isinstance(o, Launch)] == [(first, 2)]


def test_a_restart_comes_to_the_same_state_and_orders_again_what_runs(bench: Bench) -> None:
    jobs = [bench.submit(name=f"job-{n}").body["id"] for n in range(4)]
    bench.do(Launched(jobs[0], 1))
    before, ids = digest(bench.controller.scheduler), bench.controller.incarnation
    for snapshot in (False, True):
        if snapshot:
            assert bench.writer.snapshot()
        bench.restart()
        assert digest(bench.controller.scheduler) == before
        assert [(o.job_id, o.adopt_only) for o in bench.orders] == [(jobs[0], True), (jobs[1], False)]
        assert bench.controller.incarnation != ids
        bench.controller.check()
    assert bench.submit().body["id"] not in jobs


def test_a_snapshot_is_stored_as_the_state_was_when_it_was_begun_and_turns_go_on_meanwhile(bench: Bench) -> None:
    writer, before = bench.writer, bench.store.last_seq()
    bench.submit(duration_s=50)
    seq, state = bench.store.last_seq(), digest(bench.controller.scheduler)
    writer._begin_snapshot()
    later = bench.submit(duration_s=70).body["id"]
    _hand_back(writer)
    assert next(bench.store.snapshots())[:2] == (seq, state) and bench.store.last_seq() > seq > before
    after = digest(bench.controller.scheduler)
    bench.restart()
    assert digest(bench.controller.scheduler) == after and later in bench.controller.rows


def test_a_snapshot_that_is_written_while_the_site_is_changed_is_not_stored(bench: Bench) -> None:
    bench.submit(duration_s=50)
    bench.writer._begin_snapshot()
    bench.writer.begin_era(bench.site, {})
    stored = [seq for seq, *_ in bench.store.snapshots()]
    _hand_back(bench.writer)
    assert [seq for seq, *_ in bench.store.snapshots()] == stored


def _hand_back(writer: Writer) -> None:
    """Let the thread of a snapshot end, and do what it has put into the writer's queue."""
    assert writer._writing is not None
    writer._writing.join()
    writer.handle(writer._inbox.take(0.0, 1)[0])


def test_a_replay_that_decides_otherwise_stops_the_start(bench: Bench) -> None:
    bench.submit()
    bench.store.close()
    db = sqlite3.connect(bench.site.state / "store.db")
    db.execute("UPDATE moments SET row_sum = NULL, lines = replace(lines, '\"seats\":[0]', '\"seats\":[1]')")
    db.commit()
    db.close()
    with pytest.raises(StoreProblem, match="other decisions"):
        bench.restart()
    bench.store = SqliteStore.open(bench.site.state)


def test_a_digest_that_differs_stops_the_start_and_both_are_named(bench: Bench) -> None:
    bench.submit()
    bench.writer.snapshot()
    db = bench.store._db
    db.execute("UPDATE snapshots SET row_sum = NULL, digest = 'ffff'")
    with pytest.raises(StoreProblem, match=r"has digest .*, and ffff was stored"):
        bench.restart()
    bench.store = SqliteStore.open(bench.site.state)


def test_a_cancelled_job_never_starts_again_and_its_late_end_is_taken(bench: Bench) -> None:
    job = bench.submit(accelerators=2).body["id"]
    launched(bench)
    other = bench.submit(BOB, accelerators=2).body["id"]
    (reply,) = bench.do(Request(Cancel(job), ANN))
    assert reply is not None
    assert reply.status == 200
    bench.restart()
    assert bench.state(job) == "cancelled"
    assert {type(order).__name__ for order in bench.orders if order.job_id == job} == {"Launch", "Halt"}
    bench.do(GangEnded(job, 1, "stopped"))
    assert job not in bench.controller.rows
    assert bench.state(other) in ("starting", "running")


def test_others_jobs_answer_as_unknown_ones_and_only_owners_change_a_job(bench: Bench) -> None:
    job = bench.submit().body["id"]
    for action in (Cancel(job), Hold(job), Release(job), ChangeJob(job, {"weight": 2.0})):
        unknown = type(action)(*("9-zzzzz", *([{"weight": 2.0}] if isinstance(action, ChangeJob) else [])))
        foreign, absent = bench.do(Request(action, BOB), Request(unknown, BOB))
        assert foreign == absent
        assert foreign is not None
        assert foreign.status == 404
    viewer, held = bench.do(Request(Hold(job), type(ANN)("ann", "vision", "viewer")), Request(Hold(job), ADMIN))
    assert viewer is not None
    assert held is not None
    assert (viewer.status, held.status) == (403, 200)


def test_a_held_job_waits_until_it_is_released(bench: Bench) -> None:
    job = bench.submit().body["id"]
    launched(bench)
    bench.do(Request(Hold(job), ANN))
    assert bench.state(job) == "held"
    bench.do(GangEnded(job, 1, "stopped"))
    bench.restart()
    assert bench.orders == []
    bench.do(Request(Release(job), ANN))
    assert [(o.job_id, o.epoch) for o in bench.orders] == [(job, 2)]
    bench.do(Request(Hold(job), ANN), Request(Release(job), ANN))  # in one batch, in their order
    assert bench.state(job) in ("pending", "starting")


def test_a_follower_starts_after_its_job_and_is_cancelled_if_that_fails(bench: Bench) -> None:
    first = bench.submit().body["id"]
    launched(bench)
    good = bench.submit(after=[first]).body["id"]
    chained = bench.submit(after=[good]).body["id"]
    assert bench.state(good) == "pending"
    assert bench.orders == []
    bench.restart()
    bench.do(GangEnded(first, 1, "finished"))
    assert [o.job_id for o in bench.orders] == [good]
    bench.do(Launched(good, 1), GangEnded(good, 1, "failed", "exit code 1"))
    assert (bench.state(good), bench.state(chained)) == ("failed", "cancelled")
    assert bench.submit(after=["7-none"]).problems[0].field == "after"


def test_a_held_follower_remembers_over_a_restart_that_its_job_has_succeeded(bench: Bench) -> None:
    first = bench.submit().body["id"]
    launched(bench)
    follower = bench.submit(after=[first]).body["id"]
    bench.do(Request(Hold(follower), ANN))
    bench.do(GangEnded(first, 1, "finished"))
    bench.restart()
    bench.do(Request(Release(follower), ANN))
    assert [order.job_id for order in bench.orders] == [follower]


def test_a_failing_job_waits_longer_before_each_attempt_and_then_has_failed(bench: Bench) -> None:
    job = bench.submit(retries=2).body["id"]
    for attempt, wait in ((1, 1.0), (2, 2.0)):
        bench.do(Launched(job, attempt), GangEnded(job, attempt, "failed", "exit code 1"))
        assert bench.controller.due() == bench.clock.at + wait
        assert bench.orders == []
        bench.clock.at += wait
        bench.do()
        assert [(o.job_id, o.epoch) for o in bench.orders] == [(job, attempt + 1)]
    bench.do(Launched(job, 3), GangEnded(job, 3, "failed", "exit code 1"))
    assert bench.state(job) == "failed"
    row = bench.store.job(job)
    assert row is not None
    assert "exit code 1" in row.reason
    said = [
        json.loads(detail)["reason"] for *_, kind, detail in Reader(bench.site.place).job_news(job) if kind == "pending"
    ]
    assert [one.partition(":")[0] for one in said if one] == [
        "it failed, and is tried again in 1 s", "it failed, and is tried again in 2 s", "it failed"
    ]  # fmt: skip


def lose(bench: Bench, job: str, epoch: int, **how: bool) -> None:
    bench.do(Launched(job, epoch), GangEnded(job, epoch, "lost", "its supervisor was killed", **how))


def test_a_lost_supervisor_costs_no_attempt_and_a_fourth_one_without_progress_ends_the_job(bench: Bench) -> None:
    job = bench.submit().body["id"]
    for epoch in range(1, 4):
        lose(bench, job, epoch)
        assert bench.state(job) == "starting"
    lose(bench, job, 4)
    assert bench.state(job) == "failed"
    row = bench.store.job(job)
    assert row is not None
    assert row.reason == "its supervisor was killed, 4 times in a row without progress"


def test_a_job_whose_checkpoints_advance_never_fails_for_lost_supervisors(bench: Bench) -> None:
    job = bench.submit(total_steps=1000).body["id"]
    for epoch in range(1, 10):
        bench.do(StepsSaved(job, epoch, 10.0 * epoch))
        lose(bench, job, epoch)
        assert bench.state(job) == "starting"
    for epoch in range(10, 13):  # from here on it does not advance; the loss before was the first of four
        if epoch == 11:
            bench.restart()
        lose(bench, job, epoch)
    assert bench.state(job) == "failed"


def test_a_machine_that_was_started_again_says_nothing_about_its_jobs(bench: Bench) -> None:
    job = bench.submit().body["id"]
    for epoch in range(1, 10):
        lose(bench, job, epoch, by_restart=True)
    assert bench.state(job) == "starting"


def test_a_job_that_its_machine_has_no_room_for_says_so_until_it_runs(bench: Bench) -> None:
    job = bench.submit().body["id"]
    bench.do(LaunchDelayed(job, 1, "this machine has no open files left for it"))
    found = why(bench.controller, bench.controller.rows[job], 0.0)
    assert bench.state(job) == "starting"
    text = "it has accelerators, but cannot be started yet: this machine has no open files left for it"
    assert [(one["code"], one["text"]) for one in found["reasons"]] == [("backoff", text)]
    bench.do(Launched(job, 1))
    assert why(bench.controller, bench.controller.rows[job], 0.0)["reasons"] == []


def test_reports_of_earlier_epochs_change_nothing_and_are_counted(bench: Bench) -> None:
    job = bench.submit().body["id"]
    bench.do(Launched(job, 1), GangEnded(job, 1, "lost"))
    before = digest(bench.controller.scheduler)
    bench.do(GangEnded(job, 1, "finished"), StepsSaved(job, 1, 5.0), Launched(job, 1), GangEnded(job, 7, "finished"))
    assert digest(bench.controller.scheduler) == before
    assert bench.controller.stale_reports == 4


def test_a_job_that_finishes_while_it_is_stopped_does_not_run_again(bench: Bench) -> None:
    job = bench.submit(accelerators=2).body["id"]
    launched(bench)
    bench.clock.at = 50.0
    other = bench.submit(BOB, accelerators=2).body["id"]
    bench.do(GangEnded(job, 1, "finished"))
    bench.restart()
    bench.do(Launched(other, 1), GangEnded(other, 1, "finished"))
    assert bench.orders == []
    assert bench.state(job) == "succeeded"


def test_a_job_longer_than_its_limit_is_stopped(bench: Bench) -> None:
    job = bench.submit(max_run_s=30).body["id"]
    launched(bench)
    bench.restart()
    assert bench.controller.due() == 30.0
    bench.clock.at = 30.0
    bench.do()
    assert [(type(o).__name__, o.job_id) for o in bench.orders] == [("Halt", job)]
    assert bench.state(job) == "failed"


def test_a_drained_node_gives_its_jobs_back_and_gets_none_until_it_is_resumed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE.replace("{ cpu = 2 }", "{ cpu = 2 }\naccelerators_per_node = 1"))
    job = bench.submit().body["id"]
    launched(bench)
    (refused,) = bench.do(Request(ChangeNode("cpu-0", "drain"), ANN))
    assert refused is not None
    assert refused.status == 403
    (reply,) = bench.do(Request(ChangeNode("cpu-0", "drain", "new fans", NOW), OPERATOR))
    assert reply is not None
    assert reply.body["moved"] == [job]
    halt, launch = bench.orders
    assert isinstance(halt, Halt)
    assert halt.save
    assert (launch.job_id, launch.seats) == (job, (1,))
    bench.restart()
    assert bench.controller.drained == {0: "new fans"}
    bench.submit(accelerators=1)
    assert bench.orders == []
    bench.do(Request(ChangeNode("cpu-0", "resume"), OPERATOR))
    assert len(bench.orders) == 1
    bench.store.close()


def test_a_removed_node_counts_no_more_and_only_an_operator_brings_it_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE.replace("{ cpu = 2 }", "{ cpu = 2 }\naccelerators_per_node = 1"))
    job = bench.submit().body["id"]
    wide = bench.submit(accelerators=2).body["id"]
    launched(bench)
    assert living_state.would_not_fit(bench.controller, "cpu-0") == [wide]
    (refused,) = bench.do(Request(ChangeNode("cpu-0", "remove"), ANN))
    assert refused is not None
    assert refused.status == 403
    (reply,) = bench.do(Request(ChangeNode("cpu-0", "remove", "sold"), OPERATOR))
    assert reply is not None
    assert (reply.body["state"], reply.body["moved"]) == ("removed", [job])
    bench.do(GangEnded(job, 1, "stopped"))
    for _ in range(3):
        assert [(one["state"], one["reason"]) for one in living_state.nodes(bench.controller)] == [
            ("removed", "removed: sold"), ("up", None)
        ]  # fmt: skip
        found = living_state.cluster(bench.controller)
        assert (found["nodes"], found["types"]["cpu"]["total"]) == (1, 1)
        assert bench.submit(accelerators=2).problems[0].field == "accelerators"
        bench.do(NodeState(0, ""))  # the engine still lists it
        bench.do(Request(ChangeNode("cpu-0", "drain", "removed: x"), OPERATOR))
        bench.restart()
        if _ == 1:  # a changed policy keeps it removed
            changed = bench.path.read_text().replace("quantum = 60", "quantum = 90")
            bench.path.write_text(changed)
            apply_site(bench.writer, load_site(bench.path), OPERATOR, "test")
    assert bench.store._db.execute("SELECT count(*) FROM news WHERE kind = 'NodeRemoved'").fetchone()[0] >= 1
    bench.do(Request(ChangeNode("cpu-0", "resume"), OPERATOR))
    assert living_state.cluster(bench.controller)["types"]["cpu"]["total"] == 2
    assert bench.submit(accelerators=2).status == 201
    bench.do(Request(ChangeNode("cpu-1", "drain", "removed: by a trick", NOW), OPERATOR))
    assert living_state.nodes(bench.controller)[1]["state"] == "draining"  # a gang that was stopped has not ended
    bench.do(Request(ChangeNode("cpu-1", "remove"), OPERATOR))  # a drained one may be removed too
    assert living_state.nodes(bench.controller)[1]["state"] == "removed"
    bench.store.close()


def test_a_length_that_is_not_declared_is_the_median_of_like_jobs_and_marked_as_estimated(bench: Bench) -> None:
    for length in (10.0, 30.0, 80.0):
        job = bench.submit(job_type="cnn").body["id"]
        launched(bench)
        bench.clock.at += length
        bench.do(GangEnded(job, 1, "finished"))
    bench.restart()
    row = bench.controller.rows[bench.submit(job_type="cnn").body["id"]]
    assert (row.estimated, row.total_steps) == (True, 30.0)
    assert bench.controller.rows[bench.submit(job_type="other").body["id"]].total_steps == 3600.0


def test_an_array_is_one_job_for_each_index_and_too_many_waiting_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE.replace("[cluster]", "max_pending_per_tenant = 4\n[cluster]"))
    ids = bench.submit(array="3-6").body["ids"]
    assert [row.array_index for row in map(bench.store.job, ids) if row is not None] == [3, 4, 5, 6]
    assert bench.submit(array="0-3").status == 429
    assert bench.submit(BOB, array="0-3").status == 201
    bench.store.close()


@pytest.mark.parametrize(
    ("document", "field"),
    [({"accelerators": 3}, "accelerators"), ({"types": ["h100"]}, "types"), ({"tenant": "speech"}, "tenant"),
     ({"after": ["1-x"]}, "after")],
)  # fmt: skip
def test_what_cannot_run_here_is_refused_with_its_field_and_changes_nothing(
    bench: Bench, document: dict[str, object], field: str
) -> None:
    bench.do()
    before = bench.store._db.execute("SELECT count(*) FROM moments").fetchone()
    reply = bench.submit(**document)
    assert (reply.status, [problem.field for problem in reply.problems]) == (422, [field])
    assert bench.controller.rows == {}
    assert bench.store._db.execute("SELECT count(*) FROM moments").fetchone() == before


def test_a_changed_site_keeps_the_jobs_their_epochs_and_their_progress(bench: Bench) -> None:
    jobs = [bench.submit(name=f"job-{n}").body["id"] for n in range(3)]
    launched(bench)
    bench.do(StepsSaved(jobs[0], 1, 7.0))
    bench.restart(SITE.replace('"las"', '"fifo"').replace("quantum = 60", ""))
    assert [bench.state(job) for job in jobs] == ["starting", "starting", "pending"]  # not launched so far
    assert [(o.job_id, o.epoch) for o in bench.orders if isinstance(o, Launch)] == [(jobs[0], 1), (jobs[1], 1)]
    assert not [o for o in bench.orders if isinstance(o, Halt)]
    bench.controller.check()
    assert {(row.id, row.epoch, row.steps) for row in bench.controller.rows.values()} == {
        (jobs[0], 1, 7.0), (jobs[1], 1, 0.0), (jobs[2], 0, 0.0)
    }  # fmt: skip
    bench.restart()
    bench.controller.check()


def test_a_seat_that_others_use_is_given_to_no_job_until_they_have_left(bench: Bench) -> None:
    bench.do(SeatsTaken(((0, "python (process 7) of user eve"),)))
    first, second = (bench.submit(name=f"job-{n}").body["id"] for n in range(2))
    assert bench.controller.rows[first].seats == (1,)
    assert bench.orders == []
    found = living_state.why(bench.controller, bench.controller.rows[second], 0.0)
    assert found["reasons"][-1]["text"] == "accelerator 0 (cpu) is used by python (process 7) of user eve"
    assert bench.submit(accelerators=2).status == 201  # it waits: they may leave
    bench.restart()
    bench.controller.check()
    assert living_state.cluster(bench.controller)["types"]["cpu"]["taken"] == 1
    bench.do(SeatsTaken(()))
    assert [(o.job_id, o.seats) for o in bench.orders] == [(second, (0,))]
    assert living_state.nodes(bench.controller)[0]["taken"] == {}


def test_a_gang_that_is_taken_back_gives_no_job_a_seat_that_others_were_known_to_use(bench: Bench) -> None:
    bench.do(SeatsTaken(((0, "python of user eve"), (1, "a gang"))))
    found, other = (bench.submit(name=f"job-{n}").body["id"] for n in range(2))
    bench.restart()  # who uses the seats is not reported again yet
    bench.do(GangFound(found, 1, (1,)))
    assert [(order.job_id, order.seats) for order in bench.orders if isinstance(order, Launch)] == [(found, (1,))]
    assert bench.state(other) == "pending"
    bench.do(SeatsTaken(((0, "python of user eve"),)))
    assert bench.state(other) == "pending"
    bench.controller.check()


@pytest.mark.parametrize("placements", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_seats_that_strangers_use_are_given_to_none_of_many_random_jobs(placements: int, tmp_path: Path) -> None:
    text = SITE.replace("{ cpu = 2 }", "{ v100 = 12, k80 = 4 }").replace(
        '"las"\nquantum = 60', '"fifo"\nbackfill = "skip"'
    )
    bench, rng = Bench(tmp_path, text.replace("check = true\n", "")), np.random.default_rng(3)
    bench.store._db.execute("PRAGMA synchronous = OFF")  # nothing is killed here
    running: dict[str, Launch] = {}
    placed = waited = 0
    while placed < placements:
        bench.clock.at += 10.0
        taken = frozenset(rng.choice(16, rng.integers(0, 9), replace=False).tolist())
        ended = [GangEnded(job, running.pop(job).epoch, "finished") for job in list(running) if rng.random() < 0.7]
        bench.do(SeatsTaken(tuple((seat, "python of user eve") for seat in sorted(taken))), *ended)
        launches = list(bench.orders)
        while len(bench.controller.rows) < len(running) + len(launches) + 4:
            bench.submit(accelerators=int(rng.choice([1, 1, 2, 4])))
            launches += bench.orders
        for order in launches:
            assert taken.isdisjoint(order.seats)
            assert not any(set(order.seats) & set(other.seats) for other in running.values())
            running[order.job_id] = order
        bench.do(*(Launched(order.job_id, order.epoch) for order in launches))
        placed += len(launches)
        waited += len(bench.controller.rows) - len(running)
    assert waited > placements / 4  # so that seats were wanted
    bench.store.close()


def test_a_seat_that_others_use_beside_a_gang_is_out_of_service_once_the_gang_has_left(bench: Bench) -> None:
    jobs = [bench.submit(name=f"job-{n}").body["id"] for n in range(3)]
    launched(bench)
    bench.do(SeatsTaken(((0, "x"),)))
    assert bench.state(jobs[0]) == "starting"
    bench.do(GangEnded(jobs[0], 1, "finished"))
    assert bench.orders == []
    bench.restart()
    bench.do(SeatsTaken(((0, "x"),)), GangEnded(jobs[1], 1, "finished"))
    assert [(o.job_id, o.seats) for o in bench.orders] == [(jobs[2], (1,))]
    assert [kind for *_, kind, _ in bench.store._db.execute("SELECT * FROM news WHERE job = ''")] == ["seat_taken"] * 2


def test_memory_of_like_jobs_is_learnt_and_jobs_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE.replace("[cluster]", "accelerator_memory_gib = { cpu = 16 }\n[cluster]"))
    refused = bench.submit(accelerator_memory_gib=17)
    assert (refused.status, refused.problems[0].field) == (422, "accelerators")
    job = bench.submit(job_type="cnn").body["id"]
    bench.do(Launched(job, 1), MemoryUsed(job, 1, 9.0), MemoryUsed(job, 1, 8.0))
    bench.do(GangEnded(job, 1, "finished"))
    bench.restart()
    like = bench.controller.rows[bench.submit(job_type="cnn").body["id"]]
    assert like.memory_gib == 9.0
    assert core_job(like).job_type == "cnn||9"
    bench.store.close()


def test_two_jobs_share_an_accelerator_only_where_their_memory_is_known_to_fit() -> None:
    class Pairs:
        types = ("v100", "k80")

        def solo_throughput(self, job_type: str, scale_factor: int) -> np.ndarray:
            return np.ones(2)

        def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> np.ndarray:
            return np.full(2, 0.6)

    speeds = TypedSpeeds(Pairs(), {"v100": 16.0})  # type: ignore[arg-type]
    pairs = {("a||8", "b||8"): [0.6, 0.6], ("a||8", "b||9"): [0.0, 0.6], ("a||8", "b"): [0.0, 0.6]}
    for (one, other), expected in pairs.items():
        assert speeds.packed_throughput(one, other, 1).tolist() == expected
    assert speeds.solo_throughput("a|k80|12", 1).tolist() == [0.0, 1.0]
    assert speeds.solo_throughput("a||17", 1).tolist() == [0.0, 1.0]


def test_a_job_that_names_no_type_gets_no_place_for_cpu_jobs_unless_there_is_no_other(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE.replace("{ cpu = 2 }", "{ v100 = 1, cpu = 1 }"))
    jobs = [bench.submit(name=f"job-{n}").body["id"] for n in range(2)]
    plain = bench.submit(types=["cpu"]).body["id"]
    types = {job: [bench.controller.device_types[seat] for seat in bench.controller.rows[job].seats]
             for job in (*jobs, plain)}  # fmt: skip
    assert types == {jobs[0]: ["v100"], jobs[1]: [], plain: ["cpu"]}
    bench.store.close()


def test_the_summary_says_who_got_what(bench: Bench) -> None:
    job = bench.submit(accelerators=2).body["id"]
    bench.clock.at = 60.0
    bench.do(Launched(job, 1))
    bench.clock.at = 3660.0
    bench.do(GangEnded(job, 1, "finished"))
    bench.submit(BOB)
    reader, live = Reader(bench.site.state), list(bench.controller.rows.values())
    sums, rows = reader.ended_since(0.0)
    found = living_state.summary([*rows, *live], 3660.0, sums)
    assert [(one["user"], one["jobs"], one["accelerator_h"], one["queueing_mean_s"]) for one in found] == [
        ("ann", {"succeeded": 1}, 2.0, 60.0), ("bob", {"starting": 1}, 0.0, None)
    ]  # fmt: skip
    assert reader.ended_since(3660.0, "vision") == ([], [bench.store.job(job)])  # not a whole hour
    assert reader.ended_since(3660.0, "speech") == reader.ended_since(3661.0) == ([], [])


def test_idle_accelerators_are_flagged_with_their_job(bench: Bench) -> None:
    job = bench.submit().body["id"]
    launched(bench)
    bench.clock.at = 2000.0
    bench.do(SeatsIdle(((0, 1900.0),)))
    assert living_state.nodes(bench.controller)[0]["idle"] == [0]
    assert bench.store._db.execute("SELECT job FROM news WHERE kind = 'seat_idle'").fetchall() == [(job,)]
    bench.do(SeatsIdle(()))
    assert living_state.nodes(bench.controller)[0]["idle"] == []


# ---- the store -------------------------------------------------------------------------------------------------------


def test_two_services_do_not_share_a_store_and_the_holder_is_named(bench: Bench) -> None:
    with pytest.raises(StoreProblem, match=r"another service uses this folder \(process \d+ on "):
        SqliteStore.open(bench.site.state)


@pytest.mark.parametrize("damage", ["empty", "text", "gone", "newer", "foreign"])
def test_a_damaged_store_is_refused_and_never_replaced(bench: Bench, damage: str) -> None:
    bench.submit()
    bench.store.close()
    path = bench.site.state / "store.db"
    (bench.site.state / "operator.token").touch(mode=0o600)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_bytes(b"no database at all" * 100)
    elif damage == "gone":
        path.unlink()
    else:
        db = sqlite3.connect(path)
        db.execute(f"PRAGMA user_version = {VERSION + 1}" if damage == "newer" else "PRAGMA application_id = 7")
        db.close()
    content = path.read_bytes() if path.exists() else None
    with pytest.raises(StoreProblem):
        SqliteStore.open(bench.site.state)
    assert (path.read_bytes() if path.exists() else None) == content
    path.unlink(missing_ok=True)
    for left in ("operator.token", "store.head"):
        (bench.site.state / left).unlink()
    bench.store = SqliteStore.open(bench.site.state)


def test_a_folder_that_others_may_read_is_refused(bench: Bench) -> None:
    bench.store.close()
    bench.site.state.chmod(0o755)
    with pytest.raises(StoreProblem, match="chmod 700"):
        SqliteStore.open(bench.site.state)
    bench.site.state.chmod(0o700)
    bench.store = SqliteStore.open(bench.site.state)


def test_an_older_store_is_migrated_after_a_backup_and_a_half_migration_is_repeated(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = bench.submit().body["id"]
    summed = [f"ALTER TABLE {table} DROP COLUMN row_sum" for table in COLUMNS if table not in (*SINCE, "tenant_hours")]
    for made_later in ("DROP INDEX IF EXISTS jobs_by_tenant", "DROP TABLE forecasts", "DROP TABLE tenant_hours",
                       "DROP TABLE drains", "DROP TABLE maintenance",
                       "ALTER TABLE tokens DROP COLUMN parent", *summed):  # fmt: skip
        bench.store._db.execute(made_later)
    bench.store._db.execute("PRAGMA user_version = 1")
    bench.store.close()

    def fail(name: str) -> None:
        if name == "migrate.half":
            raise RuntimeError(name)

    monkeypatch.setattr(opening, "faultpoint", fail)
    with pytest.raises(RuntimeError):
        SqliteStore.open(bench.site.state)
    monkeypatch.undo()
    assert (bench.site.state / "store.version-1.backup.db").exists()
    bench.restart()
    assert bench.store._db.execute("PRAGMA user_version").fetchone()[0] == VERSION
    assert bench.state(job) == "starting"


def test_a_seat_with_two_holders_breaks_the_whole_turn(bench: Bench) -> None:
    bench.submit()
    job = bench.submit().body["id"]
    row = bench.controller.rows[job]
    row.seats = (0,)
    turn = Turn(0.0, rows={job: row})
    with pytest.raises(sqlite3.IntegrityError):
        bench.store.commit(turn, bench.clock.stored(0.0))


def test_a_changed_entry_of_the_audit_log_is_named(bench: Bench) -> None:
    for _ in range(3):
        bench.submit()
    assert bench.store.problems() == []
    bench.store._db.execute("UPDATE audit SET user = 'mallory' WHERE seq = 2")
    assert bench.store.problems() == ["the audit log was changed at entry 2"]


def test_ids_are_not_used_twice_though_an_older_store_is_put_back(bench: Bench, tmp_path: Path) -> None:
    bench.submit()
    bench.store.backup(tmp_path / "old.db")
    later = bench.submit().body["id"]
    bench.store.close()
    from eunomia.service.store.backup import put_back

    assert put_back(tmp_path / "old.db", bench.site.state) is not None
    bench._open()
    assert bench.submit().body["id"] != later
