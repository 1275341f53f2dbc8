"""What the source's syntax trees show: functions fit one look, and a public class has a name of its own."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("src", "reproduction/src", "tools", "benchmarks")
MOST_LINES, MOST_PARAMETERS = 90, 12
WIDE = {  # compiled; arrays come one by one where unpacking a tuple of them takes longer than the call
    "src/eunomia/backends/simulated/gang_kernels.py: start",
    "src/eunomia/backends/simulated/implied_moments.py: _play",
    "src/eunomia/core/kernel_arrays.py: kernel_arrays",
    "src/eunomia/core/placement_pass.py: follow",
    "src/eunomia/learning/compiled_cluster.py: step",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def lines_of(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def parameters_of(function: Function) -> int:
    """Count what a caller may give. Those of a command are its options, which its help explains one by one."""
    if any("command" in ast.unparse(decorator) for decorator in function.decorator_list):
        return 0
    given = function.args
    positional = [one.arg for one in given.posonlyargs + given.args if one.arg not in ("self", "cls")]
    return len(positional) + len(given.kwonlyargs) + (given.vararg is not None) + (given.kwarg is not None)


def definitions(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    """Functions and classes of these statements, and those inside them."""
    for statement in body:
        if isinstance(statement, Function | ast.ClassDef):
            yield statement
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from definitions(getattr(statement, part, []))


@functools.cache
def defined() -> list[tuple[str, Function | ast.ClassDef]]:
    """Path and syntax tree of everything that is defined."""
    return [
        (path.relative_to(ROOT).as_posix(), node)
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for node in definitions(ast.parse(path.read_text(encoding="utf-8")).body)
    ]


def test_no_function_is_long_or_has_many_parameters_but_those_listed() -> None:
    functions = [(f"{path}: {node.name}", node) for path, node in defined() if isinstance(node, Function)]
    assert len(functions) > 6000
    assert not [name for name, function in functions if lines_of(function) > MOST_LINES]
    assert {name for name, function in functions if parameters_of(function) > MOST_PARAMETERS} == WIDE


def test_a_public_class_name_is_used_once_in_the_package() -> None:
    classes = [
        node.name
        for path, node in defined()
        if isinstance(node, ast.ClassDef) and path.startswith("src/eunomia/") and node.name[0] != "_"
    ]
    assert len(classes) > 400
    assert {name for name, count in Counter(classes).items() if count > 1} == set()
