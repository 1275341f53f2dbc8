"""Exponentials, logarithms and powers are accurate, and the same for one number, for arrays and in compiled code."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from eunomia.model import elementary

RNG = np.random.default_rng(20261122)
MANY = 500
ANY = np.concatenate([RNG.uniform(-700, 700, MANY), RNG.uniform(-1, 1, MANY), RNG.uniform(-1e-3, 1e-3, MANY)])
POSITIVE = np.concatenate([10 ** RNG.uniform(-300, 300, MANY), RNG.uniform(0.5, 2, MANY), 1 + ANY[-MANY:]])
ABOVE_MINUS_ONE = np.concatenate([RNG.uniform(-0.9, 10, MANY), 10 ** RNG.uniform(-20, -5, MANY)])
BASES, EXPONENTS = 10 ** RNG.uniform(-3, 3, MANY), RNG.uniform(-80, 80, MANY)
LARGEST, SMALLEST = 1.7976931348623157e308, 5e-324
LIMITS = [709.782712893384, 709.7827128933841, -745.1332191019412, -745.13321910194122, -708.0]
EDGES = np.array([0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, -3.0, 0.5, SMALLEST, 2.2e-308, LARGEST, *LIMITS])
EXACT = {
    "exp": lambda x: x.exp(),
    "expm1": lambda x: x.exp() - 1,
    "log": lambda x: x.ln(),
    "log1p": lambda x: (1 + x).ln(),
    "log2": lambda x: x.ln() / Decimal(2).ln(),
    "log10": lambda x: x.log10(),
    "power": lambda x, y: x**y,
}
CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("exp", (ANY,)),
    ("expm1", (ANY,)),
    ("log", (POSITIVE,)),
    ("log1p", (ABOVE_MINUS_ONE,)),
    ("log2", (POSITIVE,)),
    ("log10", (POSITIVE,)),
    ("power", (BASES, EXPONENTS)),
]


@pytest.mark.parametrize(("name", "values"), CASES)
def test_a_result_is_within_fifty_five_hundredths_of_a_last_place(name: str, values: tuple[Any, ...]) -> None:
    found = getattr(elementary, name)(*values)
    with localcontext() as words:
        words.prec = 50
        exact = [EXACT[name](*map(Decimal, each)) for each in zip(*(v.tolist() for v in values), strict=True)]
        far = [abs(Decimal(a) - b) / Decimal(math.ulp(float(b))) for a, b in zip(found.tolist(), exact, strict=True)]
    assert max(far) < 0.55
    assert np.mean(found == np.array([float(each) for each in exact])) > 0.995


@pytest.mark.parametrize("name", ["exp", "log", "log2", "power"])
def test_one_number_gives_the_bits_of_an_array(name: str) -> None:
    values = {"exp": (ANY,), "power": (BASES, EXPONENTS)}.get(name, (POSITIVE,))
    if name == "power":
        values = tuple(np.append(a, b.ravel()) for a, b in zip(values, np.meshgrid(EDGES, EDGES), strict=True))
    else:
        values = (np.append(values[0], EDGES),)
    found = getattr(elementary, name)(*values)
    one = getattr(elementary, f"{name}_one")
    alone = np.array([one(*each) for each in zip(*(v.tolist() for v in values), strict=True)])
    assert alone.tobytes() == found.tobytes() or np.array_equal(alone, found, equal_nan=True)


def test_compiled_code_gives_the_same_bits() -> None:
    ask = (
        "import numpy as np; from eunomia.model import elementary as e; rng = np.random.default_rng(1);"
        "x = rng.uniform(-700, 700, 300); y = 10 ** rng.uniform(-300, 300, 300); z = rng.uniform(-2, 2, 300);"
        "print([e.exp_one(v).hex() for v in x.tolist()], [e.log_one(v).hex() for v in y.tolist()],"
        "[e.log2_one(v).hex() for v in y.tolist()],"
        "[e.power_one(a, b).hex() for a, b in zip(y.tolist(), z.tolist())])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", ask],
            env={**os.environ, "EUNOMIA_KERNELS": mode},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for mode in ("compiled", "interpreted")
    }
    assert len(said) == 1


def test_what_is_a_floating_point_number_is_found_exactly() -> None:
    k = np.arange(-1074, 1024)
    assert (elementary.power(2.0, k) == np.ldexp(1.0, k)).all()
    assert (elementary.log2(np.ldexp(1.0, k)) == k).all()
    tens = np.array([float(10**n) for n in range(23)])
    assert (elementary.log10(tens) == np.arange(23)).all()
    assert (elementary.power(10.0, np.arange(23)) == tens).all()
    squares = np.arange(1.0, 5000.0)
    assert (elementary.power(squares * squares, 0.5) == squares).all()
    assert (elementary.power(squares, 3) == squares * squares * squares).all()


def test_limits_are_those_of_the_exact_functions() -> None:
    assert elementary.exp([np.inf, -np.inf, 710.0, -746.0, 0.0]).tolist() == [np.inf, 0.0, np.inf, 0.0, 1.0]
    assert elementary.log([0.0, np.inf, 1.0]).tolist() == [-np.inf, np.inf, 0.0]
    assert np.isnan(elementary.log([-1.0, np.nan, -np.inf])).all()
    assert elementary.power([0.0, 0.0, np.inf, -2.0, -2.0], [2.0, -1.0, -1.0, 3.0, 2.0]).tolist() == [
        0,
        np.inf,
        0,
        -8,
        4,
    ]
    assert np.isnan(elementary.power(-2.0, 0.5))
    assert elementary.expm1([0.0, -np.inf, np.inf]).tolist() == [0.0, -1.0, np.inf]
    assert elementary.log1p([0.0, -1.0, np.inf, 1e-310]).tolist() == [0.0, -np.inf, np.inf, 1e-310]


def test_shapes_are_kept_and_numbers_give_numbers() -> None:
    assert elementary.exp(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert elementary.power(np.ones((3, 1)), np.ones(2)).shape == (3, 2)
    assert type(elementary.log(2)) is float
    assert type(elementary.log10(np.float64(2))) is float
