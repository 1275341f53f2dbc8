"""A name that is not there is an error that names the nearest; records keep the names that they had."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia import PolicyInfo, UndeclaredColumn, View
from eunomia.model.decisions import SetShares, SetTimer
from eunomia.model.events import TimerFired
from eunomia.model.job_ids import JobIdList
from eunomia.records.record import from_json, to_json

CARD = {"name": "mine", "objective": "", "technique": "", "paper": ""}


def test_a_name_that_never_was_is_an_error() -> None:
    view = View(at=0.0, types=(), jobs=0, columns={})
    with pytest.raises(UndeclaredColumn, match="'weight', which its needs do not list"):
        _ = view.weight
    with pytest.raises(AttributeError, match="a view has no 'weigth'; a view has 'weight'"):
        _ = view.weigth  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="dor"):
        PolicyInfo(**CARD, dor="order", needs=frozenset())  # type: ignore[call-arg, arg-type]


def test_records_keep_the_names_that_they_had() -> None:
    none = JobIdList.of()
    shares = SetShares(none, np.zeros(0, int), np.zeros(0), np.zeros(0, int), none)
    for value, name in ((SetTimer(3.0), "WakeAt"), (TimerFired(), "Woken"), (shares, "Flow")):
        assert to_json(value)["is"] == name
    assert from_json({"is": "WakeAt", "at": 3.0}) == SetTimer(3.0)
