"""`eunomia policies` shows where policies stand in the survey of the field, and chooses by that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from eunomia.model.taxonomy import AXES, Taxonomy
from eunomia.policies import POLICIES, load

if TYPE_CHECKING:
    from conftest import Desk

FIXED = ["name", "door", "objective", "technique", "paper", "needs", "taxonomy"]


def listed(desk: Desk, *words: str) -> list[str]:
    assert desk.type("policies", *words, "--json") == 0
    return [card["name"] for card in json.loads(desk.stdout)]


def refused(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def test_cards_are_json_for_any_reader_and_null_is_without_end(desk: Desk) -> None:
    assert desk.type("policies", "--json") == 0
    cards = {card["name"]: card for card in json.loads(desk.stdout, parse_constant=refused)}
    assert cards["tiresias"]["parameters"]["promote"] is None
    assert cards["tiresias"]["mechanism"]["length_s"] is None
    assert desk.type("policies", "tiresias") == 0
    assert "promote = inf" in " ".join(desk.stdout.split())


def axes(name: str) -> dict[str, tuple[str, ...]]:
    policy: Any = load(name)
    taxonomy = policy.info.taxonomy
    assert taxonomy is not None, f"{name} does not say where it stands; give its card a taxonomy"
    said: dict[str, tuple[str, ...]] = taxonomy.axes(policy().info.needs)
    return said


@pytest.mark.parametrize("name", POLICIES)
def test_every_built_in_policy_has_a_taxonomy_of_known_values(name: str) -> None:
    said = axes(name)
    assert list(said) == list(AXES)
    for axis, values in said.items():
        assert values
        assert set(values) <= set(AXES[axis]), axis
        assert len(set(values)) == len(values)


def test_cards_say_which_wrong_beliefs_a_policy_suffers_from(desk: Desk) -> None:
    assert desk.type("policies", "--json") == 0
    suffers = {card["name"]: card["suffers_without"] for card in json.loads(desk.stdout)}
    assert "run times" in suffers["srtf"] and "run times" not in suffers["las"]
    assert "throughputs" in suffers["max_min_fairness"]
    assert desk.type("policies", "srtf") == 0
    assert "wrong beliefs: suffers from those of run times" in desk.stdout


def test_every_row_of_the_survey_has_a_policy() -> None:
    found = {row for name in POLICIES for row in axes(name)["row"]}
    assert found == set(AXES["row"])


@pytest.mark.parametrize(
    ("name", "axis", "values"),
    [
        ("tiresias", "row", ("A1a",)),
        ("las", "knowledge", ("none",)),
        ("srtf", "knowledge", ("duration",)),
        ("slaq", "row", ("A4", "B3")),
        ("optimus", "knowledge", ("duration", "profile")),
        ("gandiva", "sharing", ("temporal", "spatial")),
        ("astraea", "fairness", ("tenant", "job", "long-term")),
        ("min_cost", "row", ("A1c", "A3", "B1", "B2")),
    ],
)
def test_policies_stand_where_the_survey_puts_them(name: str, axis: str, values: tuple[str, ...]) -> None:
    assert axes(name)[axis] == values


def test_only_a_fairness_policy_has_a_scope() -> None:
    with pytest.raises(ValueError, match="parties of its fairness"):
        Taxonomy(objectives=("fairness",))
    with pytest.raises(ValueError, match="parties of its fairness"):
        Taxonomy(objectives=("jct",), fairness=("job",))


def test_the_list_is_filtered_by_door_and_axes_that_all_hold(desk: Desk) -> None:
    elastic = [name for name in POLICIES if axes(name)["elastic"] == ("yes",)]
    ordered = [name for name in elastic if load(name).info.answer_type == "order"]
    assert {"optimus", "slaq"} <= set(ordered) < set(POLICIES)
    assert listed(desk, "--where", "elastic=yes") == elastic
    assert listed(desk, "--door", "order", "--where", "elastic=yes") == ordered
    assert listed(desk, "--where", "elastic=yes", "--where", "row=A4", "--where", "knowledge=loss") == ["slaq", "metis"]
    assert listed(desk, "--where", "elastic=yes", "--where", "elastic=no") == []
    assert listed(desk) == list(POLICIES)


def test_cards_begin_with_the_fixed_keys_and_the_table_names_policies(desk: Desk) -> None:
    listed(desk, "slaq")
    (card,) = json.loads(desk.stdout)
    assert list(card)[: len(FIXED)] == FIXED
    assert card["taxonomy"]["row"] == ["A4", "B3"]
    assert desk.type("policies", "--where", "objective=accuracy") == 0
    names = [
        line.split()[0] for line in desk.stdout.splitlines()[1:] if line and not line.startswith(("eunomia", "all"))
    ]
    assert names == ["slaq", "metis"]
    assert desk.type("policies", "themis", "--where", "elastic=no", "--door", "order") == 0
    assert desk.stdout == "themis does not match: elastic=no, door=order\n"


def test_a_wrong_axis_value_or_door_is_answered_with_the_nearest_all_at_once(desk: Desk) -> None:
    words = ["--where", "fairnes=job", "--where", "objective=jcct", "--where", "elastic", "--door", "ordr"]
    assert desk.type("policies", *words) == 2
    for fix in ("'fairness'", "'jct'", "write elastic=", "'order'"):
        assert fix in desk.stderr
