"""Inner policies of wrappers: loading by name, asking about parts, and joining their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

from eunomia.model.answers import ANYWHERE, InvalidAnswer, Order, Rows, Shares
from eunomia.model.arrays import Array, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.policy import AnswerType, Policy
from eunomia.model.view import View
from eunomia.model.wait_reason import WaitReasons

A = TypeVar("A", Shares, Order)


@lru_cache(maxsize=64)
def inner_policy(spelling: str, answer_type: AnswerType) -> Policy:
    """Return the policy of a spelling such as `fifo?backfill=skip`. Raises ValueError for a wrong one."""
    from eunomia.policies import build  # the registry imports the wrappers

    policy = build(spelling)
    if policy.info.answer_type != answer_type:
        raise ValueError(
            f"inner is {spelling!r}, which answers with {policy.info.answer_type}; take one that answers {answer_type}"
        )
    return policy


def inherit(outer: Policy, inner: Policy) -> None:
    """Add the inner policy's needs and memory to the outer one. For a `__post_init__`; needs a class without slots."""
    own, other = outer.info, inner.info
    given, others = (one.tenant_settings if "tenants" in one.needs else frozenset() for one in (own, other))
    info = replace(
        own,
        needs=own.needs | other.needs,
        oracle=own.oracle or other.oracle,
        memory_columns={**own.memory_columns, **other.memory_columns},
        mechanism=other.mechanism,
        tenant_settings=None if given is None or others is None else given | others,
        usage_half_life_s=min(own.usage_half_life_s, other.usage_half_life_s),
    )
    object.__setattr__(outer, "info", info)


def ask(inner: Policy, view: View, kind: type[A]) -> A:
    """Return the inner policy's answer. Raises InvalidAnswer when it is of another kind."""
    answer = inner.decide(view)
    if not isinstance(answer, kind):
        raise InvalidAnswer(f"policy {inner.info.name!r} answered {type(answer).__name__}, not {kind.__name__}")
    return answer


def join(
    view: View, answers: Sequence[tuple[Ints, Shares]], memory: Mapping[str, Array], memory_columns: Mapping[str, float]
) -> Shares:
    """Return one answer from answers about parts, each with the rows of its jobs."""
    parts = [_whole_rows(jobs, answer) for jobs, answer in answers]
    columns = (np.concatenate([part[i] for part in parts]) if parts else np.empty(0) for i in range(5))
    job, type, partner, within, x = columns
    stored = dict(memory)
    for name, value in memory_columns.items():
        stored[name] = np.full(view.jobs, value)
        for jobs, answer in answers:
            stored[name][jobs] = answer.memory.get(name, view.memory[name][jobs])
    job, type, partner, within = (column.astype(np.int64) for column in (job, type, partner, within))
    rows = Rows(job, type, partner=partner, within=within)
    return Shares(
        x.astype(float),
        rows,
        all(answer.fill for _, answer in answers),
        memory=stored,
        again_at=min((answer.again_at for _, answer in answers), default=np.inf),
        why=WaitReasons.at(view.jobs, *((jobs, answer.why) for jobs, answer in answers)) or {},
        refuse={int(jobs[m]): text for jobs, answer in answers for m, text in answer.refuse.items()},
        late=tuple(sorted(int(jobs[m]) for jobs, answer in answers for m in answer.late)),
        certificate=_certificate(view, answers),
    )


def _certificate(view: View, answers: Sequence[tuple[Ints, Shares]]) -> Certificate | None:
    """Return the certificate of the only part, if it holds all jobs; several do not add up to one."""
    is_whole = len(answers) == 1 and len(answers[0][0]) == view.jobs
    return answers[0][1].certificate if is_whole else None


def _whole_rows(jobs: Ints, answer: Shares) -> tuple[Ints, Ints, Ints, Ints, Array]:
    """Return job, type, partner, placement and share of an answer, in rows of the whole view."""
    if answer.rows is None:
        job, type = np.nonzero(answer.x > 0)
        none = np.full(len(job), -1)
        return jobs[job], type, none, none + 1 + ANYWHERE, answer.x[job, type]
    partner, _, within = answer.rows.filled()
    partners = np.where(partner >= 0, jobs[partner], -1)
    return jobs[answer.rows.job], answer.rows.type, partners, within, answer.x
