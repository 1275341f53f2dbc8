"""A line of jobs is sorted, whatever comes and goes, and a search looks at no more than it has to."""

from __future__ import annotations

from bisect import insort
from itertools import pairwise

import numpy as np
import pytest

from eunomia.core import job_line
from eunomia.core.belief import Belief
from eunomia.core.job_line import (
    BLOCKS,
    LOOKED,
    SIZE_CLASSES,
    JobLine,
    add_row,
    fill,
    first_row_short_of,
    next_beside,
    next_row,
    next_with_room,
    no_rows,
    place_after,
    place_before,
    place_of,
    remove_row,
    row_at,
    run_time,
    size_from,
)
from eunomia.core.kernel_arrays import TOTAL, KernelArrays, kernel_arrays
from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.arrays import Floats
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology

SIZES = (1, 2, 4, 8)


class Speeds:
    """Jobs named "second" run only on the second type."""

    types = ("v100", "k80")

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        return np.array([0.0, 1.0] if job_type == "second" else [1.0, 0.5])

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        return np.zeros(2)


def state(rng: np.random.Generator, jobs: int) -> tuple[KernelArrays, list[int], list[bool]]:
    """So many jobs of all sizes; of each its size, and whether it runs on the first type."""
    sched = SchedulerState(Topology.of([Node(type=one, accelerators=8) for one in Speeds.types]), Belief(Speeds()))
    sizes = [int(size) for size in rng.choice(SIZES, jobs)]
    first = [bool(one) for one in rng.random(jobs) < 0.7]
    for m, size in enumerate(sizes):
        kind = "any" if first[m] else "second"
        sched.submit(Job(job_id=f"j{m}", total_steps=1.0, submitted=float(m), scale_factor=size, job_type=kind))
    return kernel_arrays(*sched.arrays), sizes, first


def rows_of(line: JobLine) -> list[int]:
    """All rows in order."""
    used = line.order[: line.tally[BLOCKS]]
    return [int(row) for block in used for row in line.rows[block, : line.length[block]]]


@pytest.mark.parametrize("seed", range(6))
def test_a_line_is_sorted_and_searched_as_a_list_is(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_line, "BLOCK", 8)
    rng, jobs = np.random.default_rng(seed), 150
    t, sizes, first = state(rng, jobs)
    key = rng.integers(0, 1 + seed * 7, jobs).astype(float)  # many are equal; with seed 0 all are
    line = no_rows(jobs, 2, 0)
    plain: list[tuple[float, int]] = []
    for step in range(600):
        row = int(rng.integers(jobs))
        mine = (key[row], row)
        if mine in plain:
            plain.remove(mine)
            remove_row(t, line, key, row)
        elif rng.random() < (0.9 if step % 200 < 120 else 0.1):  # it grows long, then short
            insort(plain, mine)
            add_row(t, line, key, row)
        else:
            remove_row(t, line, key, row)  # nothing
        assert rows_of(line) == [other for _, other in plain]
        used = line.order[: line.tally[BLOCKS]]
        assert (line.length[used] > 0).all()
        assert all(sum(line.length[list(two)]) > 4 for two in pairwise(used.tolist()))
        room = rng.integers(0, 9, 2)
        behind = [other for other in plain if other > mine]
        assert next_row(line, key, row) == (behind[0][1] if behind else -1)
        fit = [other for _, other in behind if sizes[other] <= max(room[1], room[0] if first[other] else 0)]
        assert next_with_room(t, line, key, row, room) == (fit[0] if fit else -1)
        place, needs = place_of(line, key, row), [sizes[other] for _, other in plain]
        stands = len(plain) - len([one for one in plain if one >= mine])
        assert row_at(line, place) == (plain[stands][1] if stands < len(plain) else -1)
        assert size_from(t, line, place) == sum(needs[stands:])
        before = place_before(line, place)
        assert (before < 0) == (stands == 0)
        assert before < 0 or place_after(line, before) == place
        short = [other for m, (_, other) in enumerate(plain) if sum(needs[m + 1 :]) < room[0]]
        assert first_row_short_of(t, line, room[0]) == (short[0] if short else -1)
    assert len(plain) > 0


@pytest.mark.parametrize("seed", range(4))
def test_a_search_beside_a_reservation_finds_the_first_gang_that_ends_before_it_or_leaves_enough(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_line, "BLOCK", 8)
    rng, jobs = np.random.default_rng(seed), 120
    t, sizes, _ = state(rng, jobs)
    t.belief_floats[TOTAL, :jobs], t.throughput[:jobs, 0] = rng.integers(1, 60, jobs), 1.0
    line, key, stands = no_rows(jobs, 1, SIZE_CLASSES), np.zeros(jobs), set[int]()
    for _ in range(500):
        row = int(rng.integers(jobs))
        (remove_row if row in stands else add_row)(t, line, key, row)
        stands ^= {row}
        after, room, extra = int(rng.integers(-1, jobs)), np.array([rng.integers(0, 9)]), int(rng.integers(0, 3))
        shadow = 100.0 + float(rng.integers(0, 30))
        behind = [one for one in sorted(stands) if one > after and sizes[one] <= room[0]]
        fit = [one for one in behind if sizes[one] <= extra or 100.0 + run_time(t, one) <= shadow]
        assert next_beside(t, line, key, after, room, 100.0, shadow, extra) == (fit[0] if fit else -1)


def test_what_a_line_is_filled_with_stands_in_it() -> None:
    jobs = 2 * job_line.BLOCK + 3
    line, key = no_rows(jobs, 1, 0), np.arange(float(jobs))
    assert next_row(line, key, -1) == -1
    fill(line, np.arange(jobs), np.full(jobs, 2))
    assert rows_of(line) == list(range(jobs))
    assert line.size[:4].tolist() == [2 * job_line.BLOCK, 2 * job_line.BLOCK, 6, 0]


def test_a_search_looks_at_a_number_a_block_once_it_knows_that_no_gang_in_it_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_line, "BLOCK", 16)
    jobs = 400
    t, sizes, _ = state(np.random.default_rng(1), jobs)
    wide = [row for row in range(jobs) if sizes[row] == 8]
    line, key = no_rows(jobs, 2, 0), np.zeros(jobs)
    for row in wide:
        add_row(t, line, key, row)
    narrow, room = [row for row in range(jobs) if sizes[row] == 1], np.array([7, 7])
    add_row(t, line, key, narrow[-1])
    assert next_with_room(t, line, key, -1, room) == narrow[-1]
    remove_row(t, line, key, narrow[-1])
    assert next_with_room(t, line, key, -1, room) == -1  # finds out that the block has no narrow gang any more
    before = int(line.tally[LOOKED])
    assert next_with_room(t, line, key, -1, room) == -1
    assert line.tally[LOOKED] - before == line.tally[BLOCKS] < len(wide) / 4
