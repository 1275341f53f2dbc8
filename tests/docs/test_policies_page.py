"""The pages of policies say what their docstrings say and what the policies answer, and their pictures show it."""

from __future__ import annotations

import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from eunomia.policies import POLICIES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STALE = "is out of date: make docs"

# steps/s of text and image, worked out by hand in the docstrings; POP's second two jobs mirror the first.
BY_HAND: Mapping[str, tuple[float, ...]] = {
    "fifo": (2, 1),
    "srtf": (1, 4),
    "las": (1, 4),
    "smallest_first": (2, 1),
    "tiresias": (1, 4),
    "optimus": (2, 1),
    "slaq": (1, 4),
    "metis": (1, 4),
    "learned_order": (1, 4),
    "allox": (0, 4),
    "edf": (1, 4),
    "least_slack": (1, 4),
    "slurm_fair_share": (2, 1),
    "drf": (2, 1),
    "drf_divisible": (3 / 2, 5 / 2),
    "kueue_fair_share": (2, 1),
    "stride": (3 / 2, 5 / 2),
    "lottery": (2, 1),
    "gandiva_fair": (1 - 2**0.5 / 8, 1 + 2**0.5 / 4, 1 + 2**0.5 / 4, 1 - 2**0.5 / 8),
    "quotas": (2, 1),
    "shrinking": (2, 1),
    "max_min_fairness": (14 / 9, 7 / 3),
    "max_min_fairness?space_sharing=true": (22 / 13, 33 / 13),
    "water_filling": (1, 4),
    "hierarchical": (7 / 6, 7 / 2),
    "hierarchical?space_sharing=true": (17 / 14, 51 / 14),
    "finish_time_fairness": (5 / 3, 2),
    "makespan": (7 / 4, 7 / 4),
    "max_throughput": (1, 4),
    "throughput_per_cost": (1, 0),
    "throughput_per_cost?deadlines=true": (1, 3),
    "min_cost": (1, 3),
    "proportional_fairness": (7 / 6, 7 / 2),
    "proportional_fairness?space_sharing=true": (1.6, 3),
    "strategy_proof": (7 / 6 * 7 / 8, 7 / 2 * 7 / 12),
    "isolated": (4 / 3, 2),
    "proportional": (3 / 2, 1),
    "fifo_packed": (1.6, 3),
    "gandiva": (1.6, 3),
    "learned_pairs": (1.6, 3),
    "pop?parts=2": (3 / 2, 5 / 2, 5 / 2, 3 / 2),
    "carbyne": (4 / 3, 2),
    "by_weight": (2, 1),
    "locality": (2, 1),
    "harmony": (2, 1),
    "gandiva_original": (1, 4),
    "quincy": (2, 0),
    "consolidated": (2, 1),
    "themis": (2, 1),
    "astraea": (2, 1),
    "philly": (2, 1),
}


@pytest.fixture(scope="module")
def tool() -> Iterator[dict[str, Any]]:
    """What tools/make_policies_page.py defines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        yield runpy.run_path(str(ROOT / "tools" / "make_policies_page.py"))


@pytest.fixture(scope="module")
def made(tool: dict[str, Any]) -> dict[str, str]:
    return dict(tool["made"]())


def test_every_page_and_picture_of_policies_is_what_would_be_made_today(made: dict[str, str]) -> None:
    stale = [path for path, text in made.items() if (DOCS / path).read_text(encoding="utf-8") != text]
    assert not stale, f"docs/{stale[0]} {STALE}"


def test_no_page_or_picture_is_left_of_a_policy_that_is_gone(made: dict[str, str]) -> None:
    there = [*DOCS.glob("policies/*"), *DOCS.glob("images/policies/*")]
    assert {file.relative_to(DOCS).as_posix() for file in there} <= set(made)


@pytest.mark.parametrize("name", POLICIES)
def test_the_example_worked_by_hand_is_what_the_policy_answers(tool: dict[str, Any], name: str) -> None:
    answered = {answer.spelling: answer for answer in tool["answers"](name)}
    spellings = [spelling for spelling in BY_HAND if spelling.partition("?")[0] == name]
    assert spellings
    for spelling in spellings:
        speeds = [fate.speed for fate in answered[spelling].fates]
        assert speeds == pytest.approx(BY_HAND[spelling], abs=1e-6)
