"""Checks what every answer has besides its candidates: the next ask, memory, reasons, refusals, certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from eunomia.core.answer_check.facts import AnswerFacts, refused
from eunomia.model.answers import Answer
from eunomia.model.certificate import BINDINGS, Certificate
from eunomia.model.tolerance import SOLVED
from eunomia.model.wait_reason import Reason, WaitReasons

_SCALARS = (str, bool, int, float, np.integer, np.floating, np.bool_)


def check_fields(answer: Answer, facts: AnswerFacts) -> None:
    """Raise InvalidAnswer for a field of the answer, other than its candidates, that cannot be used."""
    again_at: Any = answer.again_at
    if not (is_real(again_at) and again_at > facts.at):
        rule = f"it wants to be asked again at {again_at!r}; again_at is a time after that of the ask"
        raise refused(facts, rule, "give view.at + some seconds, or leave again_at out")
    if _is_filled(answer.memory):
        _check_memory(answer.memory, facts)
    if _is_filled(answer.refuse):
        _check_reasons(answer.refuse, "refuse", facts, {str})
        for m in answer.refuse:
            if facts.has_run(m):
                rule = f"it refused job {facts.name(m)!r}, which has run already"
                raise refused(facts, rule, "refuse only jobs that never ran; those of which view.first_started is inf")
    if _is_filled(answer.why):
        _check_reasons(answer.why, "why", facts, {str, Reason})
    if not isinstance(answer.late, tuple) or answer.late:
        _check_late(answer.late, facts)
    if answer.certificate is not None:
        _check_certificate(answer.certificate, facts)


def _is_filled(field: object) -> bool:
    """Return whether a field of the answer is to be checked: all but an empty map, which most answers have."""
    return not isinstance(field, Mapping) or bool(field)


def is_real(value: object) -> bool:
    """Return whether a value is a number on the real line, and no truth value."""
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool | np.bool_))


def _check_jobs(jobs: Any, field: str, facts: AnswerFacts) -> None:
    """Raise InvalidAnswer unless these are rows of jobs of the view."""
    n = len(facts.active)
    if set(map(type, jobs)) == {int} and min(jobs) >= 0 and max(jobs) < n:
        return  # as nearly always: none of thousands is looked at by itself
    for m in jobs:
        if not (isinstance(m, Integral) and not isinstance(m, bool) and 0 <= int(m) < n):
            rule = f"{field} names the job {m!r}; jobs are whole numbers, rows of the view: 0 … {n - 1}"
            raise refused(facts, rule, f"give rows of the view, as those of np.flatnonzero(…).tolist(), in {field}")


def _check_late(late: Any, facts: AnswerFacts) -> None:
    if not isinstance(late, tuple | list | np.ndarray) or np.ndim(late) != 1:
        rule = f"late is {_described(late)}; it is a tuple of rows of the view"
        raise refused(facts, rule, "give late=(row, …), or leave it out")
    _check_jobs(late, "late", facts)


def _check_reasons(texts: Any, field: str, facts: AnswerFacts, kinds: set[type]) -> None:
    if isinstance(texts, WaitReasons) and Reason in kinds and len(texts.code) == len(facts.active):
        return  # none of thousands of rows is looked up
    if not isinstance(texts, Mapping):
        rule = f"{field} is {type(texts).__name__}; it maps rows of the view to texts"
        raise refused(facts, rule, f'give {field}={{row: "reason"}}')
    _check_jobs(texts, field, facts)
    if not set(map(type, texts.values())) <= kinds:
        for m, text in texts.items():
            if not isinstance(text, tuple(kinds)):
                rule = f"{field} of job {facts.name(m)!r} is {text!r}; it is a text"
                raise refused(facts, rule, f"give the reason as a text in {field}")


def _check_memory(memory: Any, facts: AnswerFacts) -> None:
    if not isinstance(memory, Mapping):
        rule = f"memory is {type(memory).__name__}; it maps names to arrays"
        raise refused(facts, rule, 'give memory={"name": array}')
    n = len(facts.active)
    for name, value in memory.items():
        if not isinstance(name, str):
            raise refused(facts, f"memory has the name {name!r}; names are texts", "name it by a text")
        first = facts.info.memory_columns.get(name)
        if first is not None:
            if not (isinstance(value, np.ndarray) and value.shape == (n,) and value.dtype.kind in "fiub"):
                rule = f"the memory {name!r} is {_described(value)}; it is a column of numbers with shape {(n,)}"
                raise refused(facts, rule, "give a number for each job of the view, in the order of its rows")
            if value.dtype.kind == "f" and not math.isnan(first) and np.isnan(value).any():
                m = int(np.argmax(np.isnan(value)))
                rule = f"the memory {name!r} of job {facts.name(m)!r} is nan"
                raise refused(facts, rule, "look for 0/0 in what it computes")
        elif not _can_be_kept(value):
            rule = f"the memory {name!r} is {_described(value)}, which no record can hold"
            raise refused(facts, rule, "keep arrays of numbers or texts, numbers, texts, and tuples or maps of them")


def _can_be_kept(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiubU"
    if isinstance(value, tuple | list):
        return all(map(_can_be_kept, value))
    if isinstance(value, Mapping):
        return all(map(_can_be_kept, value)) and all(map(_can_be_kept, value.values()))
    return value is None or isinstance(value, _SCALARS)


def _described(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    return f"of type {type(value).__name__}"


def _check_certificate(proof: Any, facts: AnswerFacts) -> None:
    if not isinstance(proof, Certificate):
        rule = f"certificate is of type {type(proof).__name__}; it is a Certificate"
        raise refused(facts, rule, "give eunomia.model.certificate.Certificate(…), or leave it out")
    for name in ("objective", "bound", "scale", "tolerance"):
        value = getattr(proof, name)
        if not is_real(value) or math.isnan(value):
            rule = f"the {name} of the certificate is {value!r}; it is a number"
            raise refused(facts, rule, f"compute the {name} of the answer, or leave the certificate out")
    types, n, price, binding = len(facts.types), len(facts.active), proof.price, proof.binding
    if price is not None:
        if not (isinstance(price, np.ndarray) and price.shape == (types,) and price.dtype.kind in "fiu"):
            rule = f"the prices of the certificate are {_described(price)}; they are numbers with shape {(types,)}"
            raise refused(facts, rule, "give a price for each type of the view")
        wrong = np.flatnonzero(~((price >= -SOLVED) & (price < np.inf)))
        if len(wrong):
            j = int(wrong[0])
            rule = f"the price of {facts.types[j]} is {price[j]:g}; prices are finite and at least 0"
            raise refused(facts, rule, "give the dual values of the capacities, or leave the prices out")
    if binding is not None:
        fits = isinstance(binding, np.ndarray) and binding.shape == (n,) and binding.dtype.kind in "iu"
        if not (fits and ((binding >= 0) & (binding < len(BINDINGS))).all()):
            rule = f"binding of the certificate is {_described(binding)}; it is a number of BINDINGS for each job"
            raise refused(facts, rule, "use eunomia.model.certificate.find_bindings, or leave binding out")
