"""AlloX and gangs: matched as their work on one accelerator, or refused."""

from __future__ import annotations

from eunomia.model.topology import Node
from eunomia.policies.order.allox import SINGLES_ONLY, Allox
from eunomia.testing.small_worlds import SmallWorld, line_up, one_type, play

# One machine of 2. b is as much work as 2 · 100 s on one accelerator; it waits until both are free.
WORLD = SmallWorld(
    nodes=(Node(type="gpu", accelerators=2),),
    jobs=line_up((0, 300), (0, 100, 2), (0, 150), (0, 50)),
    speeds=one_type(),
)


def test_a_refused_gang_gets_a_reason_and_the_others_run_as_without_it() -> None:
    """Shortest first on two accelerators: 50 + 150 + (50 + 300), or 50 + (50 + 150) + 300."""
    story = play(Allox(gangs="refuse"), WORLD)
    assert story.counts == {"finished": 3, "rejected": 1}
    assert sum(story.finished.values()) == 550
    assert "gangs=work" in SINGLES_ONLY


def test_a_gang_that_is_admitted_runs_whole() -> None:
    story = play(Allox(), WORLD)
    assert story.counts == {"finished": 4}
    assert {len(order.seats) for _, order in story.starts if order.job_id == "b"} == {2}
