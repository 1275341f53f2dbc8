"""Groups of jobs over time: levels that follow from the weights alone, where all types are alike."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia_reproduction.gavel.hierarchy import AWARE, BLIND, EACH, JOBS, PANELS, _levels

ALIKE = np.ones((JOBS, 3))


@pytest.mark.parametrize("policy", [AWARE, BLIND])
def test_levels_follow_the_weights_of_groups_and_jobs(policy: str) -> None:
    """Nine accelerators: 1.5, 3 and 4.5 for the groups, a ninth of that for each unit of job weight."""
    groups = _levels(policy, "fairness", ALIKE).reshape(-1, EACH)
    assert groups.sum(axis=1) == pytest.approx([1.5, 3.0, 4.5])
    assert groups[0] == pytest.approx([1.5 / 9, 3 / 9] * 3)


def test_with_fifo_inside_the_first_jobs_of_a_group_run_all_of_their_time() -> None:
    groups = _levels(AWARE, "fifo", ALIKE).reshape(-1, EACH)
    assert groups[2] == pytest.approx([1, 1, 1, 1, 0.5, 0])
    assert groups[0] == pytest.approx([1, 0.5, 0, 0, 0, 0])


def test_fewer_jobs_than_accelerators_all_run() -> None:
    assert _levels(BLIND, "fairness", ALIKE[:5]) == pytest.approx(np.ones(5))


def test_every_number_of_jobs_has_a_stored_sum() -> None:
    assert {len(text.split()) for panel in PANELS for text in panel.totals.values()} == {JOBS}
