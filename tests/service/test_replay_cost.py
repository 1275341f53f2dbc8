"""Snapshots are due by what a start would replay."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from tests.service.bench import Bench

from eunomia.service import replay_cost
from eunomia.service.replay_cost import ReplayCost
from eunomia.service.turn import LoggedMoment


def waiting_for_a_start(bench: Bench) -> tuple[int, int]:
    """Return how many moments the next start replays, and their characters."""
    newest = max((seq for seq, *_ in bench.store.snapshots()), default=0)
    lines = [lines for _, lines, _ in bench.store.moments(newest)]
    return len(lines), sum(map(len, lines))


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_MOMENTS"])
def test_a_start_replays_no_more_than_the_limits_and_one_turn(
    bench: Bench, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = {"MOST_BYTES": 4000, "MOST_MOMENTS": 12}[limit]
    monkeypatch.setattr(replay_cost, limit, most)
    taken, turn = 0, 0
    for number in range(24):
        before = waiting_for_a_start(bench)
        bench.submit(name=f"job-{number}")
        measured = [after - old for after, old in zip(waiting_for_a_start(bench), before, strict=True)]
        turn = max(turn, measured[limit == "MOST_BYTES"])
        assert waiting_for_a_start(bench)[limit == "MOST_BYTES"] <= most + turn
        if bench.writer.replay_cost.is_snapshot_due(is_busy=True):
            taken += bench.writer.snapshot()
            assert waiting_for_a_start(bench) == (0, 0)
    assert taken >= 2


def test_a_restart_goes_on_counting_what_has_no_snapshot(bench: Bench) -> None:
    for _ in range(3):
        bench.submit()
    assert bench.writer.snapshot()
    bench.submit()
    expected = waiting_for_a_start(bench)
    assert astuple(bench.writer.replay_cost)[:2] == expected != (0, 0)
    for _ in range(2):
        bench.restart()
        assert astuple(bench.writer.replay_cost) == (*expected, 0.0)


@pytest.mark.parametrize(
    ("share", "idle", "busy"), [(0.49, False, False), (0.5, True, False), (0.99, True, False), (1.0, True, True)]
)
def test_a_snapshot_is_due_at_half_of_any_limit_and_at_all_of_it_while_work_waits(
    share: float, idle: bool, busy: bool
) -> None:
    turn = LoggedMoment(0.0, "", None)
    costs = [ReplayCost(), ReplayCost(bytes=int(replay_cost.MOST_BYTES * share)), ReplayCost()]
    costs[0].add([turn] * int(replay_cost.MOST_MOMENTS * share + 0.999), 0.0)
    costs[2].add([turn, turn], replay_cost.MOST_S * share)
    costs[2].add([], replay_cost.MOST_S)  # of a turn without moments nothing is replayed
    for cost in costs:
        assert (cost.is_snapshot_due(is_busy=False), cost.is_snapshot_due(is_busy=True)) == (idle, busy)
