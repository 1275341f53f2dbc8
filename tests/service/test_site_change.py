"""A site that changes while the service runs, and what a restart makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.service.bench import ANN, BOB, OPERATOR, SITE, Bench

from eunomia.backends.reports import Launched, SeatsTaken, StepsSaved
from eunomia.inputs.problems import InvalidInput
from eunomia.records.scheduler_digest import digest
from eunomia.service import living_state
from eunomia.service.controller import Controller
from eunomia.service.messages import ChangeNode, Request
from eunomia.service.site import load_site
from eunomia.service.site_change import apply_site, difference, effective_site, overridden

FIFO = SITE.replace('"las"', '"fifo"').replace("quantum = 60\n", "")


def change(bench: Bench, text: str) -> list[str]:
    """Write the site file and apply it; return what changed."""
    bench.path.write_text(text)
    found = list(apply_site(bench.writer, load_site(bench.path), OPERATOR, "test").lines)
    bench.do()
    return found


def running(bench: Bench, count: int = 2) -> list[str]:
    jobs = [bench.submit(name=f"job-{n}").body["id"] for n in range(count)]
    bench.do(*(Launched(job, 1) for job in jobs))
    return jobs


def restarted(bench: Bench) -> None:
    """Restart, as `serve` does, with what operators changed; the state must be the same."""
    before = digest(bench.controller.scheduler)
    bench.store.close()
    bench.site = load_site(bench.path)
    bench._open()
    assert digest(bench.controller.scheduler) == before
    bench.controller.check()


def test_limits_change_at_once_and_nothing_else_happens(bench: Bench) -> None:
    jobs = running(bench)
    lines = change(bench, SITE.replace("submit_per_second = 10000", "submit_per_second = 7"))
    assert lines == ["service.submit_per_second: 10000.0 → 7.0"]
    assert bench.controller.site.service.submit_per_second == 7
    assert [bench.state(job) for job in jobs] == ["running"] * 2
    restarted(bench)


def test_another_policy_lets_running_jobs_run_on_and_keeps_drained_nodes_and_taken_seats(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE.replace("{ cpu = 2 }", "{ cpu = 3 }\naccelerators_per_node = 1"))
    jobs = running(bench, 1)
    bench.do(Request(ChangeNode("cpu-1", "drain", "new fans"), OPERATOR), SeatsTaken(((2, "eve"),)))
    lines = change(bench, bench.path.read_text().replace('"las"', '"fifo"').replace("quantum = 60\n", ""))
    assert any(line.startswith("policy.name") for line in lines)
    assert bench.controller.scheduler.info.name == "fifo"
    row = bench.controller.rows[jobs[0]]
    assert (row.state, row.epoch, row.seats) == ("running", 1, (0,))
    assert bench.controller.drained == {1: "new fans"}
    assert bench.submit(BOB).status == 201
    assert len({seat for one in bench.controller.rows.values() for seat in one.seats}) == 1
    restarted(bench)
    kinds = [kind for (kind,) in bench.store._db.execute("SELECT kind FROM news WHERE job = ''")]
    assert "PolicyChanged" in kinds
    assert bench.store.problems() == []
    bench.store.close()


def test_a_tenants_weight_changes_while_its_jobs_run_on_and_a_restart_knows_it(bench: Bench) -> None:
    jobs = running(bench)
    new, kept = overridden(bench.store, bench.controller.site, {"tenants": {"speech": {"weight": 3.0, "quota": 1}}})
    assert list(apply_site(bench.writer, new, OPERATOR, "test", kept=kept).tenants) == ["speech"]
    bench.do()
    assert [bench.state(job) for job in jobs] == ["running"] * 2
    shown = {one["tenant"]: one["weight"] for one in living_state.tenants(bench.controller, 0.0, 1, 24)[0]}
    assert shown == {"vision": 1.0, "speech": 3.0}
    bench.store.close()
    bench.site = effective_site_of(bench)
    bench._open()
    assert {one["tenant"]: one["weight"] for one in living_state.tenants(bench.controller, 0.0, 1, 24)[0]} == shown
    assert [bench.state(job) for job in jobs] == ["running"] * 2
    bench.path.write_text(SITE + "\n# another file: what operators changed before ends\n")
    assert effective_site(bench.store, load_site(bench.path)).setup.tenants == {}


def effective_site_of(bench: Bench):
    from eunomia.service.store import SqliteStore

    store = SqliteStore.open(bench.site.state)
    try:
        return effective_site(store, load_site(bench.path))
    finally:
        store.close()


def test_more_accelerators_take_waiting_jobs_and_fewer_let_them_move(bench: Bench) -> None:
    jobs = running(bench)
    waiting = bench.submit(BOB).body["id"]
    change(bench, SITE.replace("{ cpu = 2 }", "{ cpu = 4 }"))
    assert [bench.state(job) for job in (*jobs, waiting)] == ["running", "running", "starting"]
    assert sorted(seat for job in (*jobs, waiting) for seat in bench.controller.rows[job].seats) == [0, 1, 2]
    change(bench, SITE.replace("{ cpu = 2 }", "{ cpu = 1 }"))
    bench.controller.check()
    restarted(bench)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [('listen = "127.0.0.1:0"', 'listen = "127.0.0.1:1"', "service.listen"),
     ("supervisor_lease_s = 30", "supervisor_lease_s = 31", "service.supervisor_lease_s"),
     ("[service]", '[service]\nstate = "elsewhere"', "service.state")],
)  # fmt: skip
def test_what_may_not_change_while_it_runs_is_refused_by_name_and_nothing_changes(
    bench: Bench, old: str, new: str, key: str
) -> None:
    before = digest(bench.controller.scheduler)
    with pytest.raises(InvalidInput) as refused:
        change(bench, FIFO.replace(old, new))
    assert [problem.column for problem in refused.value.problems] == [key]
    assert digest(bench.controller.scheduler) == before
    assert bench.controller.scheduler.info.name == "las"


def test_the_same_site_is_no_difference(bench: Bench) -> None:
    found = difference(bench.site, load_site(bench.path))
    assert found.lines == ()
    assert found.shown["effect"] == "nothing changes"


def test_a_change_is_in_the_audit_log(bench: Bench) -> None:
    bench.submit(ANN)
    change(bench, FIFO)
    actions = [action for (action,) in bench.store._db.execute("SELECT action FROM audit")]
    assert actions[-1] == "change site"
    assert bench.store.problems() == []


TABLE_SITE = SITE + '[throughputs]\nsource = "t.csv"\n[belief]\nkind = "measured"\nmeasure_s = 10\n'


@pytest.fixture
def learning(tmp_path: Path) -> Bench:
    """Return a service with a table of throughputs that has learnt another one."""
    (tmp_path / "t.csv").write_text("type,job_type,scale_factor,steps_per_s\ncpu,a,1,2\n")
    bench = Bench(tmp_path, TABLE_SITE)
    job = bench.submit(job_type="a", total_steps=1e6).body["id"]
    bench.do(Launched(job, 1))
    for at, steps in ((5.0, 10.0), (25.0, 210.0)):
        bench.clock.at = at
        bench.do(StepsSaved(job, 1, steps))
    assert bench.controller.scheduler.belief.throughput[0, 0] == 10.0
    return bench


def test_a_service_whose_throughputs_are_a_table_has_snapshots(learning: Bench) -> None:
    assert learning.writer.snapshot()
    restarted(learning)
    assert learning.controller.scheduler.belief.throughput[0, 0] == 10.0
    learning.store.close()


def test_what_is_believed_changes_with_the_site_while_it_runs_and_at_a_restart(learning: Bench) -> None:
    assert change(learning, TABLE_SITE.replace("= 10\n", "= 20\n")) == ["belief.measure_s: 10.0 → 20.0"]
    assert learning.controller.learner is not None and learning.controller.learner.settings.measure_s == 20.0
    assert learning.controller.scheduler.belief.throughput[0, 0] == 10.0  # what was learnt stays
    learning.restart(TABLE_SITE.partition("[belief]")[0])
    assert learning.controller.learner is None
    assert learning.controller.scheduler.belief.throughput[0, 0] == 2.0  # as the table says
    learning.store.close()


def test_a_site_without_throughputs_of_a_live_job_is_refused_and_nothing_changes(learning: Bench) -> None:
    learning.submit(job_type="new", total_steps=1e6)
    before = digest(learning.controller.scheduler)
    with pytest.raises(InvalidInput, match="there are no throughputs for this job type"):
        change(learning, TABLE_SITE.partition("[belief]")[0])
    assert digest(learning.controller.scheduler) == before and learning.controller.learner is not None
    learning.controller.check()
    learning.store.close()


def test_nodes_out_of_service_stay_so_when_the_site_was_changed_while_no_service_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = SITE.replace("{ cpu = 2 }", "{ cpu = 3 }\naccelerators_per_node = 1")
    bench = Bench(tmp_path, three)
    jobs = running(bench, 1)
    bench.do(Request(ChangeNode("cpu-1", "drain", "new fans"), OPERATOR))
    bench.do(Request(ChangeNode("cpu-2", "remove", "sold"), OPERATOR))
    with monkeypatch.context() as patched:  # the service ends between the two commits of such a start
        patched.setattr(Controller, "take_out", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bench.restart(three.replace('"las"', '"fifo"').replace("quantum = 60\n", ""))
    for start in (bench._open, bench.restart):
        start()
        assert bench.controller.drained == {1: "new fans", 2: "removed: sold"}
        assert bench.controller.scheduler.state.floor.up.tolist() == [True, False, False]
        assert bench.controller.rows[jobs[0]].state == "running"
    bench.restart(three.replace("{ cpu = 3 }", "{ cpu = 2, gpu = 1 }"))  # there is no cpu-2 any more
    assert bench.controller.nodes == ("cpu-0", "cpu-1", "gpu-2")
    assert bench.controller.drained == {1: "new fans"}
    assert bench.store.problems() == []
    bench.store.close()
