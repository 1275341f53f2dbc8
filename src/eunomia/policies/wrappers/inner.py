"""A policy inside another: found by name, asked about a part, its answer put back in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from eunomia.model.answers import ANYWHERE, InvalidAnswer, Order, Rows, Shares
from eunomia.model.arrays import Array, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.policy import Door, Policy
from eunomia.model.view import View


@lru_cache(maxsize=64)
def share_policy(spelling: str) -> Policy:
    """Return the policy behind a name such as `max_throughput?normalised=false`. Raises ValueError for no such one."""
    return _behind(spelling, "shares")


@lru_cache(maxsize=64)
def order_policy(spelling: str) -> Policy:
    """Return the policy behind a name such as `fifo?backfill=skip`. Raises ValueError for no such one."""
    return _behind(spelling, "order")


def _behind(spelling: str, door: Door) -> Policy:
    from eunomia.policies import build  # the registry knows this room too

    policy = build(spelling)
    if policy.info.door != door:
        raise ValueError(f"inner is {spelling!r}, which answers with {policy.info.door}; take one that answers {door}")
    return policy


def takes_over(outer: Policy, inner: Policy) -> None:
    """Let the outer policy read and remember what the inner one does. For a `__post_init__`; needs no slots."""
    own, other = outer.info, inner.info
    info = replace(
        own,
        needs=own.needs | other.needs,
        oracle=own.oracle or other.oracle,
        remembers={**own.remembers, **other.remembers},
        mechanism=other.mechanism,
    )
    object.__setattr__(outer, "info", info)


def shares_of(inner: Policy, view: View) -> Shares:
    """Return the inner policy's answer. Raises InvalidAnswer when it does not come through its door."""
    answer = inner.decide(view)
    if not isinstance(answer, Shares):
        raise InvalidAnswer(f"policy {inner.info.name!r} answered {type(answer).__name__}, though its door is shares")
    return answer


def order_of(inner: Policy, view: View) -> Order:
    """Return the inner policy's answer. Raises InvalidAnswer when it does not come through its door."""
    answer = inner.decide(view)
    if not isinstance(answer, Order):
        raise InvalidAnswer(f"policy {inner.info.name!r} answered {type(answer).__name__}, though its door is order")
    return answer


def joined(
    view: View,
    answers: Sequence[tuple[Ints, Shares]],
    memory: Mapping[str, Array],
    remembers: Mapping[str, float],
) -> Shares:
    """Return answers about parts as one about all; each comes with the rows of its jobs."""
    parts = [_rows(jobs, answer) for jobs, answer in answers]
    columns = (np.concatenate([part[i] for part in parts]) if parts else np.empty(0) for i in range(5))
    job, type, partner, within, x = columns
    kept = dict(memory)
    for name, value in remembers.items():
        kept[name] = np.full(view.jobs, value)
        for jobs, answer in answers:
            kept[name][jobs] = answer.memory.get(name, view.memory[name][jobs])
    job, type, partner, within = (column.astype(np.int64) for column in (job, type, partner, within))
    rows = Rows(job, type, partner=partner, within=within)
    return Shares(
        x.astype(float),
        rows,
        all(answer.fill for _, answer in answers),
        memory=kept,
        again_at=min((answer.again_at for _, answer in answers), default=np.inf),
        why={int(jobs[m]): text for jobs, answer in answers for m, text in answer.why.items()},
        refuse={int(jobs[m]): text for jobs, answer in answers for m, text in answer.refuse.items()},
        late=tuple(sorted(int(jobs[m]) for jobs, answer in answers for m in answer.late)),
        certificate=_whole(view, answers),
    )


def _whole(view: View, answers: Sequence[tuple[Ints, Shares]]) -> Certificate | None:
    """Return the proof of the only part, if it holds all jobs; the proofs of several do not add up to one."""
    whole = len(answers) == 1 and len(answers[0][0]) == view.jobs
    return answers[0][1].certificate if whole else None


def _rows(jobs: Ints, answer: Shares) -> tuple[Ints, Ints, Ints, Ints, Array]:
    """Return job, type, partner, placement and share of an answer, in rows of the whole view."""
    if answer.rows is None:
        job, type = np.nonzero(answer.x > 0)
        none = np.full(len(job), -1)
        return jobs[job], type, none, none + 1 + ANYWHERE, answer.x[job, type]
    partner, _, within = answer.rows.filled()
    mates = np.where(partner >= 0, jobs[partner], -1)
    return jobs[answer.rows.job], answer.rows.type, mates, within, answer.x
