"""The border between policies and the core: no answer is used before it is checked here, in any world.

An answer is checked as a whole before anything of it is used, so that a refused one changes nothing. Answers that keep
every rule take a pass of compiled code (`quick`); whatever that does not let through is looked at again, one rule after
the other, to name the rule, the job and what to change.
"""

from __future__ import annotations

from eunomia.core.answer_check.candidates import check_order, check_shares
from eunomia.core.answer_check.facts import AnswerFacts, ColumnFacts, StateFacts
from eunomia.core.answer_check.fields import check_fields
from eunomia.core.answer_check.grants import check_grants
from eunomia.core.answer_check.quick import are_plain_grants, are_plain_rows, are_plain_shares
from eunomia.core.answer_rows import PendingAsk
from eunomia.model.answers import Answer, Grants, InvalidAnswer, Order, Shares
from eunomia.model.policy import AnswerType, PolicyInfo

__all__ = ["AnswerFacts", "ColumnFacts", "StateFacts", "check_answer", "check_kind"]
_KINDS: dict[AnswerType, type[Answer]] = {"shares": Shares, "order": Order, "grants": Grants}


def check_answer(answer: Answer, facts: AnswerFacts, question: PendingAsk) -> None:
    """Raise InvalidAnswer unless the answer can be carried out; note in `question` the candidates of a plain one."""
    if facts.info.published:
        check_fields(answer, facts)
        return
    check_kind(answer, facts.info, facts.at)
    check_fields(answer, facts)
    if isinstance(answer, Shares):
        if not are_plain_shares(answer, facts, question):
            check_shares(answer, facts, question)
    elif isinstance(answer, Order):
        if not are_plain_rows(answer, facts, question):
            check_order(answer, facts)
    elif isinstance(answer, Grants) and not are_plain_grants(answer, facts):
        check_grants(answer, facts)


def check_kind(answer: object, info: PolicyInfo, at: float) -> None:
    """Raise InvalidAnswer for anything but an answer of the kind that the policy's card says."""
    wanted = _KINDS[info.answer_type]
    if isinstance(answer, wanted):
        return
    rule, fix = f"it answered {type(answer).__name__}", f"return {wanted.__name__}(…)"
    if isinstance(answer, Answer):
        rule, fix = f"{rule}, and its card says answer_type={info.answer_type!r}", f"{fix}, or change the card"
    else:
        rule = f"{rule}; an answer is Shares, Order or Grants"
        fix = f"{fix}: does a `return` miss?" if answer is None else f"{fix} around it"
    raise InvalidAnswer(rule, fix, info.name, at)
