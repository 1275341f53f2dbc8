"""The border between policies and the core: no answer is used before it is checked here, in any world.

An answer is checked as a whole before anything of it is used, so that a refused one changes nothing. Answers that keep
every rule take a pass of compiled code (`quick`); whatever that does not let through is looked at again, one rule after
the other, to name the rule, the job and what to change.
"""

from __future__ import annotations

from eunomia.core.answer_check.candidates import check_order, check_shares
from eunomia.core.answer_check.facts import AnswerFacts, ColumnFacts, StateFacts, refused
from eunomia.core.answer_check.fields import check_fields
from eunomia.core.answer_check.grants import check_grants
from eunomia.core.answer_check.quick import are_plain_rows, are_plain_shares
from eunomia.core.answer_rows import PendingAsk
from eunomia.model.answers import Answer, Grants, Order, Shares

__all__ = ["AnswerFacts", "ColumnFacts", "StateFacts", "check_answer"]
_KINDS: dict[str, type[Answer]] = {"shares": Shares, "order": Order, "grants": Grants}


def check_answer(answer: object, facts: AnswerFacts, question: PendingAsk) -> None:
    """Raise InvalidAnswer unless the answer can be carried out; note in `question` the candidates of a plain one."""
    kind = _KINDS[facts.answer_type]
    if not isinstance(answer, kind):
        raise _wrong_kind(answer, kind, facts)
    check_fields(answer, facts)
    if isinstance(answer, Shares):
        if not are_plain_shares(answer, facts, question):
            check_shares(answer, facts)
    elif isinstance(answer, Order):
        if not are_plain_rows(answer, facts, question):
            check_order(answer, facts)
    elif isinstance(answer, Grants):
        check_grants(answer, facts)


def _wrong_kind(answer: object, kind: type[Answer], facts: AnswerFacts) -> Exception:
    given, wanted = type(answer).__name__, kind.__name__
    if isinstance(answer, Answer):
        fix = f"return {wanted}(…), or set answer_type on its card to what it returns"
        return refused(facts, f"it answered {given}, and its card says answer_type={facts.answer_type!r}", fix)
    fix = "does a `return` miss?" if answer is None else f"wrap it: return {wanted}(…)"
    return refused(facts, f"it answered {given}; an answer is Shares, Order or Grants", f"return {wanted}(…): {fix}")
