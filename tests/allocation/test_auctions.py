"""`eunomia solve` with bids: every layout gives the same result, errors name the bidder and the row."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import eunomia
from eunomia.allocation.auctions.problem import FIELDS
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput

ROOT = Path(__file__).parents[2]
VALUES = [[0.1, 0.5, 1, 1.2, 1.3], [0.2, 0.4, 0.6, 0.8, 1]]
ROWS = {name: [{"take": n, "rho": 1 / v} for n, v in enumerate(row)] for name, row in zip("ab", VALUES, strict=True)}
FLAT = {"bidder": ["a"] * 5 + ["b"] * 5, "take": [*range(5), *range(5)], "value": VALUES[0] + VALUES[1]}
Fields = dict[str, Any]


def result_of(problem: Fields | Path) -> dict[str, Any]:
    return dict(eunomia.solve("themis", problem).as_dict())


@pytest.mark.parametrize(
    "bids",
    [
        {"values": VALUES, "bidders": ["a", "b"]},
        {"values": dict(zip("ab", VALUES, strict=True))},
        {"bids": [{"bidder": name, "rows": rows} for name, rows in ROWS.items()]},
        {"bids": [{"bidder": name, "values": row} for name, row in zip("ab", VALUES, strict=True)]},
        {"bids": ROWS},
        {"bids": dict(zip("ab", VALUES, strict=True))},
        FLAT,
        {**FLAT, "bidder": [0] * 5 + [1] * 5, "bidders": ["a", "b"]},
    ],
)
def test_every_layout_of_the_table_of_four_says_the_same(bids: Fields) -> None:
    result = result_of({"capacity": 4, **bids})
    assert (result["status"], result["bidders"], result["pf"]) == ("optimal", ["a", "b"], [2, 2])
    assert result["c"] == pytest.approx([0.6, 1 / 1.3])
    assert result["grants"] == pytest.approx([1.2, 2 / 1.3])
    assert result["leftover"] == pytest.approx(4 - 1.2 - 2 / 1.3)
    assert result["product"] == pytest.approx(0.6)
    assert result["gap"] == 0.0


def test_classes_are_named_by_an_object_or_a_list() -> None:
    rows = [{"take": {}, "rho": None}, {"take": {"y": 2}, "rho": 1.0}]
    by_name = result_of({"capacity": {"x": 1, "y": 2}, "bids": {"a": rows}})
    by_list = result_of(
        {"capacity": [1, 2], "classes": ["x", "y"], "bids": {"a": [rows[0], {"take": [0, 2], "rho": 1.0}]}}
    )
    for result in (by_name, by_list):
        assert (result["classes"], result["pf"], result["leftover"]) == (["x", "y"], [[0, 2]], [1.0, 0.0])


@pytest.mark.parametrize("mode", ["floor", "randomized", "lease"])
def test_what_cannot_be_divided_is_granted_whole(mode: str) -> None:
    result = result_of({"capacity": 4, "values": VALUES, "indivisible": mode, "seed": 3, "lease_s": 100})
    assert all(type(n) is int for n in result["grants"])
    assert sum(result["grants"]) + result["leftover"] == 4
    assert result == result_of({"capacity": 4, "values": VALUES, "indivisible": mode, "seed": 3, "lease_s": 100}) | {
        name: result[name] for name in ("seconds", "compile_seconds")
    }
    if mode == "lease":
        assert (result["grants"], result["leases_s"]) == ([2, 2], pytest.approx([60, 100 / 1.3]))
    if mode == "floor":
        assert result["grants"] == [1, 1]


EMPTY = {"take": 0, "rho": 5}


@pytest.mark.parametrize(
    ("problem", "row", "column", "says"),
    [
        ({"capacity": 2, "values": [[1, 2, 1.5]]}, 3, "0.value", "less than row 2"),
        ({"capacity": 2, "bids": {"a": [EMPTY, {"take": 1, "rho": 6}]}}, 2, "a.rho", "less than row 1"),
        ({"capacity": 1, "values": [[1, 2, 3]]}, 3, "0.take", "more than is offered"),
        ({"capacity": {"v": 1}, "bids": {"a": [EMPTY, {"take": {"p": 1}, "rho": 1}]}}, 2, "a.take", "not offered"),
        ({"capacity": 2, "values": [[1, float("nan")]]}, 2, "0.value", "finite"),
        ({"capacity": 2, "values": [[1, -2.0]]}, 2, "0.value", "at least 0"),
        ({"capacity": 2, "values": [[1, "2"]]}, 2, "0.value", "finite"),
        ({"capacity": 2, "bids": {"a": [{"take": 1, "rho": 2}]}}, None, "a", "takes nothing"),
        ({"capacity": 2, "bids": {"a": [EMPTY, EMPTY]}}, 2, "a", "same as row 1"),
        ({"capacity": 2, "bids": {"a": [EMPTY, {"take": 1e19, "rho": 1}]}}, 2, "a.take", "more than is offered"),
        ({"capacity": 2, "bids": {"a": [EMPTY, {"take": 10**400, "rho": 1}]}}, 2, "a.take", "more than is offered"),
        ({"capacity": 2, "bids": {"a": [EMPTY, {"take": 1.5, "rho": 1}]}}, 2, "a.take", "whole"),
        ({"capacity": 2, "bids": {"a": [EMPTY, {"take": -1, "rho": 1}]}}, 2, "a.take", "whole"),
        ({"capacity": 2, "bids": {"a": [EMPTY, {"take": [1, 1], "rho": 1}]}}, 2, "a.take", "each class"),
        ({"capacity": 2, "bids": {"a": [EMPTY, {"take": 1, "rho": 0}]}}, 2, "a.rho", "above 0"),
        ({"capacity": 2, "bids": {"a": [EMPTY, {"take": 1}]}}, 2, "bids.a", "a rho or a value"),
        ({"capacity": 2, "bids": [{"bidder": "a", "rows": [EMPTY]}] * 2}, 2, "bids", "one table"),
        ({"capacity": 2, "bids": {"a": [{**EMPTY, "rh": 1}]}}, None, "bids.a.rh", "no such field"),
        ({"capacity": 2, "values": [[1]], "bids": {"a": [EMPTY]}}, None, "values", "another layout"),
        ({"capacity": 2, "bids": []}, None, "bids", "names no bidder"),
        ({"capacity": -1, "values": [[1]]}, None, "capacity.0", "whole number"),
        ({"capacity": 0, "values": [[1]]}, None, "capacity", "no accelerator"),
        ({"values": [[1]]}, None, "capacity", "missing"),
        ({"capacity": 2, "values": [[1]], "indivisible": "flor"}, None, "indivisible", "no treatment"),
        ({"capacity": 2, "values": [[1]], "seed": -1}, None, "seed", "whole number"),
        ({"capacity": 2, "values": [[1]], "sed": 1}, None, "sed", "no such field"),
    ],
)
def test_errors_name_the_bidder_and_the_row(problem: Fields, row: int | None, column: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        result_of(problem)
    (found,) = caught.value.problems
    assert (found.row, found.column) == (row, column)
    assert says in found.rule
    assert found.fix


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        result_of({"capacity": 2, "bids": {"a": [{"take": 3, "rho": -1}], "b": [{"take": "x", "rho": 1}]}, "seed": 0.5})
    assert caught.value.count == 4


def test_bids_are_for_policies_that_hold_auctions() -> None:
    with pytest.raises(InvalidInput, match="fifo takes no bids"):
        eunomia.solve("fifo", {"capacity": 4, "values": VALUES})


def test_an_npz_file_says_the_same(tmp_path: Path) -> None:
    np.savez(tmp_path / "table.npz", capacity=4, values=np.array(VALUES))
    flat = {name: np.array(column) for name, column in FLAT.items()}
    np.savez(tmp_path / "rows.npz", capacity=np.array([4]), **flat)
    assert result_of(tmp_path / "table.npz")["pf"] == [2, 2]
    assert result_of(tmp_path / "rows.npz")["pf"] == [[2], [2]]


def test_the_command_prints_a_table_or_json_and_writes_all_kinds_of_files(tmp_path: Path) -> None:
    problem = tmp_path / "bids.json"
    problem.write_text(json.dumps({"capacity": 4, "values": VALUES}))
    ask = ["solve", "--policy", "themis", "--problem", str(problem)]
    shown = CliRunner().invoke(app, ask)
    assert shown.exit_code == 0
    assert [line.split() for line in shown.stdout.splitlines()[3:5]] == [
        ["0", "2", "0.6000", "1.2"], ["1", "2", "0.7692", "1.538"],
    ]  # fmt: skip
    for name in ("answer.json", "answer.npz", "answer.arrow"):
        assert CliRunner().invoke(app, [*ask, "--out", str(tmp_path / name)]).exit_code == 0
    assert np.load(tmp_path / "answer.npz")["pf"].tolist() == [2, 2]
    table = pa.ipc.open_file(tmp_path / "answer.arrow").read_all()
    columns = {name: table[name].to_pylist() for name in table.column_names}
    answer = json.loads((tmp_path / "answer.json").read_text())
    known = {**json.loads(table.schema.metadata[b"eunomia"]), **columns}
    del known["seconds"], known["compile_seconds"], answer["seconds"], answer["compile_seconds"]
    assert known == answer
    problem.write_text(json.dumps({"capacity": 4, "values": [[1, 0.5]]}))
    refused = CliRunner().invoke(app, [*ask, "--json"])
    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["error"]["problems"][0]["column"] == "0.value"


def test_the_page_names_every_field_and_every_name_of_an_answer() -> None:
    section = (ROOT / "docs" / "solve.md").read_text().partition("## Auctions")[2].partition("\n## ")[0]
    fields, answer = section.split("| name in the answer |")
    for text, names in ((fields, FIELDS), (answer, result_of({"capacity": 4, "values": VALUES}))):
        found = [
            name for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
        ]
        assert set(found) == set(names)


def test_an_app_that_bids_nothing_cannot_be_the_liar() -> None:
    problem = {"capacity": 4, "values": dict(zip("ab", VALUES, strict=True))}
    with pytest.raises(InvalidInput, match="there is no app of this name here"):
        eunomia.solve("themis?liar=c&lie=2", problem)
