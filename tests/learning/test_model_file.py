"""Model files: written and read whole, refused by name when truncated, altered, or of other features."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.learning.model_file import (
    Feature,
    ModelFile,
    ModelHeader,
    model_bytes,
    parse_model,
    read_model,
    write_model,
)
from eunomia.learning.perceptron import Perceptron, best_row, masked_softmax

FEATURES = (Feature(name="age", unit="s", scale=3600.0), Feature(name="gang", unit="accelerators", mean=1.0))


def model(**header: object) -> ModelFile:
    layers = Perceptron.drawn((2, 3, 1), np.random.default_rng(0))
    values = {"trained": "tiny", "architecture": {"net": [2, 3, 1]}, "features": FEATURES, **header}
    return ModelFile(header=ModelHeader(**values), arrays=layers.arrays("net"))  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_model(tmp_path / "m.safetensors", model(seed=7, steps=12, metrics={"jct": 1.5}))
    found = read_model(tmp_path / "m.safetensors")
    assert found.header == model(seed=7, steps=12, metrics={"jct": 1.5}).header
    rows = np.array([[0.5, 2.0], [1.0, -1.0]])
    np.testing.assert_array_equal(Perceptron.of(found, "net")(rows), Perceptron.of(model(), "net")(rows))


def test_arrays_are_kept_whatever_their_layout_in_memory() -> None:
    rows = np.arange(6.0).reshape(2, 3)
    arrays = {"turned": rows.T, "every second": rows[:, ::2], "big": rows.astype(">f8"), "zero": np.float64(3.0)}
    found = parse_model(model_bytes(replace(model(), arrays=arrays)), "m").arrays
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_the_bytes_are_those_of_the_safetensors_format() -> None:
    raw = model_bytes(model())
    length = int.from_bytes(raw[:8], "little")
    index = json.loads(raw[8 : 8 + length])
    assert set(index) == {"__metadata__", "net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias"}
    assert all(isinstance(value, str) for value in index["__metadata__"].values())
    begin, _end = index["net.0.weight"]["data_offsets"]
    assert index["net.0.weight"] == {"dtype": "F64", "shape": [2, 3], "data_offsets": [begin, begin + 48]}
    assert len(raw) == 8 + length + max(one["data_offsets"][1] for key, one in index.items() if key[0] != "_")
    assert raw == model_bytes(model())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw[:-1], "truncated"),
        (lambda raw: raw[:5], "no model file"),
        (lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), "altered"),
        (lambda raw: raw.replace(b"tiny", b"tina"), "altered"),
        (lambda raw: raw.replace(b"eunomia", b"another"), "without the header"),
        (lambda raw: b"PK" + raw[2:], "no model file"),
    ],
)
def test_a_truncated_or_altered_file_is_refused_by_name(change: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(InvalidInput, match=rf"m\.safetensors.*{message}"):
        parse_model(change(model_bytes(model())), "m.safetensors")


def test_numbers_that_are_not_finite_and_other_versions_are_refused() -> None:
    broken = replace(model(), arrays={"net.0.bias": np.array([np.nan])})
    with pytest.raises(InvalidInput, match=r"net\.0\.bias.*not finite"):
        parse_model(model_bytes(broken), "m")
    with pytest.raises(InvalidInput, match="version 9"):
        parse_model(model_bytes(model(version=9)), "m")


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ((*FEATURES, Feature(name="hour")), "without the feature 'hour', which is given here"),
        ((*FEATURES, Feature(name="hour"), Feature(name="day")), "features 'hour', 'day', which are given here"),
        (FEATURES[:1], "with the feature 'gang', which is not given"),
        (FEATURES[::-1], "feature 0 is 'age', and here it is 'gang'"),
        ((replace(FEATURES[0], scale=60.0), FEATURES[1]), "'age' has scale 3600.0, and here it is 60.0"),
    ],
)
def test_another_feature_list_is_refused_by_naming_the_difference(expected: tuple[Feature, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        model().check_features(expected)
    model().check_features(FEATURES)


def test_a_perceptron_is_computed_as_by_hand_and_its_arrays_are_checked() -> None:
    layers = Perceptron((np.array([[1.0, -1.0]]), np.array([[2.0], [3.0]])), (np.array([0.5, 0.0]), np.array([1.0])))
    assert layers(np.array([[2.0], [-4.0]])).tolist() == [[6.0], [13.0]]  # 2 · 2.5 + 1; 3 · 4 + 1
    with pytest.raises(InvalidInput, match=r"net\.0\.weight.*\(2, 3\).*\(2, 5\)"):
        Perceptron.of(model(architecture={"net": [2, 5, 1]}), "net")


def test_equal_scores_go_to_the_lower_row_whatever_their_last_bits() -> None:
    scores = np.array([0.0, 1.0, 1.0 + 2**-52, 0.5])
    assert best_row(scores, np.ones(4, dtype=bool)) == 1
    assert best_row(scores, np.array([True, False, False, True])) == 3
    assert best_row(scores, np.zeros(4, dtype=bool)) == -1


def test_a_masked_softmax_is_zero_where_forbidden_and_sums_to_one() -> None:
    found = masked_softmax(np.array([5.0, 1.0, 1.0, 900.0]), np.array([False, True, True, False]))
    assert found.tolist() == [0.0, 0.5, 0.5, 0.0]
    with pytest.raises(ValueError, match="no action"):
        masked_softmax(np.zeros(2), np.zeros(2, dtype=bool))
