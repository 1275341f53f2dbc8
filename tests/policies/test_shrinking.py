"""Jobs that run on what is left, by hand: in another policy's order, best placed first, and in Themis' auctions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.policies.test_themis import two

from eunomia.model.policy import LeaseTerms
from eunomia.model.topology import Node
from eunomia.policies import build
from eunomia.policies.grants.themis.bidding import hold_auction
from eunomia.policies.grants.themis.shapes import kept_sizes
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, WorldRun, line_up, play

LEASES = LeaseTerms(length_s=1000.0)


def ran(policy: str, *jobs: tuple[float, float, int], accelerators: int = 6) -> WorldRun:
    """Play jobs of submission, steps and gang; a gang may halve, and does a step a second on each accelerator."""
    line = tuple(replace(job, other_shapes=halves(job.scale_factor)) for job in line_up(*jobs))
    speeds = DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, scaling=1.0)
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=accelerators),), jobs=line, speeds=speeds)
    return play(build(policy), world, terms=LEASES)


def halves(size: int) -> tuple[int, ...]:
    return tuple(size >> k for k in range(1, size.bit_length()))


def widths(ended: WorldRun) -> list[tuple[str, float, int]]:
    """Return each start: the job, when, and on how many accelerators."""
    return [(start.job_id, at, len(start.seats)) for at, start in ended.starts]


@pytest.mark.parametrize("policy", ["shrinking?inner=fifo", "shrinking?inner=srtf", "locality?shrink=true", "themis"])
def test_a_job_for_which_too_little_is_left_runs_on_that_until_its_lease_ends(policy: str) -> None:
    """Six accelerators, gangs of 4: a has its 2000 steps done at 500 s. b does 2000 of its 6000 on the two that were
    left, by 1000 s, and the other 4000 on four, by 2000 s."""
    ended = ran(policy, (0, 2000, 4), (0, 6000, 4))
    assert widths(ended)[:2] == [("a", 0, 4), ("b", 0, 2)]
    assert ended.finished["a"] == 500
    assert ended.finished["b"] == pytest.approx(2000, abs=3)  # auctions are a second apart
    assert widths(ended)[2][2] == 4


@pytest.mark.parametrize("policy", ["fifo", "locality", "themis"])
def test_a_rigid_gang_waits_for_all_that_it_needs(policy: str) -> None:
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=6),),
        jobs=line_up((0, 500, 4), (0, 1500, 4)),
        speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}),
    )
    starts = widths(play(build(policy), world, terms=LEASES))
    assert [width for *_, width in starts[:2]] == [4, 4]
    assert starts[1][1] >= 500


def test_the_first_in_the_order_has_its_whole_gang_and_the_last_the_rest() -> None:
    assert widths(ran("shrinking?inner=fifo", (0, 900, 2), (0, 900, 4), (0, 3000, 4), accelerators=7)) == [
        ("b", 0, 4), ("a", 0, 2), ("c", 0, 1), ("c", 1000, 4)
    ]  # fmt: skip


def test_what_is_wrong_with_the_inner_policy_is_said() -> None:
    with pytest.raises(ValueError, match="inner is 'themis', which answers with grants; take one that answers order"):
        build("shrinking?inner=themis")


def test_a_winner_keeps_its_part_of_the_accelerators_and_not_of_the_gangs() -> None:
    """Of gangs of 4 and 4 won, 5 accelerators are kept: one whole, one on a single accelerator."""
    sizes = np.array([[4, 2, 1], [4, 2, 1]])
    assert kept_sizes(np.array([4, 4]), sizes, 5).tolist() == [4, 1]
    assert kept_sizes(np.array([4, 4]), sizes, 3).tolist() == [2, 1]
    assert kept_sizes(np.array([4, 4]), np.array([[4, 0, 0], [4, 2, 0]]), 3).tolist() == [0, 2]  # the first is rigid


def test_an_elastic_gang_shrinks_where_a_rigid_one_is_forfeited() -> None:
    """The winner of two keeps half of its gang of 2 after the hidden payment."""
    tables, rng = two(1.0, 2.0), np.random.default_rng(0)
    elastic = hold_auction(tables, np.array([2]), np.array([[2, 1], [2, 1]]), "floor", 0.05, rng)
    assert (tables.gangs.job[elastic.gang].tolist(), elastic.size.tolist()) == ([0], [1])
    rigid = hold_auction(tables, np.array([2]), np.array([[2], [2]]), "floor", 0.05, rng)
    assert rigid.gang.tolist() == []
