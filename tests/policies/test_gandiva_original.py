"""Gandiva's slices, pairs, places, moves and shapes, on worlds small enough to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.answers import Grants
from eunomia.model.job import Job
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.grants.gandiva.gandiva import GandivaOriginal
from eunomia.policies.grants.gandiva.time_slicing import together
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, WorldRun, draw, line_up, one_type, play


class Watched(GandivaOriginal):
    """The policy, and what it saw and said."""

    def __init__(self, **parameters: object) -> None:
        super().__init__(**parameters)  # type: ignore[arg-type]
        object.__setattr__(self, "seen", [])

    def decide(self, view: View) -> Grants:
        answer = super().decide(view)
        self.seen.append((view, answer))  # type: ignore[attr-defined]
        return answer


def starts(story: WorldRun) -> list[tuple[float, str]]:
    return [(at, order.job_id) for at, order in story.starts]


@pytest.mark.parametrize(("jobs", "accelerators"), [(2, 1), (4, 2), (3, 2)])
def test_over_ten_slices_each_no_job_is_five_percent_from_an_equal_part(jobs: int, accelerators: int) -> None:
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=accelerators),), jobs=line_up(*[(0, 9000)] * jobs), speeds=one_type()
    )
    policy = Watched(packing=False)
    play(policy, world)
    at = 10 * 60 * jobs / accelerators
    view = next(view for view, _ in policy.seen if view.at >= at)  # type: ignore[attr-defined]
    np.testing.assert_allclose(view.run_time, view.at * accelerators / jobs, rtol=0.05)


def test_a_wide_gang_has_its_turn_when_the_slices_before_it_have_ended() -> None:
    """a begins at 0, b at 30; c, as wide as the machine, waits from 40 on. No job takes the seat of a at 60."""
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=2),),
        jobs=line_up((0, 500), (30, 500), (40, 60, 2), (45, 500)),
        speeds=one_type(),
    )
    story = play(GandivaOriginal(packing=False), world)
    assert starts(story)[:3] == [(0, "a"), (30, "b"), (90, "c")]


def paired_world(shared: float) -> SmallWorld:
    return SmallWorld(
        nodes=(Node(type="gpu", accelerators=1),),
        jobs=line_up((0, 600), (0, 600)),
        speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, shared=shared),
    )


def test_two_jobs_share_an_accelerator_where_that_pays_and_take_turns_where_it_does_not() -> None:
    """Beside each other each keeps 0.8: both end at 600 / 0.8. At 0.4 they take turns: 540 s each till 1080, then a."""
    assert play(GandivaOriginal(), paired_world(0.8)).finished == pytest.approx({"a": 750, "b": 750})
    assert play(GandivaOriginal(), paired_world(0.4)).finished == pytest.approx({"a": 1140, "b": 1200})
    assert play(GandivaOriginal(packing=False), paired_world(0.8)).finished == pytest.approx({"a": 1140, "b": 1200})


@pytest.mark.parametrize("seed", range(6))
def test_no_pair_is_kept_that_does_less_than_one_alone(seed: int) -> None:
    policy = Watched()
    play(policy, draw(seed, jobs=12), seed=seed)
    for view, answer in policy.seen:  # type: ignore[attr-defined]
        rows = answer.rows
        both = rows.partner >= 0
        gain = together(view, rows.job[both], rows.partner[both])
        assert (gain[np.arange(both.sum()), rows.type[both]] >= 1.0 - 1e-9).all()


def test_gangs_sit_with_their_like() -> None:
    """On three machines of 4: wide ones of 2 share a machine, narrow ones another, though they fit together."""
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=4),) * 3,
        jobs=line_up((0, 500, 2), (1, 500, 1), (2, 500, 2), (3, 500, 1)),
        speeds=one_type(),
    )
    seats = {order.job_id: set(np.array(order.seats) // 4) for _, order in play(GandivaOriginal(), world).starts}
    assert seats["a"] == seats["c"] != seats["b"] == seats["d"]


def test_a_spread_gang_moves_to_one_machine_when_there_is_room() -> None:
    """Machines of 2: a and b on the first, c on the second. d gets the seat of a and the one beside c, till c ends."""
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=2),) * 2,
        jobs=line_up((0, 200), (0, 1000), (0, 300), (210, 500, 2)),
        speeds=one_type(),
    )
    sat = [(at, sorted(order.seats)) for at, order in play(GandivaOriginal(), world).starts if order.job_id == "d"]
    assert sat == [(210, [0, 3]), (300, [2, 3])]
    assert [at for at, name in starts(play(GandivaOriginal(moves=0), world)) if name == "d"] == [210]


def test_a_gang_grows_on_idle_accelerators_and_shrinks_when_a_job_is_submitted() -> None:
    a = Job(job_id="a", sequence=0, total_steps=1000.0, scale_factor=1, other_shapes=(2,))
    b = Job(job_id="b", sequence=1, submitted=100.0, total_steps=50.0)
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=2),),
        jobs=(a, b),
        speeds=DrawnRates(types=("gpu",), by_kind={"": (1.0,)}, scaling=1.0),
    )
    story = play(GandivaOriginal(), world)
    wide = [(at, order.job_id, len(order.seats)) for at, order in story.starts]
    assert wide == [(0, "a", 2), (100, "a", 1), (100, "b", 1), (150, "a", 2)]
    assert len(play(GandivaOriginal(grow=False), world).starts) == 2
