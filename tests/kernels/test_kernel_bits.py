"""Kernels give the same bits interpreted, compiled, and with some interpreted and others compiled."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import sharing
from benchmarks.draws import Table, draw

import eunomia
from eunomia.kernels import KERNELS, VALUE_SAFE, kernel
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.optimum import EXACT
from eunomia.solvers.auction.partial import partial_allocation
from eunomia.solvers.linear import best_total
from eunomia.solvers.linear_totals.response import choose
from eunomia.solvers.max_min import highest_level
from eunomia.solvers.nash_welfare.response import settle
from eunomia.solvers.pricing.newton import answers
from eunomia.solvers.pricing.response import classify
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.proportional import fairest_product
from eunomia.solvers.sums import greatest, inner_product, summed, total
from eunomia.solvers.water_filling.waterfill import fill

SOURCE = Path(eunomia.__file__).parent
# These depend on the library, the processor or the length of an array in their last bit.
ON_MODULE = {
    "dot",
    "einsum",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "log",
    "log10",
    "log1p",
    "log2",
    "matmul",
    "power",
    "tanh",
}
STABLE = {"mergesort", "stable"}
JOBS = 300


@pytest.fixture
def run_as() -> Iterator[Callable[[Any], None]]:
    """A function that says for every kernel how it runs: one mode for all, or one drawn for each."""

    def choose_modes(how: str | int) -> None:
        rng = np.random.default_rng(how if isinstance(how, int) else 0)
        for each in sorted(KERNELS, key=lambda one: one.name):
            drawn = "compiled" if rng.random() < 0.5 else "interpreted"
            each.mode, each._compiled = how if isinstance(how, str) else drawn, None

    yield choose_modes
    choose_modes("")


def bits(value: Any) -> Any:
    """All that a value consists of, bit by bit."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, tuple | list):
        return tuple(bits(each) for each in value)
    if isinstance(value, float):
        return value.hex()
    return value


def in_blocks(rng: np.random.Generator) -> list[Any]:
    """What kernels over blocks of rows return and write, the last block not being full."""
    rows, columns = int(rng.integers(1, 700)), int(rng.integers(1, 5))
    rate, size, weight = rng.uniform(0, 3, (columns, rows)), rng.uniform(1, 4, rows), rng.uniform(0.5, 2, rows)
    rate[:, rng.random(rows) < 0.1] = 0.0
    price, need, base = rng.uniform(0.1, 2, columns), rng.uniform(0, 2, rows), rng.uniform(0, 0.5, rows)
    found: list[Any] = [summed(need, rows), total(need), inner_product(need, size), greatest(need, rows)]
    demand = np.zeros((2, columns))
    some = NeedRows(rate, base, size, need, None, None, None)
    answers(rate, base, size, need, weight, price, demand)
    found += [demand]
    choice = np.empty(rows, dtype=np.int16)
    half = rng.uniform(0, 0.2, columns)
    floor = np.where(rng.random(rows) < 0.5, -np.inf, 0.5 * rate.max(axis=0))
    found += [choose(rate * 0.9, size, weight, rate, floor, price, half, choice), choice]
    left, right = np.empty(rows, dtype=np.int8), np.empty(rows, dtype=np.int8)
    sums, unsure, levels = np.zeros((3, columns)), np.empty(rows + 1, dtype=np.int64), np.array([0.6, 0.65, 0.7])
    within = (np.maximum(price - half, 0.0), price + half, levels)
    found += [classify(some, *within, left, right, sums, unsure), sums]
    chosen, tally = np.empty(rows, dtype=np.int16), np.zeros(((columns + 1) * columns, 3))
    positive = rate + 0.01
    return [*found, left, right, settle(positive, size, weight, price, 0.01 * half, chosen, tally), chosen, tally]


@pytest.mark.slow
def test_kernels_over_blocks_of_rows_give_the_same_bits_interpreted_and_compiled(
    run_as: Callable[[Any], None],
) -> None:
    for seed in range(4):
        run_as("compiled")
        compiled = bits(in_blocks(np.random.default_rng(seed)))
        run_as("interpreted")
        assert bits(in_blocks(np.random.default_rng(seed))) == compiled, f"seed {seed}"


def three(table: Table) -> tuple[Any, ...]:
    """What every program starts with."""
    return table.throughput, table.size, table.capacity


def level(table: Table, need: Any, **more: Any) -> Any:
    """A highest level, its shares and prices."""
    found = highest_level(*three(table), need, **more)
    return found.objective, found.x, found.price


def product(table: Table) -> Any:
    """A fairest product, its shares and prices."""
    found = fairest_product(*three(table), table.weight)
    return found.objective, found.x, found.price


def total_of(table: Table, *, floors: bool) -> Any:
    """A best total, with or without floors."""
    if floors:
        found = best_total(table.cost, table.size, table.capacity, rate=table.throughput, floor=table.promised)
    else:
        found = best_total(*three(table))
    return found.objective, found.entries()


def filled(table: Table, *, tenants: bool) -> Any:
    """A water filling, of all jobs or of tenants."""
    need, tree = (table.unit, table.tree) if tenants else (table.need, table.together)
    found = fill(*three(table), need, tree=tree)
    return found.level, found.entries()


def auction(seed: int) -> Any:
    """Rows of an auction in which few rows fit together."""
    rng = np.random.default_rng(seed)
    bidders, classes, rows = 5, 3, 4
    take = rng.integers(0, 3, (bidders, rows, classes))
    take[:, 0] = 0
    worth = np.where(take.any(axis=2), rng.uniform(0, 2, (bidders, rows)), 0.0)
    bids = Bids(np.repeat(np.arange(bidders), rows), take.reshape(-1, classes), worth.ravel(), np.full(classes, 3))
    found = partial_allocation(bids, EXACT)
    return found.row, found.share


def shared(seed: int) -> Any:
    """The shares of jobs, some of them two on an accelerator."""
    found = sharing.by_job(sharing.draw(400, 12, seed))
    return found.first, found.second, found.column, found.share


ENGINES: dict[str, Callable[[int], Any]] = {
    "max-min": lambda seed: level(draw(JOBS, 3, seed), draw(JOBS, 3, seed).need),
    "makespan": lambda seed: level(draw(JOBS, 3, seed), draw(JOBS, 3, seed).steps),
    "finish-time fairness": lambda seed: level(
        table := draw(JOBS, 3, seed), table.steps, base=table.alone, age=table.age
    ),
    "largest total": lambda seed: total_of(draw(JOBS, 3, seed), floors=False),
    "least cost with floors": lambda seed: total_of(draw(JOBS, 3, seed), floors=True),
    "proportional fairness": lambda seed: product(draw(JOBS, 3, seed)),
    "water filling": lambda seed: filled(draw(JOBS, 3, seed), tenants=False),
    "filling of tenants": lambda seed: filled(draw(JOBS, 3, seed), tenants=True),
    "few rows": lambda seed: level(draw(9, 3, seed), draw(9, 3, seed).need),
    "auction": auction,
    "space sharing": shared,
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_gives_the_same_bits_interpreted_compiled_and_mixed(
    engine: str, run_as: Callable[[Any], None]
) -> None:
    for seed in range(2):
        run_as("compiled")
        compiled = bits(ENGINES[engine](seed))
        for how in ("interpreted", seed):
            run_as(how)
            assert bits(ENGINES[engine](seed)) == compiled, f"seed {seed}, {how}"


def test_no_kernel_has_an_option_that_may_change_a_value() -> None:
    for module in pkgutil.walk_packages([str(SOURCE / "solvers")], "eunomia.solvers."):
        importlib.import_module(module.name)
    assert [each.name for each in KERNELS if not set(each.targetoptions.get("fastmath", ())) <= VALUE_SAFE] == []


@pytest.mark.parametrize("fastmath", [True, {"reassoc"}, {"nsz", "contract"}, {"arcp"}, {"afn"}])
def test_an_option_that_may_change_a_value_is_refused(fastmath: Any) -> None:
    with pytest.raises(ValueError, match="fastmath"):
        kernel(fastmath=fastmath)


def kernels_of(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions under `@kernel`."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(
            isinstance(each, ast.Call) and ast.unparse(each.func) == "kernel" for each in function.decorator_list
        ):
            yield function


def unsteady(function: ast.FunctionDef) -> Iterator[str]:
    """What in a kernel may differ in its last bit, or in the order of equals."""
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.MatMult):
            yield ast.unparse(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            module, name = ast.unparse(node.func.value), node.func.attr
            kind = next((ast.literal_eval(word.value) for word in node.keywords if word.arg == "kind"), "")
            if name in ON_MODULE or module.endswith("linalg") or (name == "argsort" and kind not in STABLE):
                yield ast.unparse(node)
            if name in ("sum", "mean", "std", "var", "prod"):
                yield ast.unparse(node)


# Sums of whole numbers are exact in any order.
WHOLE = {
    "(bound[:count] > least).sum()",
    "count.sum()",
    "free.sum()",
    "free[levels.first[node]:levels.first[node + 1]].sum()",
    "node_free.sum()",
    "room.sum()",
    "size[:bidder].sum()",
}


def test_no_kernel_leaves_the_order_of_a_sum_or_of_equals_to_a_library() -> None:
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        for function in kernels_of(ast.parse(file.read_text(encoding="utf-8"))):
            where = f"{file.relative_to(SOURCE).as_posix()}: {function.name}"
            found += [f"{where}: {what}" for what in unsteady(function) if what not in WHOLE]
    assert found == []
