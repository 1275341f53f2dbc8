"""The heaviest first, whoever says what jobs weigh."""

from __future__ import annotations

from dataclasses import replace

from eunomia.model.topology import Node
from eunomia.policies.order.by_weight import ByWeight
from eunomia.testing.small_worlds import SmallWorld, line_up, one_type, play


def test_a_heavier_job_interrupts_and_equals_go_by_submission() -> None:
    """On one accelerator c of weight 4 runs from 10 to 60, then a again to 150, then b, of the same weight."""
    jobs = line_up((0, 100), (5, 30), (10, 50))
    jobs = (*jobs[:2], replace(jobs[2], weight=4.0))
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=jobs, speeds=one_type())
    assert play(ByWeight(), world).finished == {"c": 60, "a": 150, "b": 180}
