"""Reasons for waiting: values with a code, and words made of them."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.wait_reason import KINDS, TEXTS, Reason, WaitReasons
from eunomia.records.record import from_json, to_json

NO_SEATS, NOT_YET = Reason("all_leased"), Reason("auction_due")


def test_rows_have_the_reason_of_their_code_and_those_of_0_none() -> None:
    reasons = WaitReasons(np.array([2, 0, 1, 2], dtype=np.uint8), (NO_SEATS, NOT_YET))
    assert reasons == {0: NOT_YET, 2: NO_SEATS, 3: NOT_YET}
    assert len(reasons) == 3 and 1 not in reasons and 4 not in reasons and -1 not in reasons
    assert WaitReasons.of(3, np.array([2]), NO_SEATS) == {2: NO_SEATS}
    assert WaitReasons.of(3, np.zeros(3, dtype=bool), NO_SEATS) == {}


@pytest.mark.parametrize(
    "code", [np.array([3], dtype=np.uint8), np.array([1]), np.zeros((2, 2), dtype=np.uint8), np.array([-1])]
)
def test_codes_are_bytes_that_name_a_reason(code: np.ndarray) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match="do not name 2 reasons"):
        WaitReasons(code, (NO_SEATS, NOT_YET))


def test_only_reasons_that_have_words_can_be_made() -> None:
    with pytest.raises(ValueError, match="'tired' is no reason for waiting"):
        Reason("tired")
    with pytest.raises(ValueError, match="are not all reasons"):
        WaitReasons(np.zeros(1, dtype=np.uint8), ("no seats",))  # type: ignore[arg-type]
    assert {kind for kind, _ in TEXTS.values()} <= set(KINDS)


@pytest.mark.parametrize(
    ("said", "kind"),
    [("fair share: its virtual cluster has used up its quota", "quota"), ("quota: there is none left", "quota"),
     ("fragmentation: {0} apart", "fragmentation"), ("quota of nothing", "policy"), ("behind {a}", "policy")],
)  # fmt: skip
def test_a_text_that_a_policy_states_stays_as_it_is_and_begins_with_its_cause(said: str, kind: str) -> None:
    reason = Reason.of(said)
    assert (reason.kind, str(reason)) == (kind, said)
    assert Reason.of(reason) is reason


def test_reasons_are_recorded_as_values_and_those_without_words_are_not_read() -> None:
    why = WaitReasons(np.array([0, 1, 2], dtype=np.uint8), (NO_SEATS, Reason("auction_lost", numbers=(3,))))
    assert from_json(to_json(why)) == why
    assert to_json(Reason("deadline_passed", numbers=(9.5,))) == {
        "is": "Reason", "code": "deadline_passed", "numbers": [9.5],
    }  # fmt: skip
    for parts in ({"code": "tired"}, {"code": "auction_lost"}, {"code": "no_capacity", "numbers": [1]}, {}):
        with pytest.raises((LookupError, TypeError, ValueError)):
            from_json({"is": "Reason", **parts})
