"""A rank is declared once: the key of one job, as compiled passes take it, is that of the view, as answers take it."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.rank import (
    BY_REMAINING_SERVICE,
    BY_REMAINING_TIME,
    BY_SCALE_FACTOR,
    BY_SERVICE_LEVEL,
    BY_WEIGHT,
    Key,
    Rank,
    key_of,
)
from eunomia.testing.policy_rules import full_view

KEYS: tuple[tuple[int, Key], ...] = (
    (BY_WEIGHT, "weight"),
    (BY_SCALE_FACTOR, "scale_factor"),
    (BY_REMAINING_TIME, "remaining_time"),
    (BY_REMAINING_SERVICE, "remaining_service"),
    (BY_SERVICE_LEVEL, "service"),
)


@pytest.mark.parametrize(("by", "key"), KEYS)
@pytest.mark.parametrize("seed", range(4))
def test_the_key_of_one_job_is_its_key_among_all(by: int, key: Key, seed: int) -> None:
    view, quantum = full_view(seed), 700.0
    keys = Rank(key, quantum=quantum).keys(view)
    fits = np.where(view.scale_factor[:, None] <= view.capacity, view.throughput, 0.0)
    given = zip(view.scale_factor, view.weight, view.service, view.remaining, fits.max(axis=1), strict=True)
    assert view.jobs > 0
    assert [key_of(by, quantum, *one) for one in given] == keys.tolist()


def test_equal_keys_go_by_submission_or_by_the_place_in_the_last_order() -> None:
    view = full_view(0)
    keys = np.zeros(view.jobs)
    assert Rank("scale_factor").order(view, keys).tolist() == list(range(view.jobs))
    place = np.arange(view.jobs, dtype=float)[::-1].copy()
    place[0] = -1.0  # it is new
    backwards = Rank("scale_factor", ties="last").order(
        view.__class__(at=view.at, types=view.types, jobs=view.jobs, columns=view.columns, memory={"place": place}),
        keys,
    )
    assert backwards.tolist() == [*range(view.jobs - 1, 0, -1), 0]


def test_a_rank_by_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"remaining_time, .*not 'remainig_time'"):
        Rank("remainig_time")  # type: ignore[arg-type]
