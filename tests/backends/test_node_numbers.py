"""Which node of a changed cluster an earlier one is, for engines whose nodes keep their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.backends.engines.node_names import same_nodes

A, B, C = ("a100", 2), ("h100", 4), ("v100", 8)
NODES = st.lists(st.sampled_from([A, B, C]), max_size=8)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ([A, B, C], [A, C], {0: 0, 2: 1}),
        ([A, B, C], [B, C], {1: 0, 2: 1}),
        ([A, B], [C, A, B], {0: 1, 1: 2}),
        ([A, A], [A, A, A], {0: 0, 1: 1}),
        ([A, A, A], [A, A], {0: 0, 1: 1}),
        ([A, B], [B, A], {0: 1, 1: 0}),
        ([A, A, B, A], [A, B, A], {0: 0, 2: 1, 3: 2}),
        ([], [A], {}),
    ],
)
def test_nodes_are_found_again(
    before: list[tuple[str, int]], after: list[tuple[str, int]], same: dict[int, int]
) -> None:
    assert same_nodes(before, after) == same


@given(NODES, NODES)
def test_each_node_is_another_one_of_its_kind_and_as_many_as_can_be_are_found(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    found = same_nodes(before, after)
    assert len(set(found.values())) == len(found) == sum(min(before.count(one), after.count(one)) for one in (A, B, C))
    assert all(before[old] == after[new] for old, new in found.items())


@given(NODES, st.data())
def test_what_is_taken_out_moves_no_node_past_another(before: list[tuple[str, int]], data: st.DataObject) -> None:
    kept = [n for n in range(len(before)) if data.draw(st.booleans())]
    found = same_nodes(before, [before[n] for n in kept])
    assert sorted(found.values()) == list(range(len(kept)))
