"""One decision without a simulation: ask a policy once about a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TypeAlias, TypeVar, cast, overload

import numpy as np

from eunomia.allocation.answer import Solution
from eunomia.allocation.auctions.auction_result import AuctionResult
from eunomia.allocation.auctions.problem import AuctionPolicy
from eunomia.allocation.auctions.reading import auction_of, is_auction
from eunomia.allocation.fields import AxisNames, read_numbers, read_texts
from eunomia.allocation.job_classes import PAIR_FIELDS
from eunomia.allocation.parse_problem import problem_of
from eunomia.allocation.problem import AllocationProblem
from eunomia.allocation.reading import read_fields
from eunomia.allocation.view_from_problem import known_columns, view_of
from eunomia.core.answer_check import ColumnFacts, check_answer
from eunomia.core.answer_rows import PendingAsk
from eunomia.inputs.problems import InvalidInput, Problem, Problems, refused
from eunomia.kernels import PROCESS
from eunomia.model.answers import Answer, Grants, Order, Rows, Shares
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.policy import Policy
from eunomia.placement.selection import MISFIT, Candidates, PlacementResult, choose
from eunomia.records.policy_call import ask_policy
from eunomia.scenario import parse_policy
from eunomia.setup.policy_lookup import check_names, find_policy, no_place
from eunomia.throughputs import load

Asked: TypeAlias = AllocationProblem | Mapping[str, object] | Path | str
T = TypeVar("T")

BRIEF_S = 2.0  # an ask that takes longer is not repeated: loading code is a small part of it
_loaded: set[type] = set()  # policies whose code this process has loaded


@overload
def solve(policy: str | Policy, problem: AllocationProblem) -> Solution: ...
@overload
def solve(policy: str | Policy, problem: Asked, *, belief: Path | None = None) -> Solution | AuctionResult: ...
def solve(policy: str | Policy, problem: Asked, *, belief: Path | None = None) -> Solution | AuctionResult:
    """Ask a policy, given by its spelling (`fifo?backfill=skip`) or itself, about a problem, its fields, or its file.

    `belief` is a table of throughputs by job type, which takes the place of those in the fields. Returns an
    `AuctionResult` for bids, else a `Solution`.

    Raises InvalidInput for a wrong policy or problem, InvalidAnswer and PolicyFailed for a policy whose answer breaks a
    rule or that raises an exception, and NoOptimum where a solver finds no optimum.
    """
    file = str(problem) if isinstance(problem, Path | str) else "problem"
    asked, spelling = _policy(policy)
    name = spelling.partition("?")[0]
    if isinstance(problem, Path | str):
        problem = read_fields(Path(problem))
    if belief is not None:
        if isinstance(problem, AllocationProblem):
            rule, fix = "this problem has no job types any more", "give its fields, or the path of its file"
            raise refused(file, "belief", str(belief), rule, fix)
        problem = with_belief(problem, belief, file)
    if not isinstance(problem, AllocationProblem):
        if is_auction(problem):
            return _run_auction(asked, spelling, problem, file)
        problem = problem_of(problem, file)
    order = problem.submission_order()
    apps = [str(problem.name(row)) for row in range(problem.jobs)] if "app" in asked.info.names.values() else []
    check_names(name, asked, {"accelerator type": problem.types, "app": apps}, no_place)
    ordered = problem if order is None else problem.reordered(order)
    view = view_of(ordered, asked, file)
    answer, seconds, compile_seconds = timed(asked, lambda: ask_policy(asked, view))
    facts = ColumnFacts(asked.info, view, known_columns(ordered), ordered.name)
    check_answer(answer, facts, PendingAsk(0, facts.active))
    rows, share = _shares(answer, ordered)
    if order is not None:
        answer, rows, share = _original_order(answer, rows, share, order)
    return Solution(
        policy=spelling, problem=problem, answer=answer, rows=rows, share=share, seconds=seconds,
        compile_seconds=compile_seconds,
    )  # fmt: skip


def _policy(policy: str | Policy) -> tuple[Policy, str]:
    if not isinstance(policy, str):
        return policy, policy.info.name
    name, parameters = parse_policy(policy)
    return find_policy(name, parameters, Path()), policy


def _run_auction(policy: Policy, spelling: str, fields: Mapping[str, object], file: str) -> AuctionResult:
    problem = auction_of(fields, file)
    if not callable(getattr(policy, "auction", None)):
        rule, fix = f"{policy.info.name} takes no bids", "ask a policy that holds auctions, such as themis"
        raise InvalidInput([Problem(file=file, column="bids", rule=rule, fix=fix)])
    name = spelling.partition("?")[0]
    check_names(name, policy, {"accelerator type": problem.classes, "app": problem.bidders}, no_place)
    auctioneer = cast(AuctionPolicy, policy)
    partial, seconds, compile_seconds = timed(policy, lambda: auctioneer.auction(problem.bids))
    return AuctionResult(
        policy=spelling, problem=problem, partial=partial, seconds=seconds, compile_seconds=compile_seconds
    )


def _shares(answer: Answer, problem: AllocationProblem) -> tuple[Rows | None, Floats]:
    """Return the shares of an answer: 1 for candidates that an order or a grant starts, 0 for others."""
    match answer:
        case Shares():
            return answer.rows, answer.x
        case Order():
            return _place(answer, problem)
        case Grants():
            return answer.rows, np.ones(len(answer.rows))
    raise AssertionError(f"{type(answer).__name__} has passed the check of answers")


def _place(order: Order, problem: AllocationProblem) -> tuple[Rows | None, Floats]:
    """Place gangs in order on the whole cluster, counting accelerators by type."""
    partner, shape, _ = order.rows.filled()
    job, type, n = order.rows.job, order.rows.type, problem.jobs
    waiting = np.full(n, -1)
    seated = PlacementResult(
        waiting, waiting, waiting, np.zeros(n, bool), np.zeros(n, dtype=np.int64), np.full(n, np.inf)
    )
    rows = Candidates(job, type, problem.scale_factor[job], partner, shape, _run_time(order.rows, problem))
    free = problem.capacity.astype(np.int64)
    chosen, _ = choose(
        rows, np.arange(len(job)), seated, free, NO_INTS, np.zeros(n, dtype=np.int64), 1, MISFIT[order.misfit], 0.0
    )
    if (partner[chosen] >= 0).any():
        columns = ((name, getattr(order.rows, name)) for name in ("job", "type", "partner", "shape", "within"))
        kept = {name: column[chosen] for name, column in columns if column is not None}
        return replace(order.rows, **kept), np.ones(len(chosen))
    x = np.zeros(problem.throughput.shape)
    x[job[chosen], type[chosen]] = 1.0
    return None, x


def _run_time(rows: Rows, problem: AllocationProblem) -> Floats:
    """Return the remaining seconds of each row, (row,); inf where the remaining steps are unknown."""
    left = np.full(len(rows), np.inf)
    if problem.steps_remaining is not None:
        rate = problem.placed_throughput[rows.job, rows.type]
        np.divide(problem.steps_remaining[rows.job], rate, out=left, where=rate > 0)
    return left


def _original_order(
    answer: Answer, rows: Rows | None, share: Floats, order: Ints
) -> tuple[Answer, Rows | None, Floats]:
    """Return the answer with job row i renamed to order[i]."""
    place = np.argsort(order, kind="stable")
    proof = answer.certificate
    if proof is not None:
        binding = None if proof.binding is None else proof.binding[place]
        proof = replace(proof, binding=binding)
    why = {int(order[m]): reason for m, reason in answer.why.items()}
    refuse = {int(order[m]): text for m, text in answer.refuse.items()}
    late = tuple(sorted(int(order[m]) for m in answer.late))
    answer = replace(answer, why=why, refuse=refuse, late=late, certificate=proof)
    if rows is None:
        return answer, None, share[place]
    partner = None if rows.partner is None else np.where(rows.partner >= 0, order[rows.partner], -1)
    return answer, replace(rows, job=order[rows.job], partner=partner), share


def timed(policy: object, ask: Callable[[], T]) -> tuple[T, float, float]:
    """Return the answer, the seconds that it took, and the seconds of compiling and loading code.

    A brief ask is repeated on the first ask of a policy, and when anything was compiled.
    """
    before, began = PROCESS.compiling_s, perf_counter()
    answer = ask()
    took = perf_counter() - began
    compiled = PROCESS.compiling_s - before
    first, own = type(policy) not in _loaded, took - compiled
    _loaded.add(type(policy))
    if own > BRIEF_S or not (first or compiled):
        return answer, own, compiled
    began = perf_counter()
    answer = ask()
    own = perf_counter() - began
    return answer, own, max(took - own, 0.0)


def with_belief(fields: Mapping[str, object], table: Path, file: str) -> dict[str, object]:
    """Return the fields of a problem with `throughput` and `throughput_estimated` from the table of throughputs.

    The problem has `job_type`, and needs no throughput of its own. Raises InvalidInput for a problem of bids, for one
    with `pairs`, `pairs_apart` or `throughput_apart`, which may not fit the table, for wrong `types`, `job_type` or
    `scale_factor`, for a table that cannot be read, and for throughputs that it does not have.
    """
    if is_auction(fields):
        rule = "bids say what they are worth, so a table of throughputs changes nothing"
        raise refused(file, "bids", None, rule, "leave --belief out")
    problems = Problems(file)
    for field, fix in (("types", "add types, as in docs/solve.md"), ("job_type", "add the job type of each job")):
        if field not in fields:
            problems.add("is missing, and the table names throughputs by it", fix, column=field)
    for field in (*PAIR_FIELDS, "throughput_apart"):
        if field in fields:
            rule = "these throughputs would stay as they are beside those of the table"
            problems.add(rule, "leave it out, or leave --belief out", column=field)
    problems.raise_if_any()
    job_type = read_texts("job_type", fields["job_type"], None, problems)
    types = read_texts("types", fields["types"], None, problems, unique=True)
    problems.raise_if_any()
    assert job_type is not None and types is not None
    names = AxisNames(len(job_type), tuple(types.tolist()))
    size = read_numbers("scale_factor", fields.get("scale_factor", [1] * names.jobs), names, problems)
    problems.raise_if_any()
    assert size is not None
    speeds = load(str(table), types.tolist(), base=Path())
    kinds = list(zip(job_type.tolist(), size.astype(int).tolist(), strict=True))
    speeds.refuse_unknown({kind: kinds.count(kind) for kind in dict.fromkeys(kinds)})
    return {
        **fields,
        "throughput": [speeds.solo_throughput(*kind).tolist() for kind in kinds],
        "throughput_estimated": [speeds.estimated(*kind).astype(int).tolist() for kind in kinds],
    }
