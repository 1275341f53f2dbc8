"""Small worlds in which every finish time is worked out by hand."""

from __future__ import annotations

import pytest

from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import LeaseTerms, Policy
from eunomia.model.topology import Node
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.las import Las
from eunomia.policies.order.srtf import Srtf
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, WorldRun, line_up, one_type, play

TWO_TYPES = SmallWorld(
    nodes=(Node(type="v100", accelerators=1), Node(type="k80", accelerators=1)),
    jobs=(
        Job(job_id="a", job_type="picky", total_steps=600, sequence=0),
        Job(job_id="b", job_type="calm", total_steps=600, sequence=1),
    ),
    speeds=DrawnRates(types=("v100", "k80"), by_kind={"picky": (3.0, 1.0), "calm": (2.0, 1.0)}),
)

# name: submitted, seconds of work, accelerators; on one machine of 4
TEN = line_up(
    (0, 10, 2),  # a
    (0, 20, 1),  # b
    (1, 10, 4),  # c
    (2, 5, 1),  # d
    (3, 8, 1),  # e
    (4, 30, 1),  # f
    (15, 4, 2),  # g
    (16, 2, 4),  # h
    (40, 6, 3),  # i
    (41, 1, 1),  # j
)


def ten(policy: Policy) -> WorldRun:
    return play(policy, SmallWorld(nodes=(Node(type="gpu", accelerators=4),), jobs=TEN, speeds=one_type()))


def times(text: str) -> dict[str, float]:
    """Read "a 10, b 20" as finish times."""
    return {name: float(at) for name, at in (part.split() for part in text.split(","))}


def test_fifo_gives_the_first_its_fastest_type_and_no_job_moves() -> None:
    """a: 600 / 3 = 200 on the v100. b takes what is left, the k80: 600 / 1 = 600, though the v100 is free from 200."""
    assert play(Fifo(), TWO_TYPES).finished == {"a": 200, "b": 600}


def test_fifo_pays_a_start_once() -> None:
    """As above, 7 s later each."""
    assert play(Fifo(), TWO_TYPES, overheads=Overheads(start_s=7)).finished == {"a": 207, "b": 607}


def test_easy_counts_what_a_start_costs_before_it_lets_a_job_pass() -> None:
    """A start costs 10 s. r (3 of 4) ends at 110; then h (all 4) runs 60 s, to 170. s would end at 2 + 115 = 117."""
    jobs = line_up((0, 100, 3), (1, 50, 4), (2, 105, 1))
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=4),), jobs=jobs, speeds=one_type())
    played = play(Fifo(backfill="easy"), world, overheads=Overheads(start_s=10))
    assert played.finished == {"a": 110, "b": 170, "c": 285}


def test_srtf_moves_a_job_to_the_slower_type_for_a_shorter_one_and_back_when_the_faster_is_free() -> None:
    """c (30 steps, like a) comes at 100, when a has 300 / 3 = 100 s left at best and b 500 / 2 = 250.

    100  c v100, a k80, b waits        110  c ended; a (290 / 3) v100, b (500 / 2) k80
    a ends at 110 + 290 / 3; b, who has 500 - 290 / 3 steps left then, moves to the v100 and does 2 a second.
    """
    c = Job(job_id="c", job_type="picky", total_steps=30, sequence=2, submitted=100)
    played = play(Srtf(), SmallWorld(nodes=TWO_TYPES.nodes, jobs=(*TWO_TYPES.jobs, c), speeds=TWO_TYPES.speeds))
    ends = 110 + 290 / 3
    assert played.finished == pytest.approx({"c": 110, "a": ends, "b": ends + (500 - 290 / 3) / 2})
    assert played.figures.summary["preemptions"] == 4  # a and b at 100, a at 110, b when a ended


def test_max_min_gives_opposite_tastes_what_each_likes() -> None:
    """X is the identity: 600 / 3 and 900 / 3 seconds, and no job ever moves."""
    jobs = (
        Job(job_id="a", job_type="left", total_steps=600, sequence=0),
        Job(job_id="b", job_type="right", total_steps=900, sequence=1),
    )
    speeds = DrawnRates(types=("v100", "k80"), by_kind={"left": (3.0, 1.0), "right": (1.0, 3.0)})
    played = play(MaxMinFairness(), SmallWorld(nodes=TWO_TYPES.nodes, jobs=jobs, speeds=speeds))
    assert played.finished == pytest.approx({"a": 200, "b": 300})
    assert played.figures.summary["preemptions"] == 0


ONE_TO_TWO = SmallWorld(
    nodes=(Node(type="gpu", accelerators=1),),
    jobs=(
        Job(job_id="a", total_steps=250, weight=1, sequence=0),
        Job(job_id="b", total_steps=500, weight=2, sequence=1),
    ),
    speeds=one_type(),
)
ROUNDS = LeaseTerms(length_s=100, aligned=True)


def test_max_min_serves_weights_one_and_two_by_turns() -> None:
    """x is 1/3 and 2/3 of one accelerator. Debts, owed less received in thirds of a round, at the end of each; who
    would be owed more when the next one ends (debt + 1 for a, debt + 2 for b) has that.

    end    b sat   a    b        end    a sat   a    b        end    b sat   a    b
    100    *       1   −1        200    *      −1    1        300    *       0    0
    and so on: b, a, b. b has its 500 s at 700, when a has 200 of its 250; a ends at 750.
    """
    played = play(MaxMinFairness(), ONE_TO_TWO, terms=ROUNDS)
    assert played.finished == pytest.approx({"a": 750, "b": 700})
    assert [at for at, _ in played.starts] == [0, 100, 200, 400, 500, 700]


def test_max_min_pays_for_every_change_of_seats_and_for_no_renewal() -> None:
    """A start costs 10 s, a checkpoint 4 and a restore 6, so the running job leads by 100 s, three thirds of a round.

    end    b sat   a    b        end    b sat   a    b        end    a sat   a    b        end    a sat   a    b
    100    *       1   −1        200    *       2   −2        300    *       0    0        400    *      −2    2
    rank           2   1 + 3                    3   0 + 3              1 + 3    2             −1 + 3    4

    Ties go to the first, so a has the seat from 200 to 400: 190 s of its 250. b has had 190 of its 500, and has the
    other 310 from 410 to 720, for no job can overtake it; a has its last 60 from 730 on.
    """
    costs = Overheads(start_s=10, checkpoint_s=4, restore_s=6)
    played = play(MaxMinFairness(), ONE_TO_TWO, terms=ROUNDS, overheads=costs)
    assert played.finished == pytest.approx({"a": 790, "b": 720})
    assert [at for at, _ in played.starts] == [0, 200, 400, 720]


def test_fifo_blocks_behind_the_head_of_the_line() -> None:
    """c needs all 4, free when b ends at 20; behind it d, e, f start at 30; g (2) when d ends at 35;
    h (4) when f ends at 60; i and j at 62.
    """
    assert ten(Fifo()).finished == times("a 10, b 20, c 30, d 35, e 38, f 60, g 39, h 62, i 68, j 63")


def test_fifo_that_skips_fills_every_hole_and_keeps_the_wide_waiting() -> None:
    """d at 2, e at 7 in d's place, f at 10 and g at 15 in a's; 4 are free first when f ends at 40: c 40–50, h 50–52,
    then i and j.
    """
    assert ten(Fifo(backfill="skip")).finished == times("a 10, b 20, c 50, d 7, e 15, f 40, g 19, h 52, i 58, j 53")


def test_easy_backfill_fills_only_holes_that_delay_no_reservation() -> None:
    """c is reserved 20. d (2–7), e (7–15) and g (15–19) end by then; f (10 + 30) would not and waits to 30.
    h is then reserved 60, when f ends; i (40–46) and j (46–47) end by then.
    """
    assert ten(Fifo(backfill="easy")).finished == times("a 10, b 20, c 30, d 7, e 15, f 60, g 19, h 62, i 46, j 47")


def test_srtf_interrupts_the_longer() -> None:
    """Remaining seconds at each decision, in order; those that run are marked *.

    0   a10* b20*                      18  g3* c6 b12* f28*
    1   a9* c10 b19*                   21  c6* b9 f25
    2   d5* a8* c10 b18*               27  b9* f25*
    3   d4* a7* e8* c10 b17            36  f16*
    7   a3* e4* c10 b17* f30           40  i6* f12*
    10  e1* c10 b14* f30*              41  j1* i5* f11
    11  c10* b13 f29                   42  i4* f11*
    15  g4* c6 b13* f29*               46  f7*   … 53
    16  h2* g3 c6 b12 f28
    Stopped: b at 3, b f at 11, c at 15, g b f at 16, b f at 21, f at 41: 10 times.
    """
    played = ten(Srtf())
    assert played.finished == times("a 10, b 36, c 27, d 7, e 11, f 53, g 21, h 18, i 46, j 42")
    assert played.figures.summary["preemptions"] == 10


def test_las_serves_levels_of_twenty_accelerator_seconds() -> None:
    """Level 0 by submission until 20: d 2–7, e 7–15, f from 10, g 15–19.

    20  b ended: c (4) comes before f, which has had 10
    25  c has had 4 · 5 = 20, level 1: f (10) keeps running; h (4) does not fit beside it
    35  f has had 20, level 1: h 35–37
    37  level 1 by submission: c (20)
    40  i is new: i and, in the last place, f (20); c has had 32
    41  j is new: f (21) makes room for it until 42
    46  i ended: c (32) comes before f (25) and ends after 2 s more
    48  f has 5 s left
    Stopped: f 20, c 25, f 35, c 40, f 41, f 46: 6 times.
    """
    played = ten(Las(quantum=20.0))
    assert played.finished == times("a 10, b 20, c 48, d 7, e 15, f 53, g 19, h 37, i 46, j 42")
    assert played.figures.summary["preemptions"] == 6


def test_las_asks_again_when_a_job_crosses_into_a_level_behind_one_that_waits() -> None:
    """One accelerator, quantum 5, a and b of 12 s from 0 on: a 0–5, b 5–10, a 10–15, b 15–20, a 20–22, b 22–24."""
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=line_up((0, 12), (0, 12)), speeds=one_type())
    played = play(Las(quantum=5.0), world)
    assert [at for at, _ in played.starts] == [0, 5, 10, 15, 20, 22]
    assert played.finished == {"a": 22, "b": 24}


def test_easy_lets_a_job_run_that_ends_by_the_reserved_time_and_no_other() -> None:
    """a holds 3 of 4 to 10; b (4) is reserved 10. c (2 + 8 ≤ 10) runs now; d (3 + 8 > 10) finds no place that is
    spare at 10, and runs after b.
    """
    jobs = line_up((0, 10, 3), (1, 10, 4), (2, 8, 1), (3, 8, 1))
    played = play(
        Fifo(backfill="easy"), SmallWorld(nodes=(Node(type="gpu", accelerators=4),), jobs=jobs, speeds=one_type())
    )
    assert played.finished == {"a": 10, "b": 20, "c": 10, "d": 28}


def test_easy_lets_a_long_job_use_what_is_spare_even_at_the_reserved_time() -> None:
    """a holds 3 of 4 to 10; b (2) is reserved 10, when 4 are free: 2 are spare. c (100 s, 1) takes the free one."""
    jobs = line_up((0, 10, 3), (1, 10, 2), (2, 100, 1))
    played = play(
        Fifo(backfill="easy"), SmallWorld(nodes=(Node(type="gpu", accelerators=4),), jobs=jobs, speeds=one_type())
    )
    assert played.finished == {"a": 10, "b": 20, "c": 102}
