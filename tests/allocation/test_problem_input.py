"""A wrong problem is answered with everything that is wrong with it, by field and row; rows count from 1."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.allocation import problem_of, read_problem
from eunomia.inputs.problems import InvalidInput

Fields = dict[str, Any]
Places = list[tuple[int | None, str | None]]
PAIR = {"type": "v100", "job_type": "LM", "partner_job_type": "CNN", "steps_per_s": 1.0, "partner_steps_per_s": 2.0}


def places(fields: Fields) -> Places:
    """Return (row, column) of everything that is wrong."""
    with pytest.raises(InvalidInput) as caught:
        problem_of(fields)
    assert caught.value.count >= len(caught.value.problems)
    assert all(problem.fix and problem.rule for problem in caught.value.problems)
    return [(problem.row, problem.column) for problem in caught.value.problems]


def test_what_may_be_left_out_is_one_accelerator_and_a_weight_of_one(plain: Fields) -> None:
    problem = problem_of(plain)
    assert problem.scale_factor.tolist() == [1, 1]
    assert problem.weight.tolist() == [1.0, 1.0]
    assert problem.name(1) == 1


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("types", ["v100", "v100"], [(2, "types")]),
        ("types", [], [(None, "types")]),
        ("types", ["v100", 3], [(2, "types")]),
        ("types", "v100", [(None, "types")]),
        ("capacity", [-1, 1], [(None, "capacity.v100")]),
        ("capacity", [1, float("inf")], [(None, "capacity.k80")]),
        ("capacity", [0, 0], [(None, "capacity")]),
        ("capacity", [1], [(None, "capacity")]),
        ("capacity", {"v100": 1}, [(None, "capacity")]),
        ("throughput", [[3.0, -1.0], [float("nan"), 3.0]], [(1, "throughput.k80"), (2, "throughput.v100")]),
        ("throughput", [[-3.0, None], [1.0, -1.0]],
         [(1, "throughput.k80"), (1, "throughput.v100"), (2, "throughput.k80")]),
        ("throughput", [[3.0, None], [1.0, True]], [(1, "throughput.k80"), (2, "throughput.k80")]),
        ("throughput", [[3.0, "1"], [1.0, 3.0]], [(1, "throughput.k80")]),
        ("throughput", [[3.0], [1.0, 3.0]], [(1, "throughput")]),
        ("throughput", [[3.0, 1.0], 5.0], [(2, "throughput")]),
        ("throughput", [[3.0, 1.0], [0.0, 0.0]], [(2, "throughput")]),
        ("throughput", [], [(None, "throughput")]),
        ("throughput", 7, [(None, "throughput")]),
        ("throughput", None, [(None, "throughput")]),
        ("scale_factor", [1, 2], [(2, "scale_factor")]),
        ("scale_factor", [1.5, 0], [(1, "scale_factor"), (2, "scale_factor")]),
        ("scale_factor", [1, 1, 1], [(None, "scale_factor")]),
        ("scale_factor", [1, "1"], [(2, "scale_factor")]),
        ("weight", [0, 1], [(1, "weight")]),
        ("weight", [1, 10**400], [(2, "weight")]),
        ("job_ids", ["a", "a"], [(2, "job_ids")]),
        ("job_ids", ["a"], [(None, "job_ids")]),
        ("job_ids", ["a", 2], [(2, "job_ids")]),
        ("deadline_s", [-5.0, None], [(1, "deadline_s")]),
        ("deadline_s", [None, 0], [(2, "deadline_s")]),
        ("deadline_s", None, [(None, "deadline_s")]),
        ("elapsed_s", [0, -1], [(2, "elapsed_s")]),
        ("elapsed_s", [1e12, 1.1e12], [(2, "elapsed_s")]),
        ("deadline_s", [1e12, 1e308], [(2, "deadline_s")]),
        ("steps_remaining", [None, 1], [(1, "steps_remaining")]),
        ("isolated_throughput", [0, 1], [(1, "isolated_throughput")]),
        ("price", [1.0, -1.0], [(None, "price.k80")]),
        ("accelerators_per_node", [1, 0], [(None, "accelerators_per_node.k80")]),
        ("thruput", 1, [(None, "thruput")]),
        ("entity_weight", {"lab": 1}, [(None, "entity_weight")]),
        ("pairs", [], [(None, "pairs")]),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_by_field_and_row(plain: Fields, field: str, value: object, wrong: Places) -> None:
    assert places({**plain, field: value}) == wrong


def test_a_gang_that_only_a_type_too_small_for_it_could_run_is_named(plain: Fields) -> None:
    sized = {**plain, "capacity": [1, 2], "scale_factor": [1, 2], "throughput": [[3.0, 1.0], [1.0, 0.0]]}
    assert places(sized) == [(2, "throughput")]


@pytest.mark.parametrize("field", ["types", "capacity", "throughput"])
def test_a_field_that_every_problem_has_is_asked_for(plain: Fields, field: str) -> None:
    del plain[field]
    assert places(plain) == [(None, field)]


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"entity": ["lab", "lub"], "entity_weight": {"lab": 1}}, [(2, "entity")]),
        ({"entity": [0, 2], "entity_weight": [1, 2]}, [(2, "entity")]),
        ({"entity": [0, -1]}, [(2, "entity")]),
        ({"entity": [0]}, [(None, "entity")]),
        ({"entity": ["lab", None]}, [(2, "entity")]),
        ({"entity": ["a", "b"], "entity_weight": {"a": 0, "b": "2"}},
         [(None, "entity_weight.a"), (None, "entity_weight.b")]),
        ({"entity": ["a", "b"], "entity_weight": 3}, [(None, "entity_weight")]),
        ({"entity": ["a", "b"], "entity_inner": {"a": "fair"}}, [(None, "entity_inner.a")]),
        ({"entity": [0, 1], "entities": ["a", "b"], "entity_weight": [1]}, [(None, "entity_weight")]),
    ],
)  # fmt: skip
def test_an_entity_that_does_not_exist_or_weighs_nothing_is_named(plain: Fields, fields: Fields, wrong: Places) -> None:
    assert places({**plain, **fields}) == wrong


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        ({**PAIR, "job_type": "LN"}, [(1, "pairs.job_type")]),
        ({**PAIR, "type": "a100"}, [(1, "pairs.type")]),
        ({**PAIR, "steps_per_s": float("nan")}, [(1, "pairs.steps_per_s")]),
        ({**PAIR, "partner_steps_per_s": None}, [(1, "pairs.partner_steps_per_s")]),
        ({**PAIR, "scale_factor": 1.5}, [(1, "pairs.scale_factor")]),
        ({**PAIR, "spead": 1}, [(1, "pairs.spead")]),
        ({"type": "v100"}, [(1, "pairs.job_type"), (1, "pairs.partner_job_type"), (1, "pairs.steps_per_s")]),
        ({key: value for key, value in PAIR.items() if key != "partner_steps_per_s"}, [(None, "pairs")]),
        (7, [(1, "pairs")]),
    ],
)
def test_a_wrong_pair_is_named_by_record(plain: Fields, record: object, wrong: Places) -> None:
    assert places({**plain, "job_type": ["LM", "CNN"], "pairs": [record]}) == wrong


def test_a_pair_that_is_given_twice_is_refused(plain: Fields) -> None:
    turned = {**PAIR, "job_type": "CNN", "partner_job_type": "LM"}
    assert set(places({**plain, "job_type": ["LM", "CNN"], "pairs": [PAIR, turned]})) == {(2, "pairs")}


def test_pairs_become_a_table_of_kinds_that_agree_in_job_type_and_size(plain: Fields) -> None:
    problem = problem_of({**plain, "job_type": ["LM", "CNN"], "pairs": [PAIR, {**PAIR, "scale_factor": 8}]})
    assert problem.kind is not None
    assert problem.pairs is not None
    lm, cnn = problem.kind.tolist()
    assert problem.pairs[lm, cnn].tolist() == [1.0, 0.0]
    assert problem.pairs[cnn, lm].tolist() == [2.0, 0.0]
    assert problem.pairs[lm, lm].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("job_type", "pairs", "wrong"),
    [
        ([0, -1], np.zeros((2, 2, 2)), [(2, "job_type")]),
        ([0, 2], np.zeros((2, 2, 2)), [(None, "pairs")]),
        ([0, 1], np.full((2, 2, 2), -1.0), [(1, "pairs")] * 4 + [(2, "pairs")] * 4),
        ([0, 1, 1], np.zeros((2, 2, 2)), [(None, "job_type")]),
        ([0, 1], np.zeros((2, 2)), [(None, "pairs")]),
    ],
)
def test_a_wrong_table_of_pairs_is_named(plain: Fields, job_type: list[int], pairs: object, wrong: Places) -> None:
    assert places({**plain, "job_type": np.array(job_type), "pairs": pairs}) == wrong


def test_jobs_of_one_row_of_pairs_have_one_size(plain: Fields) -> None:
    sized = {**plain, "capacity": [2, 2], "scale_factor": [1, 2], "job_type": np.array([0, 0])}
    assert places(sized) == [(2, "job_type")]


def test_everything_wrong_is_named_in_one_go_and_counted(plain: Fields) -> None:
    wrong = {**plain, "weight": [0, 0], "pirce": [1, 1], "elapsed_s": [1], "job_ids": ["a", "a"]}
    assert sorted(str(column) for _, column in places(wrong)) == ["elapsed_s", "job_ids", "pirce", "weight", "weight"]
    many = {"types": ["v100"], "capacity": [1], "throughput": [[-1.0]] * 50}
    with pytest.raises(InvalidInput) as caught:
        problem_of(many)
    assert (caught.value.count, len(caught.value.problems)) == (50, 20)


def test_a_misspelt_field_is_answered_with_the_nearest(plain: Fields) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'steps_remaining'"):
        problem_of({**plain, "step_remaining": [1, 1]})


@pytest.mark.parametrize(
    ("content", "row", "column"),
    [
        (b'{"types": [\n"v100",, ]}', 2, None),
        (b"[1, 2]", None, None),
        (b"", 1, None),
        (b'{"\xff": 1}', 1, None),
        (b'{"types": ["v100"], "types": ["k80"]}', None, "types"),
        (b"[" * 100_000, None, None),
    ],
)
def test_what_is_no_json_object_is_refused(tmp_path: Path, content: bytes, row: int | None, column: str | None) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        read_problem(path)
    (problem,) = caught.value.problems
    assert (problem.file, problem.row, problem.column) == (str(path), row, column)


def test_numbers_that_json_does_not_know_are_named(tmp_path: Path, plain: Fields) -> None:
    path = tmp_path / "nan.json"
    path.write_text(json.dumps({**plain, "weight": [float("nan"), 1]}))
    with pytest.raises(InvalidInput, match="weight is 'nan'"):
        read_problem(path)
    path.write_text(json.dumps(plain).replace("3.0", "3" + "0" * 5000))
    with pytest.raises(InvalidInput, match=r"throughput\.v100 is 'inf'"):
        read_problem(path)


@pytest.mark.parametrize("name", ["absent.json", "absent.npz", "problem.txt", "folder.json"])
def test_a_file_that_is_not_there_or_of_no_known_kind_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InvalidInput):
        read_problem(tmp_path / name)


def _saved(path: Path, fields: Fields) -> Path:
    np.savez(path, **{name: np.asarray(value) for name, value in fields.items()})
    return path


def test_arrays_say_the_same_as_lists(tmp_path: Path, plain: Fields) -> None:
    fields = {**plain, "job_ids": ["a", "b"], "deadline_s": [5.0, np.inf], "entity": [0, 1], "entity_weight": [1, 2]}
    problem = read_problem(_saved(tmp_path / "good.npz", fields))
    assert problem.types == ("v100", "k80")
    assert problem.throughput.tolist() == plain["throughput"]
    assert problem.name(1) == "b"
    assert problem.deadline_s is not None
    assert problem.deadline_s.tolist() == [5.0, np.inf]
    assert problem.entities is not None
    assert problem.entities.weight.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("throughput", np.array([[3.0, np.nan], [1.0, 3.0]]), (1, "throughput.k80")),
        ("throughput", np.array([["3", "1"], ["1", "3"]]), (None, "throughput")),
        ("throughput", np.ones((2, 3)), (None, "throughput")),
        ("weight", np.array([True, True]), (None, "weight")),
        ("capacity", np.array([[1, 1]]), (None, "capacity")),
        ("types", np.array([1, 2]), (None, "types")),
    ],
)
def test_a_wrong_array_is_named(
    tmp_path: Path, plain: Fields, field: str, value: object, wrong: tuple[int | None, str]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_problem(_saved(tmp_path / "bad.npz", {**plain, field: value}))
    assert [(problem.row, problem.column) for problem in caught.value.problems] == [wrong]


class _Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("field", ["job_ids", "nonsense"])
def test_a_pickled_object_is_never_loaded(tmp_path: Path, plain: Fields, field: str) -> None:
    trap = np.array([_Trap(tmp_path / "sprung")] * 2, dtype=object)
    path = _saved(tmp_path / "trap.npz", {**plain, field: trap})
    with pytest.raises(InvalidInput) as caught:
        read_problem(path)
    assert [problem.column for problem in caught.value.problems] == [field]
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("harm", [lambda whole: b"", lambda whole: b"text", lambda whole: whole[: len(whole) // 2]])
def test_what_is_no_npz_or_a_damaged_one_is_refused(
    tmp_path: Path, plain: Fields, harm: Callable[[bytes], bytes]
) -> None:
    path = _saved(tmp_path / "bad.npz", plain)
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(InvalidInput, match=r"it is no NPZ, the arrays that numpy\.savez writes") as caught:
        read_problem(path)
    assert "pickle" not in str(caught.value)


def test_an_array_whose_bytes_were_changed_is_refused(tmp_path: Path, plain: Fields) -> None:
    path = _saved(tmp_path / "bad.npz", plain)
    whole = path.read_bytes()
    at = whole.index(np.array(plain["throughput"]).tobytes())
    path.write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
    with pytest.raises(InvalidInput) as caught:
        read_problem(path)
    assert caught.value.problems[0].column == "throughput"


def _with_weight(path: Path, fields: Fields, member: bytes) -> Path:
    """Return an NPZ whose array of weights are these bytes."""
    _saved(path, fields)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("weight.npy", member)
    return path


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,)}",
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**30},)}}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': 'zz', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': ((((",
    ],
)
def test_an_array_that_promises_what_it_does_not_hold_is_named(tmp_path: Path, plain: Fields, header: str) -> None:
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with pytest.raises(InvalidInput, match="weight: cannot be read") as caught:
        read_problem(_with_weight(tmp_path / "bad.npz", plain, member))
    assert [(problem.column, bool(problem.fix)) for problem in caught.value.problems] == [("weight", True)]


def test_all_arrays_that_cannot_be_loaded_are_named_at_once(tmp_path: Path, plain: Fields) -> None:
    objects = np.array([1, "a"], dtype=object)
    with pytest.raises(InvalidInput) as caught:
        read_problem(_saved(tmp_path / "bad.npz", {**plain, "weight": objects, "deadline_s": objects}))
    assert [problem.column for problem in caught.value.problems] == ["weight", "deadline_s"]


@pytest.mark.parametrize("field", ["entity", "job_type"])
def test_rows_of_no_table_may_have_any_number(tmp_path: Path, plain: Fields, field: str) -> None:
    problem = read_problem(_saved(tmp_path / "far.npz", {**plain, field: np.array([2**62, 3])}))
    found = problem.entity if field == "entity" else problem.kind
    assert found is not None
    assert sorted(found.tolist()) == [0, 1]


def test_a_single_weight_of_entities_is_one_of_a_list(tmp_path: Path, plain: Fields) -> None:
    problem = read_problem(_saved(tmp_path / "one.npz", {**plain, "entity": [0, 0], "entity_weight": np.array(2.0)}))
    assert problem.entities is not None
    assert problem.entities.weight.tolist() == [2.0]


def test_a_single_array_is_no_problem(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(InvalidInput, match="holds one array"):
        read_problem(tmp_path / "one.npz")
