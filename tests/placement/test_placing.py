"""The floor and the choosing pass, against slow and obvious ones."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.topology import Node, Topology
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.free_index import _lowest, count_begun, fewest_nodes, seat_alike
from eunomia.placement.selection import MISFIT, Candidates, PlacementResult, choose

SEEDS = st.integers(0, 2**32 - 1)


def floor_of(sizes: list[int], types: list[str] | None = None) -> FreeCapacity:
    nodes = [Node(type=(types or ["gpu"] * len(sizes))[n], accelerators=size) for n, size in enumerate(sizes)]
    topology = Topology.of(nodes)
    return FreeCapacity(topology, np.ones(topology.devices, dtype=bool))


def nodes_of(floor: FreeCapacity, seats: np.ndarray | None) -> list[int]:
    assert seats is not None
    return floor.topology.node[seats].tolist()


def test_a_gang_takes_the_smallest_hole_that_holds_it() -> None:
    floor = floor_of([8, 2, 4])
    assert set(nodes_of(floor, floor.place(0, 3))) == {2}


def test_of_equal_holes_the_first_is_taken() -> None:
    floor = floor_of([4, 4])
    assert nodes_of(floor, floor.place(0, 2)) == [0, 0]
    assert nodes_of(floor, floor.place(0, 2)) == [0, 0]
    assert nodes_of(floor, floor.place(0, 2)) == [1, 1]


def test_a_wide_gang_fills_whole_nodes_and_puts_its_rest_where_it_fits_best() -> None:
    floor = floor_of([2, 4, 4, 3])
    assert sorted(nodes_of(floor, floor.place(0, 10))) == [0, 0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_one_machine_means_the_fewest_if_none_is_big_enough() -> None:
    floor = floor_of([4, 4, 4])
    floor.take(np.array([0]))
    floor.take(np.array([4]))
    assert floor.place(0, 4, one_machine=True) is not None  # the third is whole
    assert floor.place(0, 4, one_machine=True) is None  # 3 + 3 are free, not on one
    assert floor.place(0, 4) is not None
    assert floor_of([4, 4]).place(0, 8, one_machine=True) is not None  # two is the least that 8 can have


def test_a_gang_may_sit_on_as_many_machines_as_it_would_need_if_all_were_empty() -> None:
    assert floor_of([4, 2, 2]).place(0, 8, one_machine=True) is not None


def test_what_does_not_fit_takes_nothing() -> None:
    floor = floor_of([2, 2])
    assert floor.place(0, 5) is None
    assert floor.free.tolist() == [4]


def test_the_seats_of_a_lost_node_stay_lost_until_it_is_back() -> None:
    floor = floor_of([2, 2])
    held = floor.place(0, 2)
    assert held is not None
    floor.lose(0)
    floor.give_back(held)
    assert floor.free.tolist() == [2]
    floor.restore(0)
    assert floor.free.tolist() == [4]


@settings(max_examples=60)
@given(SEEDS)
def test_seats_are_found_exactly_when_enough_are_free_and_on_the_fewest_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    floor = floor_of(rng.integers(1, 6, rng.integers(1, 7)).tolist())
    for device in np.flatnonzero(rng.random(floor.topology.devices) < 0.4):
        floor.take(np.array([device]))
    before = floor.free_by_node.copy()
    size = int(rng.integers(1, floor.topology.devices + 2))
    expected = next(
        (k for k in range(1, len(before) + 1) if any(sum(c) >= size for c in combinations(before.tolist(), k))), 0
    )
    assert floor.spread(0, size) == expected
    seats = floor.place(0, size)
    assert (seats is not None) == (size <= before.sum())
    if seats is not None:
        assert len(set(nodes_of(floor, seats))) == expected
        assert len(np.unique(seats)) == size
        assert before.sum() - floor.free.sum() == size


class ObviousFloor:
    """A set of free devices and a set of lost nodes."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.free = set(range(topology.devices))
        self.lost: set[int] = set()

    def by_node(self) -> list[int]:
        return np.bincount(self.topology.node[sorted(self.free)], minlength=self.topology.nodes).tolist()

    def is_near(self, type: int, size: int) -> bool:
        """Say whether a gang can sit on as few nodes as it would need if all were empty."""

        def fewest(by_node: list[int]) -> int:
            mine = sorted((n for j, n in zip(self.topology.node_type, by_node, strict=True) if j == type), reverse=True)
            return 1 + int((np.cumsum(mine) < size).sum())

        return fewest(self.by_node()) <= fewest(self.topology.size.tolist())

    def place(self, type: int, size: int) -> set[int] | None:
        """Best fit, found by looking at every node."""
        here = [d for d in sorted(self.free) if self.topology.type[d] == type]
        if len(here) < size:
            return None
        seats: set[int] = set()
        while len(seats) < size:
            left, free = size - len(seats), self.by_node()
            mine = [n for n in range(self.topology.nodes) if self.topology.node_type[n] == type and free[n] > 0]
            holds = [n for n in mine if free[n] >= left]
            node = min(holds, key=lambda n: (free[n], n)) if holds else max(mine, key=lambda n: (free[n], -n))
            taken = [d for d in sorted(self.free) if self.topology.node[d] == node][:left]
            seats |= set(taken)
            self.free -= set(taken)
        return seats


@settings(max_examples=40)
@given(SEEDS)
def test_the_index_agrees_with_a_plain_scan_whatever_comes_and_goes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 50))
    floor = floor_of(rng.integers(1, 9, count).tolist(), rng.choice(["v100", "k80"], count).tolist())
    slow, gangs = ObviousFloor(floor.topology), []
    for _ in range(40):
        what = rng.integers(4)
        if what <= 1:
            type, size = int(rng.integers(len(floor.topology.types))), int(rng.integers(1, 17))
            seats, expected = floor.place(type, size), slow.place(type, size)
            assert (set(seats.tolist()) if seats is not None else None) == expected
            if seats is not None:
                gangs.append(seats)
        elif what == 2 and gangs:
            seats = gangs.pop(int(rng.integers(len(gangs))))
            floor.give_back(seats)
            slow.free |= {d for d in seats.tolist() if int(floor.topology.node[d]) not in slow.lost}
        elif what == 3:
            node = int(rng.integers(count))
            mine = {d for d in range(floor.topology.devices) if floor.topology.node[d] == node}
            if node in slow.lost:
                floor.restore(node)
                slow.lost.remove(node)
                slow.free |= mine
            else:
                for seats in [g for g in gangs if mine & set(g.tolist())]:
                    floor.give_back(seats)
                    slow.free |= {d for d in seats.tolist() if int(floor.topology.node[d]) not in slow.lost}
                gangs = [g for g in gangs if not mine & set(g.tolist())]
                floor.lose(node)
                slow.lost.add(node)
                slow.free -= mine
        assert floor.free_by_node.tolist() == slow.by_node()
        for j in range(len(floor.topology.types)):
            assert floor.free[j] == sum(floor.topology.type[d] == j for d in slow.free)


@settings(max_examples=40)
@given(SEEDS)
def test_gangs_seated_in_runs_of_one_size_sit_where_they_would_one_by_one(seed: int) -> None:
    """The widest first, on several types in turn; some ask for one machine, and some find nothing."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))
    floor = floor_of(rng.integers(1, 9, count).tolist(), rng.choice(["v100", "k80"], count).tolist())
    slow, types = ObviousFloor(floor.topology), len(floor.topology.types)
    for size in rng.integers(1, 12, 8).tolist():  # holes of all sizes
        seats = floor.place(int(rng.integers(types)), size)
        slow.free -= set([] if seats is None else seats.tolist())
    begun, listed, before = np.full(types, -1), np.zeros(types, dtype=np.int64), -1
    for size in sorted(rng.choice([1, 1, 2, 3, 4, 8, 11], 60).tolist(), reverse=True):
        if size != before:
            for type in range(types):
                count_begun(floor.index, type, begun, listed)
        type, near, before = int(rng.integers(types)), bool(rng.random() < 0.2), size
        seats = np.full(size, -1)
        if near and not slow.is_near(type, size):
            expected = None
        else:
            expected = slow.place(type, size)
        found = seat_alike(floor.index, type, size, near, seats, begun, listed)
        assert (set(seats.tolist()) if found else None) == expected
        assert floor.free[type] == sum(floor.topology.type[d] == type for d in slow.free)
    for type in range(types):
        count_begun(floor.index, type, begun, listed)
    again = FreeCapacity(floor.topology, floor.index.device_free)  # counted from what is free
    for mine, fresh in zip(floor.index, again.index, strict=True):
        assert np.array_equal(mine, fresh)


@pytest.mark.parametrize("nodes", [100, 10_000])
def test_finding_a_node_reads_a_handful_of_entries_of_the_index_however_large_the_cluster_is(nodes: int) -> None:
    """Counted, not timed: how many entries of the index are read until a node is found."""
    floor = floor_of([8] * nodes)
    floor.take(np.arange(8 * nodes - 8))  # only the last node is free
    reads = _Reads()
    index = floor._index._replace(  # the pure Python of the same functions, on arrays that count
        words=reads.watch(floor._index.words), summary=reads.watch(floor._index.summary)
    )
    with pytest.MonkeyPatch.context() as patch:
        from eunomia.placement import free_index as module

        patch.setattr(module, "_bit_of", getattr(module._bit_of, "py_func", module._bit_of))
        assert getattr(_lowest, "py_func", _lowest)(index, 0, 8) == nodes - 1
    assert reads.count <= 2 + 10_000 // 32**2 + 3
    assert fewest_nodes(floor._index, 0, 8) == 1


class _Reads:
    """Counts how often single entries of arrays are read."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, array: np.ndarray) -> np.ndarray:
        reads = self

        class Watched(np.ndarray):
            def __getitem__(self, key: object) -> object:
                reads.count += 1
                return int(np.asarray(self)[key])  # type: ignore[index]

        return array.view(Watched)


def slow_choose(
    rows: Candidates, seated: PlacementResult, free: list[int], misfit: str, at: float
) -> tuple[list[int], list[bool]]:
    """The same rules, one after the other."""
    chosen: list[int] = []
    kept: list[bool] = []
    settled: set[int] = set()
    promise: tuple[int, float, int] | None = None  # type, when, spare then
    closed = [m for m in range(len(seated.on_type)) if seated.on_type[m] >= 0 and not seated.reassignable[m]]
    for row, (job, type, size) in enumerate(zip(rows.job, rows.type, rows.size, strict=True)):
        if job in settled or job in closed:
            continue
        fits = size <= free[type]
        if fits and promise and promise[0] == type:
            in_time = at + rows.run_time[row] <= promise[1] < np.inf
            if not in_time:
                fits = size <= promise[2]
                promise = (promise[0], promise[1], promise[2] - size) if fits else promise
        if fits:
            free[type] -= size
            settled.add(job)
            chosen.append(row)
            kept.append(bool(seated.on_type[job] == type))
        elif misfit == "skip" or (row + 1 < len(rows.job) and rows.job[row + 1] == job):
            continue
        elif misfit == "stop":
            break
        elif promise is None:
            wishes = [r for r in range(len(rows.job)) if rows.job[r] == job]
            options = []
            for wish in wishes:
                ends = [(seated.end[m], seated.lease_size[m]) for m in closed if seated.on_type[m] == rows.type[wish]]
                ends += [(at + rows.run_time[r], rows.size[r]) for r in chosen if rows.type[r] == rows.type[wish]]
                when = np.inf
                for end in sorted({e for e, _ in ends}):
                    if free[rows.type[wish]] + sum(s for e, s in ends if e <= end) >= rows.size[wish]:
                        when = end
                        break
                there = free[rows.type[wish]] + sum(s for e, s in ends if e <= when)
                options.append((when, int(rows.type[wish]), int(max(there - rows.size[wish], 0))))
            when, where, spare = min(options, key=lambda option: option[0])
            if when < np.inf:
                promise = (where, when, spare)
    return chosen, kept


@settings(max_examples=150)
@given(SEEDS, st.sampled_from(sorted(MISFIT)))
def test_choosing_is_what_the_rules_say_one_after_the_other(seed: int, misfit: str) -> None:
    rng = np.random.default_rng(seed)
    jobs, types = int(rng.integers(1, 12)), int(rng.integers(1, 3))
    on_type = np.where(rng.random(jobs) < 0.4, rng.integers(0, types, jobs), -1)
    held = np.where(on_type >= 0, rng.integers(1, 5, jobs), 0)
    opened = (on_type >= 0) & (rng.random(jobs) < 0.5)
    none = np.full(jobs, -1)
    end = np.where(on_type >= 0, rng.integers(1, 30, jobs).astype(float), np.inf)
    seated = PlacementResult(on_type, np.zeros(jobs, dtype=np.int64), none, opened, held, end)
    free = rng.integers(0, 5, types) + np.bincount(on_type[opened], weights=held[opened], minlength=types).astype(int)
    job = np.repeat(rng.permutation(jobs), types)
    size = np.where(held > 0, held, rng.integers(1, 7, jobs))[job]
    type = np.concatenate([rng.permutation(types) for _ in range(jobs)])
    run_time = rng.integers(1, 30, len(job)).astype(float)
    rows = Candidates(job, type, size, np.full(len(job), -1), np.zeros(len(job), dtype=np.int64), run_time)
    expected = slow_choose(rows, seated, free.tolist(), misfit, 0.0)
    busy, taken = np.flatnonzero(on_type >= 0), np.zeros(jobs, dtype=np.int64)
    line = np.arange(len(job))
    chosen, kept = choose(rows, line, seated, free.copy(), busy, taken, 1, MISFIT[misfit], 0.0)
    assert (chosen.tolist(), kept.tolist()) == expected
