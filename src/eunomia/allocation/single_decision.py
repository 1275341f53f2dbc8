"""One decision without a simulation: ask a policy once about a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, cast, overload

import numpy as np

from eunomia.allocation.answer import Solution
from eunomia.allocation.auctions.auction_result import AuctionResult
from eunomia.allocation.auctions.problem import AuctionPolicy
from eunomia.allocation.auctions.reading import auction_of, is_auction
from eunomia.allocation.believed_rates import with_belief
from eunomia.allocation.parse_problem import problem_of
from eunomia.allocation.problem import AllocationProblem
from eunomia.allocation.reading import read_fields
from eunomia.allocation.timing import timed
from eunomia.allocation.view_from_problem import known_columns, view_of
from eunomia.core.answer_check import ColumnFacts, check_answer
from eunomia.core.answer_rows import PendingAsk
from eunomia.inputs.problems import InvalidInput, Problem, refused
from eunomia.model.answers import Answer, Grants, Order, Rows, Shares
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.policy import Policy
from eunomia.placement.selection import MISFIT, Candidates, PlacementResult, choose
from eunomia.records.policy_call import ask_policy
from eunomia.scenario import parse_policy
from eunomia.setup.policy_lookup import find_policy, no_place
from eunomia.setup.policy_names import check_names

Asked: TypeAlias = AllocationProblem | Mapping[str, object] | Path | str


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
