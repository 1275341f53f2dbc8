"""What is asked of the engines and of the general solvers: one question for each problem and size of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks import sharing
from benchmarks.draws import HOUR, Table, draw
from eunomia.allocation.problem import AllocationProblem
from eunomia.allocation.view_from_problem import view_of
from eunomia.model.arrays import Floats, Ints
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.solvers.assignment import soonest
from eunomia.solvers.linear import best_total
from eunomia.solvers.max_min import MaxMinResult, highest_level
from eunomia.solvers.proportional import fairest_product
from eunomia.solvers.water_filling.tree import Tree
from eunomia.solvers.water_filling.waterfill import fill

SMALL, MIDDLE, LARGE, MILLION = 2_048, 10_000, 100_000, 1_000_000
CONIC, LINEAR = "Clarabel", "HiGHS"
Other = Callable[[Any, Any], Any]  # (module `general`, drawn problem) → objective


@dataclass(frozen=True, kw_only=True)
class Question:
    """A problem at one size, and who can answer it."""

    problem: str
    jobs: int
    types: int
    draw: Callable[[int], Any]  # seed → problem, not timed
    ours: Callable[[Any], Any]  # problem → answer, timed
    value: Callable[[Any, Any], Any]  # (problem, answer) → objective, a number or an array
    others: Mapping[str, Other] = field(default_factory=dict)  # by the name of the solver
    patient: bool = False  # others take long: only when asked for
    matrix: Callable[[Any], Floats] | None = lambda table: table.throughput  # what one read is a read of


def three(table: Table) -> tuple[Floats, Floats, Floats]:
    """Return what every program starts with: throughput, size, capacity."""
    return table.throughput, table.size, table.capacity


def _of_level(_: Any, level: MaxMinResult) -> float:
    return level.objective


def _both(name: str, arguments: Callable[[Any], tuple[Any, ...]]) -> dict[str, Other]:
    """Return a linear program of `general` in either solver."""
    return {title: partial(_linear, name, arguments, title.upper()) for title in (CONIC, LINEAR)}


def _linear(name: str, arguments: Callable[[Any], tuple[Any, ...]], solver: str, general: Any, problem: Any) -> Any:
    return getattr(general, name)(*arguments(problem), solver)


def _sizes(sizes: tuple[tuple[int, int], ...], others: Mapping[str, Other]) -> Iterator[dict[str, Any]]:
    """Yield jobs, types, and the solvers that may finish."""
    for jobs, types in sizes:
        able = others if jobs <= LARGE else {}
        yield {"jobs": jobs, "types": types, "others": able, "patient": jobs > MIDDLE}


def _levels() -> Iterator[Question]:
    needs: dict[str, Callable[[Table], Floats]] = {
        "max-min": lambda table: table.need,
        "makespan": lambda table: table.steps / HOUR,
    }
    sizes = ((SMALL, 3), (MIDDLE, 3), (LARGE, 3), (LARGE, 8), (MILLION, 3), (MILLION, 8))
    for problem, need in needs.items():
        others = _both("max_min", lambda table, need=need: (*three(table), need(table)))
        for size in _sizes(sizes, others):
            yield Question(
                problem=problem,
                draw=partial(draw, size["jobs"], size["types"]),
                ours=lambda table, need=need: highest_level(*three(table), need(table)),
                value=_of_level,
                **size,
            )


def _finish_times() -> Iterator[Question]:
    def given(table: Table) -> tuple[Any, ...]:
        return *three(table), table.steps / HOUR, table.age / HOUR, table.alone / HOUR

    others: dict[str, Other] = {
        f"{CONIC}, a cone program": lambda general, table: general.finish_time_fairness(*given(table)),
        f"{LINEAR}, bisection": lambda general, table: general.finish_time_fairness_by_bisection(*given(table)),
    }
    for title, spread in (("finish-time fairness", 0.2), ("finish-time fairness, heavy tails", 2.0)):
        for size in _sizes(((SMALL, 3), (MILLION, 3), (MILLION, 8)), others):
            yield Question(
                problem=title,
                draw=partial(draw, size["jobs"], size["types"], spread=spread),
                ours=lambda table: highest_level(*three(table), table.steps, base=table.alone, age=table.age),
                value=lambda _, level: 1 / level.objective,
                **size,
            )


def _fillings() -> Iterator[Question]:
    kinds: dict[str, tuple[Callable[[Table], Floats], Callable[[Table], Tree]]] = {
        "water filling": (lambda table: table.need, lambda table: table.together),
        "hierarchical, 8 tenants": (lambda table: table.unit, lambda table: table.tree),
    }
    for title, (need, tree) in kinds.items():
        others: dict[str, Other] = {
            f"{LINEAR}, a program a level": lambda general, table, need=need, tree=tree: general.water_filling(
                *three(table), need(table), tree(table), "HIGHS"
            )
        }
        for load, jobs in ((8.0, SMALL), (1.1, 256), (1.1, SMALL), (8.0, MILLION), (1.1, MILLION)):
            yield Question(
                problem=f"{title}, load {load:g}",
                jobs=jobs,
                types=3,
                draw=partial(draw, jobs, 3, load=load),
                ours=lambda table, need=need, tree=tree: fill(*three(table), need(table), tree=tree(table)),
                value=lambda _, filled: filled.level,
                others=others if jobs <= SMALL else {},
                patient=jobs == SMALL,
            )


def _products() -> Iterator[Question]:
    others: dict[str, Other] = {
        CONIC: lambda general, table: general.proportional_fairness(*three(table), table.weight) / table.weight.sum()
    }
    for size in _sizes(((SMALL, 3), (LARGE, 3), (MILLION, 3), (MILLION, 8)), others):
        yield Question(
            problem="proportional fairness",
            draw=partial(draw, size["jobs"], size["types"]),
            ours=lambda table: fairest_product(*three(table), table.weight),
            value=lambda table, found: found.objective / table.weight.sum(),
            **size,
        )


def _totals() -> Iterator[Question]:
    for size in _sizes(((SMALL, 3), (LARGE, 3), (MILLION, 3), (MILLION, 8)), _both("max_throughput", three)):
        yield Question(
            problem="max throughput",
            draw=partial(draw, size["jobs"], size["types"]),
            ours=lambda table: best_total(*three(table)),
            value=lambda _, total: total.objective,
            **size,
        )
    others = _both("min_cost", lambda table: (*three(table), table.price, table.promised))
    for size in _sizes(((SMALL, 3), (LARGE, 3), (MILLION, 3)), others):
        yield Question(
            problem="least cost with floors",
            draw=partial(draw, size["jobs"], size["types"]),
            ours=lambda table: best_total(table.cost, *three(table)[1:], rate=table.throughput, floor=table.promised),
            value=lambda _, total: -total.objective,
            **size,
        )


def _written() -> Iterator[Question]:
    answers: dict[str, Callable[[Table], Any]] = {
        "max-min": lambda table: highest_level(*three(table), table.need),
        "proportional fairness": lambda table: fairest_product(*three(table), table.weight),
    }
    forms: dict[str, Callable[[Any], Any]] = {
        "dense X": lambda found: found.x,
        "entries": lambda found: found.entries(),
    }
    for problem, answer in answers.items():
        for form, write in forms.items():
            for types in (3, 8):
                yield Question(
                    problem=f"{problem} and its {form}",
                    jobs=MILLION,
                    types=types,
                    draw=partial(draw, MILLION, types),
                    ours=lambda table, answer=answer, write=write: write(answer(table)),
                    value=_nothing,
                )


def _decisions() -> Iterator[Question]:
    """Yield whole decisions, from a problem to shares: needs, engine, dense X, why each job has its share."""
    for types in (3, 8):
        yield Question(
            problem="max-min, the whole decision",
            jobs=MILLION,
            types=types,
            draw=partial(_asked, types=types),
            ours=lambda problem: MaxMinFairness().decide(view_of(problem, MaxMinFairness())),
            value=_nothing,
            matrix=lambda problem: problem.throughput,
        )


def _asked(seed: int, *, types: int) -> AllocationProblem:
    table = draw(MILLION, types, seed)
    return AllocationProblem(
        types=tuple(f"type {k}" for k in range(types)),
        capacity=table.capacity,
        throughput=table.throughput,
        scale_factor=table.size.astype(np.int64),
        weight=table.weight,
    )


def _nothing(*_: Any) -> float:
    return 0.0


def _by_job(load: sharing.Workload) -> tuple[Any, ...]:
    of = load.of
    return load.rate[of], load.beside[np.ix_(of, of)], load.size[of], load.capacity, load.need[of]


def _pairs() -> Iterator[Question]:
    others = _both("max_min_sharing", _by_job)
    for jobs, classes in ((128, 26), (256, 26), (MILLION, 26), (MILLION, 100)):
        common: dict[str, Any] = {
            "jobs": jobs,
            "types": 3,
            "draw": lambda seed, jobs=jobs, classes=classes: sharing.draw(jobs, classes, seed),
            "matrix": None,
        }
        yield Question(
            problem=f"space sharing, {classes} classes, level",
            ours=sharing.by_class,
            value=_of_level,
            others=others if jobs <= 256 else {},
            patient=jobs > 128,
            **common,
        )
        yield Question(
            problem=f"space sharing, {classes} classes, all shares",
            ours=sharing.by_job,
            value=_nothing,
            **common,
        )


def _times(jobs: int, seed: int) -> tuple[Floats, Ints]:
    """Return how long each job takes on each of three types, (job, type), and their accelerators."""
    table = draw(jobs, 3, seed, spread=1.0)
    return np.ascontiguousarray(table.steps[:, None] / table.throughput), np.full(3, jobs // 4)


def _queues() -> Iterator[Question]:
    for jobs in (128, 256, 512):
        yield Question(
            problem="AlloX",
            jobs=jobs,
            types=3,
            draw=partial(_times, jobs),
            ours=lambda drawn: soonest(*drawn),
            value=_finish,
            others={"scipy's matching": lambda general, drawn: general.queues(*drawn)} if jobs < 512 else {},
            patient=jobs > 128,
            matrix=None,
        )


def _finish(drawn: Any, places: Any) -> float:
    """Return the sum of completion times of a matching."""
    (time, _), (type, position) = drawn, places
    return float((time[np.arange(len(time)), type] * position).sum())


def questions() -> Iterator[Question]:
    """Yield all questions, in the order of the table."""
    for some in (
        _levels,
        _finish_times,
        _fillings,
        _products,
        _totals,
        _written,
        _decisions,
        _pairs,
        _queues,
    ):
        yield from some()
