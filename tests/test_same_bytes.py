"""Same seed, same bytes: no last digit is left to the machine, and no setting of it changes a file."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import eunomia
from eunomia.model.equations import least_squares, pseudo_inverse, solve
from eunomia.model.products import dot, row_dots, whole_dot
from eunomia.model.rounding import interpolate, rising, rounded
from eunomia.policies import POLICIES

PACKAGE = Path(eunomia.__file__).parent
NUMPY = re.compile(
    "dot|inner|outer|vdot|vecdot|matvec|vecmat|einsum|matmul|tensordot|kron|polyfit|polyval|convolve|correlate|cov|corrcoef"
    "|exp|exp2|log|log2|log10|power|float_power|expm1|log1p|sin|cos|tan|arcsin|arccos|arctan|arctan2|sinh|cosh|tanh|cbrt"
    "|hypot|logaddexp|interp|geomspace|logspace|argpartition|partition|linalg"
)
MATH = re.compile("exp|exp2|log|log2|log10|log1p|expm1|pow|sin|cos|tan|atan|atan2|sinh|cosh|tanh|erf|erfc|gamma|lgamma")
DRAWS = re.compile("(standard_)?(exponential|normal|gamma)|lognormal|poisson|geometric|beta")
EXACT_POWERS = (2, 0.5, 1, -1)
ALLOWED = {  # (file, what): why its last digit cannot matter
    ("model/products.py", "@"): "sums of whole numbers are exact in any order",
    ("metrics/statistics.py", "math.atan"): "the quantile made of it is rounded to 40 bits",
    ("learning/harmony/training.py", "@"): "numbers of jobs are exact in any order",
    (
        "learning/metis/training.py",
        "np.matmul",
    ): "PyTorch learns from what is drawn, and its sums are the machine's too",
    ("learning/metis/training.py", "np.exp"): "likewise: only trained models are held to the same bytes",
    ("tuners/hyperdrive.py", "math.erf"): "the chance made of it is rounded to 30 bits",
    ("placement/radix_sort.py", "np.log2"): "says into which bin a key goes, not the order of keys",
    ("solvers/auction/dynamic_program.py", "np.partition"): "finds a value, whose place among equal ones is not asked",
    ("report/image_export.py", "np.log1p"): "places the ticks and curves of a picture",
    ("reproduction/philly/failures.py", "draw"): "compared with a published table at two digits",
}


def offences(source: str) -> Iterator[tuple[int, str]]:
    """The lines of a module that leave digits to the machine, and what does."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not is_exact(node):
            yield node.lineno, "**"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "np" and NUMPY.fullmatch(node.attr):
                yield node.lineno, f"np.{node.attr}"
            if node.value.id == "math" and MATH.fullmatch(node.attr):
                yield node.lineno, f"math.{node.attr}"
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "math"
            and any(MATH.fullmatch(each.name) for each in node.names)
        ):
            yield node.lineno, "from math"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "argsort":
            yield from [] if any(each.arg == "kind" for each in node.keywords) else [(node.lineno, "argsort")]
    yield from draws(tree)


def is_exact(power: ast.BinOp) -> bool:
    """Whether a power is computed by products and roots, or of whole numbers, or is one of two."""
    base, exponent = power.left, power.right
    if isinstance(exponent, ast.Constant) and exponent.value in EXACT_POWERS:
        return True
    whole = isinstance(base, ast.Constant) and isinstance(base.value, int)
    of_two = isinstance(base, ast.Constant) and base.value == 2
    named = isinstance(base, ast.Name | ast.Attribute) and ast.unparse(base) in ("eta", "self._eta")  # whole numbers
    return of_two or named or (whole and isinstance(exponent, ast.Constant))


def draws(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Draws of distributions with logarithms in them that are not rounded by `drawn`."""
    rounded_ones = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "drawn"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        is_draw = (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and DRAWS.fullmatch(node.func.attr)
        )
        if is_draw and id(node) not in rounded_ones:
            yield node.lineno, "draw"  # type: ignore[attr-defined]


def test_nothing_that_decides_or_draws_leaves_its_last_digit_to_the_machine() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{line}: {what}; use model.products, model.elementary, model.equations or "
        "model.rounding, or argsort with kind='stable'"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line, what in offences(file.read_text(encoding="utf-8"))
        if (file.relative_to(PACKAGE).as_posix(), what) not in ALLOWED
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "a @ b", "np.dot(a, b)", "np.exp(a)", "math.log(2)", "x ** 0.3", "a ** 3", "np.argsort(a)", "rng.normal(0, 1)",
        "np.linalg.solve(a, b)", "np.interp(a, b, c)", "np.argpartition(a, 3)", "10.0 ** k",
    ],
)  # fmt: skip
def test_the_rule_finds_what_it_forbids(line: str) -> None:
    assert [what for _, what in offences(line)] != []


@pytest.mark.parametrize("line", ["x ** 2", "x ** 0.5", "2.0 ** k", "10 ** 6", "drawn(rng.normal(0, 1))", "dot(a, b)"])
def test_the_rule_allows_what_ieee_754_rounds_in_one_way(line: str) -> None:
    assert list(offences(line)) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5,), (5,)), ((50,), (50,)), ((7, 3), (3,)), ((9000, 8), (8,)), ((9000, 3), (3,)), ((8, 9000), (9000,)),
        ((40,), (40, 6)), ((4, 0), (0,)), ((0, 4), (4,)), ((0,), (0, 3)), ((5, 6), (6, 7)), ((9, 6), (6, 2)),
        ((3, 0), (0, 2)), ((2, 5, 3, 4), (2, 5, 4, 3)), ((4, 3, 2), (2,)),
    ],
)  # fmt: skip
def test_a_product_is_that_of_matrices_whatever_the_layout(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(left) + sum(left))
    a, b = rng.normal(size=left), rng.normal(size=right)
    found = np.asarray(dot(a, b))
    assert found.shape == (a @ b).shape
    assert np.allclose(found, a @ b, rtol=1e-12, atol=1e-12)
    assert np.asarray(dot(np.asfortranarray(a), np.asfortranarray(b))).tobytes() == found.tobytes()


def test_few_terms_are_added_from_the_first_to_the_last() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3000, 5)), rng.normal(size=5)
    by_hand = [((((r[0] * b[0]) + r[1] * b[1]) + r[2] * b[2]) + r[3] * b[3]) + r[4] * b[4] for r in a]
    assert np.array_equal(dot(a, b), by_hand)
    assert np.array_equal([float(row_dots(r, b)) for r in a], by_hand)
    assert whole_dot(np.ones((2, 3)), np.ones(3)).tolist() == [3, 3]


def test_small_systems_are_solved_as_by_lapack() -> None:
    rng = np.random.default_rng(2)
    many, right = rng.normal(size=(4, 5, 3, 3)), rng.normal(size=(4, 5, 3))
    assert np.allclose(solve(many, right), np.linalg.solve(many, right[..., None])[..., 0])
    assert not np.isfinite(solve(np.zeros((2, 2)), np.ones(2))).any()
    for shape in ((4, 3), (3, 4), (5, 5), (30, 6)):
        matrix = rng.normal(size=shape)
        matrix[:, -1] = 2 * matrix[:, 0]
        assert np.allclose(pseudo_inverse(matrix, rcond=1e-9), np.linalg.pinv(matrix, rcond=1e-9))
        side = rng.normal(size=shape[0])
        assert np.allclose(least_squares(matrix, side), np.linalg.lstsq(matrix, side, rcond=1e-12)[0])


def test_one_unit_in_the_last_place_changes_no_rank_and_the_lower_row_wins() -> None:
    rng = np.random.default_rng(3)
    key = rng.integers(1, 20, 500) / 7
    near = np.where(rng.random(500) < 0.5, np.nextafter(key, np.inf), np.nextafter(key, -np.inf))
    assert np.array_equal(rising(near), np.argsort(key, kind="stable"))
    assert np.array_equal(rounded(near), rounded(key))
    assert np.array_equal(rounded(rounded(key)), rounded(key))
    assert np.abs(rounded(key) / key - 1).max() <= 2.0**-30
    kept = np.array([0.0, np.inf, -np.inf, np.nan, 1e308])
    assert np.array_equal(rounded(kept), kept, equal_nan=True)


def test_straight_lines_go_through_the_points_and_are_flat_beyond() -> None:
    at, values = np.array([0.0, 0.1, 0.5, 1.0]), np.array([1.0, 4.0, 2.0, 8.0])
    x = np.linspace(-0.5, 1.5, 401)
    assert np.allclose(interpolate(x, at, values), np.interp(x, at, values), rtol=1e-14)
    assert interpolate(at, at, values).tolist() == values.tolist()
    assert float(interpolate(3.0, [1.0], [5.0])) == 5.0


SCENARIO = """seed = 5
[cluster]
accelerators = { v100 = 4, p100 = 4, k80 = 4 }
accelerators_per_node = 4
[workload]
generator = "philly-like"
jobs = 20
rate_per_hour = 6
[policy]
name = "fifo"
[overheads]
checkpoint_s = 5
restore_s = 20
"""
SETTINGS = {
    "an old BLAS": {"OPENBLAS_CORETYPE": "Prescott"},
    "numpy without vector instructions": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR X86_V3"},
    "one thread and another hash": {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        "PYTHONHASHSEED": "1",
    },
}


def played(folder: Path, name: str, settings: dict[str, str], policies: list[str]) -> dict[str, str]:
    """The hash of each file that a comparison writes, but for the times that it took and its page."""
    out = folder / name
    policy = [word for each in policies for word in ("--policy", each)]
    command = [
        sys.executable,
        "-m",
        "eunomia",
        "compare",
        str(folder / "s.toml"),
        *policy,
        "--record",
        "--out",
        str(out),
    ]
    subprocess.run(command, env={**os.environ, **settings}, check=True, capture_output=True)
    files = (each for each in sorted(out.rglob("*")) if each.is_file() and each.suffix != ".html")
    return {
        each.relative_to(out).as_posix(): sha256(each.read_bytes()).hexdigest()
        for each in files
        if each.name != "timing.json"
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scenario."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "s.toml").write_text(SCENARIO)
    return folder


@pytest.fixture(scope="module")
def plain(folder: Path) -> dict[str, str]:
    """What this machine writes as it is."""
    return played(folder, "plain", {}, sorted(POLICIES))


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_policy_writes_the_same_bytes_whatever_the_machine(
    setting: str, folder: Path, plain: dict[str, str]
) -> None:
    other = played(folder, setting.replace(" ", "-"), SETTINGS[setting], sorted(POLICIES))
    assert len(plain) >= 3 * len(POLICIES)
    assert [name for name in plain if other.get(name) != plain[name]] == []
