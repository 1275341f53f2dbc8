"""Names of earlier versions in users' code lead to the present ones, with a warning that tells them."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia import PolicyInfo, UndeclaredColumn, View, load_throughputs
from eunomia.model.decisions import SetShares, SetTimer
from eunomia.model.events import TimerFired
from eunomia.model.job_ids import JobIdList
from eunomia.model.view import COLUMNS, FORMER_COLUMNS
from eunomia.records.record import from_json, to_json

CARD = {"name": "mine", "objective": "", "technique": "", "paper": ""}


def test_a_policy_s_card_is_written_and_read_with_its_former_fields() -> None:
    with pytest.warns(FutureWarning, match="PolicyInfo: 'door' is now 'answer_type'"):
        info = PolicyInfo(**CARD, door="order", needs=frozenset())  # type: ignore[call-arg, arg-type]
    assert info.answer_type == "order"
    with pytest.warns(FutureWarning, match="'renews' is now 'renews_leases'"):
        assert info.renews is False  # type: ignore[attr-defined]


def test_columns_are_needed_and_read_by_their_former_names() -> None:
    with pytest.warns(FutureWarning, match="needs of 'mine': 'wait' is now 'waiting_time'"):
        info = PolicyInfo(**CARD, answer_type="order", needs=frozenset({"wait", "weight"}))  # type: ignore[arg-type]
    assert info.needs == {"waiting_time", "weight"}
    view = View(at=0.0, types=("v100",), jobs=1, columns={"waiting_time": np.array([3.0])})
    with pytest.warns(FutureWarning, match="View: 'wait' is now 'waiting_time'"):
        assert view.wait.tolist() == [3.0]  # type: ignore[attr-defined]
    with pytest.warns(FutureWarning, match="'wait'"):
        assert View(at=0.0, types=(), jobs=1, columns={"wait": np.ones(1)}).waiting_time.tolist() == [1.0]
    assert set(FORMER_COLUMNS.values()) <= COLUMNS
    assert COLUMNS.isdisjoint(FORMER_COLUMNS)


def test_a_name_that_never_was_is_an_error_as_before() -> None:
    view = View(at=0.0, types=(), jobs=0, columns={})
    with pytest.raises(UndeclaredColumn, match="'weight', which its needs do not list"):
        _ = view.weight
    with pytest.raises(AttributeError, match="a view has no 'weigth'; a view has 'weight'"):
        _ = view.weigth  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="dor"):
        PolicyInfo(**CARD, dor="order", needs=frozenset())  # type: ignore[call-arg, arg-type]


def test_a_table_of_throughputs_is_read_by_its_former_methods() -> None:
    table = load_throughputs("uniform", ["v100"])
    with pytest.warns(FutureWarning, match="'alone' is now 'solo_throughput'"):
        assert table.alone("any", 1).tolist() == [1.0]  # type: ignore[attr-defined]


def test_records_keep_the_names_that_they_had() -> None:
    none = JobIdList.of()
    shares = SetShares(none, np.zeros(0, int), np.zeros(0), np.zeros(0, int), none)
    for value, name in ((SetTimer(3.0), "WakeAt"), (TimerFired(), "Woken"), (shares, "Flow")):
        assert to_json(value)["is"] == name
    assert from_json({"is": "WakeAt", "at": 3.0}) == SetTimer(3.0)
