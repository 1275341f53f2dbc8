"""A name that is not there is an error that names the nearest; records keep the names that they had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eunomia import PolicyInfo, UndeclaredColumn, View
from eunomia.model.decisions import SetShares, SetTimer
from eunomia.model.events import TimerFired
from eunomia.model.job_ids import JobIdList
from eunomia.model.promises import Promises
from eunomia.model.rank import Rank
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


@pytest.mark.parametrize("claim", [{"jobs_independent": True}, {"rank": Rank("submission")}])
def test_promises_of_an_order_that_does_not_cover_all_jobs_contradict_themselves(claim: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(claim))} holds only with covers_all_jobs"):
        Promises(**claim)


@pytest.mark.parametrize(
    ("door", "promises"),
    [("shares", Promises(renews_leases=True)), ("grants", Promises(covers_all_jobs=True))],
)
def test_a_promise_of_another_kind_of_answer_is_refused(door: Any, promises: Promises) -> None:
    with pytest.raises(ValueError, match=rf"answers with {door}, and \w+ is a promise of"):
        PolicyInfo(**CARD, answer_type=door, needs=frozenset(), promises=promises)
