"""What callers must know of a policy stands in its PolicyInfo, so that a user's own policy is treated like ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.model.policy import PolicyInfo
from eunomia.policies.presets import PRESETS
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up

OWN = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from eunomia.model.answers import Grants, Order, Rows
from eunomia.model.policy import PolicyInfo

NO = np.empty(0, dtype=np.int64)

@dataclass(frozen=True)
class Placing:
    info: ClassVar[PolicyInfo] = PolicyInfo(name="mine", answer_type="grants", objective="", technique="", paper="",
                                            needs=frozenset({COLUMNS}))
    def decide(self, view):
        return Grants(Rows(NO, NO), NO, NO, np.empty(0))

@dataclass(frozen=True)
class Flat:
    info: ClassVar[PolicyInfo] = PolicyInfo(name="flat", answer_type="order", objective="", technique="", paper="",
                                            needs=frozenset(), reads_nested_quotas=False, backfills=False)
    def decide(self, view):
        return Order(Rows(NO, NO))
"""


def scenario(folder: Path, policy: str, columns: str = '"topology"', **tables: Any) -> dict[str, Any]:
    (folder / "own.py").write_text(OWN.replace("COLUMNS", columns))
    return {
        "cluster": {"accelerators": {"v100": 4}},
        "workload": {"generator": "philly-like", "jobs": 3, "multi_accelerator": False},
        "policy": {"name": policy},
        **tables,
    }


def test_grants_without_a_look_at_lease_ends_cannot_renew_in_time(tmp_path: Path) -> None:
    short = {"mechanism": {"length_s": 10.0, "aligned": False}, "overheads": {"restore_s": 60.0}}
    said = scenario(tmp_path, "own.py:Placing", **short)
    with pytest.raises(InvalidInput, match="would never end"):
        set_up(scenario_from_dict(said, tmp_path))
    set_up(scenario_from_dict(scenario(tmp_path, "own.py:Placing", '"lease_end"', **short), tmp_path))


def test_quotas_below_others_are_noted_when_the_policy_does_not_read_them(tmp_path: Path) -> None:
    tenants = {"tenants": {"lab": {"quota": 4}, "lab/ann": {"quota": 1}}}
    notes = set_up(scenario_from_dict(scenario(tmp_path, "own.py:Flat", **tenants), tmp_path)).notes
    assert any(note.startswith("flat looks at quotas of tenants at the top only") for note in notes)


def test_spare_time_of_gavels_rounds_is_kept_from_jobs_without_a_share_if_the_policy_says_so(tmp_path: Path) -> None:
    setup = set_up(scenario_from_dict(scenario(tmp_path, "own.py:Flat", mechanism={"name": "gavel"}), tmp_path))
    assert not setup.mechanism.fill  # type: ignore[union-attr]


def test_presets_shuffle_types_as_gavels_names_do(tmp_path: Path) -> None:
    aware = ("perf", "packed", "allox", "gandiva", "gavel:proportional", "strategy_proof")
    for name in PRESETS:
        if not name.startswith("gavel:") or "cost" in name:
            continue
        setup = set_up(scenario_from_dict(scenario(tmp_path, name, mechanism={"name": "gavel"}), tmp_path))
        assert setup.mechanism.shuffled == (not any(word in name for word in aware))  # type: ignore[union-attr]


def test_an_order_and_shares_may_always_renew() -> None:
    card: dict[str, Any] = {"objective": "", "technique": "", "paper": "", "needs": frozenset()}
    assert PolicyInfo(name="x", answer_type="order", **card).may_renew_in_time
    assert not PolicyInfo(name="x", answer_type="grants", **card).may_renew_in_time


@pytest.mark.parametrize(
    ("policy", "is_noted"), [("themis", False), ("optimus", True), ("locality", False), ("locality?shrink=true", True)]
)
def test_jobs_of_one_size_are_noted_where_choosing_sizes_is_what_the_policy_does(
    policy: str, is_noted: bool, tmp_path: Path
) -> None:
    name, _, shrink = policy.partition("?")
    said = {**scenario(tmp_path, name), "policy": {"name": name, **({"shrink": True} if shrink else {})}}
    notes = set_up(scenario_from_dict(said, tmp_path)).notes
    assert any("may choose sizes of gangs, all jobs have one" in note for note in notes) == is_noted
