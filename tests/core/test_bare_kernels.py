"""Kernels without reference counts make no array and return none, and columns do not get in each other's way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import eunomia
from eunomia.core.columns import GrowingColumns

PACKAGE = Path(eunomia.__file__).parent
NUMBERS = {"None", "int", "float", "bool"}


def steps() -> Iterator[tuple[str, ast.FunctionDef, str]]:
    """Every compiled function: where it stands, itself, and the text of its decorator."""
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "@kernel(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                for made in (ast.unparse(decorator) for decorator in node.decorator_list):
                    if made.startswith("kernel("):
                        yield f"{file.relative_to(PACKAGE)}: {node.name}", node, made


def names_in(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def test_bare_steps_return_numbers() -> None:
    bare = [(where, node) for where, node, made in steps() if "allocates=False" in made]
    assert len(bare) > 40
    handing_out = [
        where for where, node in bare if not names_in(node.returns or ast.Constant(None)) - {"tuple"} <= NUMBERS
    ]
    numbers = [f"model/elementary.py: {name}" for name in ("_exp_sum", "_log_sum", "_product")]  # of arrays, in Python
    named = ["core/kernel_arrays.py: kernel_arrays", "core/rank_line.py: rank_line"]  # arrays that they are given
    assert handing_out == [*named, *numbers]


def test_only_bare_steps_take_the_state_apart() -> None:
    calls = {
        where: made
        for where, node, made in steps()
        if any(isinstance(child, ast.Call) and ast.unparse(child.func) == "kernel_arrays" for child in ast.walk(node))
    }
    assert len(calls) > 5
    assert [where for where, made in calls.items() if "allocates=False" not in made] == []


@pytest.mark.parametrize("rows", [1, 57, 500, 3000])
def test_columns_grow_and_stay_apart_in_the_cache(rows: int) -> None:
    columns = GrowingColumns({name: (np.int64, k) for k, name in enumerate("abc")} | {"wide": (np.float64, 0.5, 2)})
    for row in range(rows):
        assert columns.add() == row
    assert columns.room >= rows
    assert columns.ints.shape == (3, columns.room)
    assert columns.ints.flags.c_contiguous
    assert columns.ints.strides[0] % 4096 != 0
    assert (columns.ints == np.arange(3)[:, None]).all()
    assert columns.wide.shape == (columns.room, 2)  # type: ignore[attr-defined]
