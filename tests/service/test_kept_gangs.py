"""A changed site touches no gang that still fits: it runs on, and usage, progress and starts are kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, BOB, OPERATOR, Bench

from eunomia.backends.reports import GangEnded, Launched, StepsSaved
from eunomia.records.scheduler_digest import digest
from eunomia.service import living_state
from eunomia.service.messages import ChangeNode, Halt, Launch, Request
from eunomia.service.site import load_site
from eunomia.service.site_change import apply_site

SITE = """\
check = true
[service]
made_up = true
listen = "127.0.0.1:0"
[cluster]
nodes = [{ type = "a100", count = 2, accelerators = 2 }]
[policy]
name = "slurm_fair_share"
"""
TWO = '[{ type = "a100", count = 2, accelerators = 2 }]'
CHANGES = {
    "a node more": SITE.replace("count = 2", "count = 3"),
    "a type more": SITE.replace("}]", '}, { type = "cpu", accelerators = 4 }]'),
    "a node grows": SITE.replace(
        '"a100", count = 2, accelerators = 2 }', '"a100", accelerators = 2 }, { type = "a100", accelerators = 4 }'
    ),
    "another name of a type": SITE.replace("a100", "a100-40"),
    "another policy": SITE.replace("slurm_fair_share", "kueue_fair_share"),
    "rounds": SITE.replace("slurm_fair_share", "max_min_fairness"),
    "a tenant": SITE + "[tenants]\nvision = { weight = 3 }\n",
    "costs": SITE + "[overheads]\nrestore_s = 30\n",
}


def halted(orders: list[Any]) -> list[str]:
    return [order.job_id for order in orders if isinstance(order, Halt)]


def apply(bench: Bench, text: str, *, at_restart: bool) -> list[Any]:
    """Change the site of a running service, or while it is stopped; return the orders of the world."""
    if at_restart:
        bench.restart(text)
        return list(bench.orders)
    bench.path.write_text(text)
    sent: list[Any] = []

    class World:
        def carry_out(self, orders: Any) -> None:
            sent.extend(orders)

        def use_topology(self, topology: Any) -> None:
            pass

    bench.writer.world = World()  # type: ignore[assignment]
    apply_site(bench.writer, load_site(bench.path), OPERATOR, "test")
    bench.writer.world = None
    bench.do()
    return [*sent, *bench.orders]


def begun(bench: Bench) -> list[str]:
    """Three jobs, which run since 10 s, and one that waits."""
    jobs = [bench.submit(who, duration_s=5000, accelerators=n, interruptible=None).body["id"] for who, n in
            ((ANN, 1), (BOB, 1), (ANN, 2), (ANN, 2))]  # fmt: skip
    bench.clock.at = 10.0
    bench.do(*(Launched(job, 1) for job in jobs[:3]))
    bench.clock.at = 500.0
    bench.do(StepsSaved(jobs[1], 1, 300.0))
    bench.clock.at = 1000.0
    bench.do()
    return jobs


@pytest.mark.parametrize("at_restart", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("what", sorted(CHANGES))
def test_gangs_run_on_whatever_is_added_or_changed_around_them(tmp_path: Path, what: str, at_restart: bool) -> None:
    bench = Bench(tmp_path, SITE)
    jobs = begun(bench)
    before = {job: (row.seats, row.epoch, row.started) for job, row in bench.controller.rows.items()}
    orders = apply(bench, CHANGES[what], at_restart=at_restart)
    assert halted(orders) == []
    assert all(one.adopt_only for one in orders if isinstance(one, Launch) and one.job_id in jobs[:3])
    rows, scheduler = bench.controller.rows, bench.controller.scheduler
    for job in jobs[:3]:
        assert rows[job].state == "running"
        assert (rows[job].seats, rows[job].epoch, rows[job].started) == before[job]
        number = scheduler.state.row_of[job]
        size = len(rows[job].seats)
        assert scheduler.ledger.service_at(1000.0, [number]) == pytest.approx(size * 990.0, rel=0.02), (
            "what it received"
        )
        left = scheduler.belief.remaining_at(1000.0, [number])[0]
        assert left == pytest.approx(5000 - (800.0 if job == jobs[1] else 990.0), rel=0.01), "what it has done"
    bench.controller.check()
    seen = digest(scheduler)
    bench.restart(CHANGES[what])
    assert digest(bench.controller.scheduler) == seen
    bench.do(*(GangEnded(job, 1, "finished") for job in jobs[:3]))
    assert [bench.state(job) for job in jobs[:3]] == ["succeeded"] * 3


def used_by_tenants(bench: Bench) -> dict[str, float]:
    state = bench.controller.scheduler.state
    assert state.entitlements is not None
    names = state.owners.tree.names
    return dict(zip(names, state.entitlements.decayed_usage(len(names)).tolist(), strict=True))


def test_what_tenants_used_is_kept_with_its_half_life(tmp_path: Path) -> None:
    """Vision has used three quarters of 1000 s, half of them since the last moment; the half-life is a week."""
    bench = Bench(tmp_path, SITE)
    begun(bench)
    apply(bench, CHANGES["a node more"], at_restart=False)
    assert used_by_tenants(bench) == pytest.approx({"vision": 3000.0, "speech": 1000.0}, rel=0.01)


def test_what_was_used_since_the_last_moment_counts(tmp_path: Path) -> None:
    """Nothing has happened for more than four half-lives, but that three accelerators of four were held by vision."""
    text = SITE + "half_life_s = 1000\n"
    bench = Bench(tmp_path, text)
    begun(bench)
    bench.clock.at = 5000.0
    bench.do()  # a turn without a moment
    apply(bench, text.replace("count = 2", "count = 3"), at_restart=False)
    held = (1 - 2**-5) * 1000 / math.log(2)  # of one accelerator, from second 0 on
    assert used_by_tenants(bench) == pytest.approx({"vision": 3 * held, "speech": held}, rel=0.01)


def test_gangs_stop_where_nodes_of_two_types_change_places(tmp_path: Path) -> None:
    text = SITE.replace(TWO, '[{ type = "a100", accelerators = 2 }, { type = "h100", accelerators = 2 }]')
    bench = Bench(tmp_path, text)
    jobs = begun(bench)
    turned = '[{ type = "h100", accelerators = 2 }, { type = "a100", accelerators = 2 }]'
    assert sorted(halted(apply(bench, SITE.replace(TWO, turned), at_restart=False))) == sorted(jobs[:3])


def test_what_cannot_save_keeps_its_seats_in_the_rounds_of_a_changed_site(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    jobs = begun(bench)
    apply(bench, CHANGES["rounds"], at_restart=False)
    for at in range(1100, 4000, 400):
        bench.clock.at = float(at)
        bench.do()
        assert halted(bench.orders) == []
    assert {bench.state(job) for job in jobs[:3]} == {"running"}


def test_a_gang_whose_accelerators_are_gone_saves_and_the_others_run_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    jobs = begun(bench)
    wide = next(job for job in jobs[:3] if bench.controller.rows[job].seats == (2, 3))
    orders = apply(bench, SITE.replace("count = 2", "count = 1"), at_restart=False)
    assert halted(orders) == [wide]
    assert {bench.state(job) for job in set(jobs[:3]) - {wide}} == {"running"}
    assert bench.state(wide) == "stopping"


def test_a_gang_whose_type_it_may_not_use_any_more_saves(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    job = bench.submit(types=["a100"]).body["id"]
    bench.do(Launched(job, 1))
    text = SITE.replace(TWO, '[{ type = "h100", count = 2, accelerators = 2 }, { type = "a100", accelerators = 2 }]')
    assert halted(apply(bench, text, at_restart=False)) == [job]


@pytest.mark.parametrize("at_restart", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("gone", [0, 1])
def test_a_node_that_is_taken_out_of_the_middle_leaves_the_gangs_of_the_others_alone(
    tmp_path: Path, at_restart: bool, gone: int
) -> None:
    nodes = ['{ type = "a100", accelerators = 2 }', '{ type = "h100", accelerators = 4 }',
             '{ type = "a100", accelerators = 4 }']  # fmt: skip
    text = SITE.replace(TWO, f"[{', '.join(nodes)}]") + '[world]\nbackend = "slurm"\n'
    bench = Bench(tmp_path, text)
    jobs = [bench.submit(accelerators=size, types=[kind], interruptible=None, duration_s=5000).body["id"]
            for kind, size in (("a100", 2), ("h100", 4), ("a100", 4))]  # fmt: skip
    bench.do(*(Launched(job, 1) for job in jobs))
    assert [bench.controller.rows[job].seats for job in jobs] == [(0, 1), (2, 3, 4, 5), (6, 7, 8, 9)]
    bench.do(Request(ChangeNode("a100-2", "drain", "fans"), OPERATOR))
    orders = apply(bench, text.replace(f"{nodes[gone]}, ", ""), at_restart=at_restart)
    assert halted(orders) == [jobs[gone]]
    left = {job: bench.controller.rows[job].seats for n, job in enumerate(jobs) if n != gone}
    first = left[jobs[1 - gone]]
    assert first == tuple(range(len(first))), "the first of the others begins at seat 0"
    assert left[jobs[2]] == tuple(range(len(first), len(first) + 4))
    again = {one.job_id: one.seats for one in orders if isinstance(one, Launch) and one.adopt_only}
    assert again == {**again, **left}, "the engine learns their numbers"
    assert living_state.nodes(bench.controller)[1]["state"] == "draining"
    bench.controller.check()
    bench.do(*(GangEnded(job, 1, "finished") for job in left))
    assert {bench.state(job) for job in left} == {"succeeded"}


def test_a_gang_that_a_changed_site_stops_has_the_time_of_a_drain_to_save(tmp_path: Path) -> None:
    for at_restart in (False, True):
        folder = tmp_path / str(at_restart)
        folder.mkdir()
        bench = Bench(folder, SITE)
        jobs = begun(bench)
        orders = apply(bench, SITE.replace("count = 2", "count = 1"), at_restart=at_restart)
        (wide,) = halted(orders)
        assert bench.state(wide) == "stopping"
        for at, forced in ((1599.0, []), (1600.0, [(wide, False)])):
            bench.clock.at = at
            bench.do()
            assert [(one.job_id, one.save) for one in bench.orders if isinstance(one, Halt)] == forced, (at, jobs)
