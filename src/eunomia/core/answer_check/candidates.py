"""Checks shares and orders rule by rule, so that a refusal names the rule, the job and what to change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eunomia.core.answer_check.facts import AnswerFacts, refused
from eunomia.core.answer_rows import PendingAsk
from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Order, Rows, Shares
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.tolerance import SOLVED
from eunomia.placement.selection import MISFIT

_ROWS = "rows are eunomia.Rows(job, type), arrays of whole numbers"


class NamedRows(NamedTuple):
    """The rows of an answer, jobs as rows of the view; every column is (row,)."""

    job: Ints
    type: Ints
    partner: Ints
    shape: Ints
    size: Ints  # accelerators
    speed: Floats  # believed steps/s of the slower of a pair; 0 = cannot run so

    def say(self, row: int, facts: AnswerFacts) -> str:
        """Name job, partner and shape of a row."""
        mate = f" beside {facts.name(int(self.partner[row]))!r}" if self.partner[row] >= 0 else ""
        shape = f" in shape {self.shape[row]}" if self.shape[row] else ""
        return f"job {facts.name(int(self.job[row]))!r}{mate}{shape}"


# ---- rows ------------------------------------------------------------------------------------------------------------


def candidates_of(rows: Any, facts: AnswerFacts) -> NamedRows:
    """Return the candidates that rows name. Raises InvalidAnswer where one is not there."""
    if not isinstance(rows, Rows):
        raise refused(facts, f"rows is of type {type(rows).__name__}; {_ROWS}", "build it with eunomia.Rows(job, type)")
    n, types = len(facts.active), len(facts.types)
    job = index_column(rows.job, "rows.job", 0, n, "job", facts)
    type_ = index_column(rows.type, "rows.type", 0, types, "type", facts)
    if len(job) != len(type_):
        rule = f"rows.job and rows.type differ in length: {len(job)} and {len(type_)}"
        raise refused(facts, rule, "name a type for each job")
    none = np.full(len(job), -1)
    partner, shape = none, np.zeros(len(job), dtype=np.int64)
    if rows.partner is not None:
        partner = _as_long(index_column(rows.partner, "rows.partner", -1, n, "partner", facts), "partner", job, facts)
    if rows.within is not None:
        _as_long(
            index_column(rows.within, "rows.within", ANYWHERE, ONE_MACHINE + 1, "level", facts), "within", job, facts
        )
    if rows.shape is not None:
        shape = _as_long(index_column(rows.shape, "rows.shape", 0, 1 << 31, "shape", facts), "shape", job, facts)
    size, speed = facts.scale_factor[facts.active[job]], facts.throughput[facts.active[job], type_]
    if (partner >= 0).any():
        speed = _check_pairs(job, type_, partner, size, speed, facts)
    if shape.any():
        size, speed = _check_shapes(job, type_, partner, shape, size, speed, facts)
    return NamedRows(job, type_, partner, shape, size, speed)


def index_column(values: Any, field: str, low: int, high: int, what: str, facts: AnswerFacts) -> Ints:
    """Return a column of whole numbers in low … high - 1. Raises InvalidAnswer for anything else."""
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        shape = f"an array with shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise refused(facts, f"{field} is {shape}; it is an array with one axis", "build it with numpy")
    if values.dtype.kind not in "iu":
        fix = "use indices, as those of np.flatnonzero or np.argsort" + ", and not a mask" * (values.dtype.kind == "b")
        raise refused(facts, f"{field} has numbers of type {values.dtype}; they are whole numbers", fix)
    if not len(values):
        return values
    wrong = np.flatnonzero((values < low) | (values >= high))
    if len(wrong):
        at = int(wrong[0])
        rule = f"a row names a {what} outside {low} … {high - 1}: {field}[{at}] is {values[at]}"
        raise refused(facts, rule, f"a {what} is named by its number in the view that was asked about")
    return values


def _as_long(values: Ints, field: str, job: Ints, facts: AnswerFacts) -> Ints:
    if len(values) != len(job):
        rule = f"rows.{field} and rows.job differ in length: {len(values)} and {len(job)}"
        raise refused(facts, rule, f"give {field} for each row, or leave it out")
    return values


def _check_pairs(job: Ints, type: Ints, partner: Ints, size: Ints, speed: Floats, facts: AnswerFacts) -> Floats:
    """Return steps/s of each row, of the slower where two run side by side."""
    two = np.flatnonzero(partner >= 0)
    mine, mate, on = job[two], partner[two], type[two]
    for row in two[mine == mate][:1].tolist():
        rule = f"a row pairs a job with itself: {facts.name(int(job[row]))!r}"
        raise refused(facts, rule, "name another job as partner, or -1")
    other = facts.scale_factor[facts.active[mate]]
    for at in np.flatnonzero(size[two] != other)[:1].tolist():
        names = facts.name(int(mine[at])), facts.name(int(mate[at]))
        rule = (
            f"a row pairs gangs of different scale factors: {names[0]!r} with {size[two][at]} and {names[1]!r} with "
            f"{other[at]}"
        )
        raise refused(facts, rule, "pair jobs of one scale factor")
    speed = speed.copy()
    speed[two] = np.minimum(facts.pair_speeds(mine, mate, on), facts.pair_speeds(mate, mine, on))
    return speed


def _check_shapes(
    job: Ints, type: Ints, partner: Ints, shape: Ints, size: Ints, speed: Floats, facts: AnswerFacts
) -> tuple[Ints, Floats]:
    """Return accelerators and steps/s of each row in its shape."""
    other = np.flatnonzero(shape)
    known = facts.shapes_of(job[other])
    for at in np.flatnonzero(shape[other] >= known)[:1].tolist():
        rule = (
            f"a row names shape {shape[other[at]]} of a job that has {known[at]}: {facts.name(int(job[other[at]]))!r}"
        )
        raise refused(facts, rule, "name a shape of view.shapes that is above 0")
    for row in other[partner[other] >= 0][:1].tolist():
        rule = f"a row gives a pair another shape: that of {facts.name(int(job[row]))!r}"
        raise refused(facts, rule, "pair jobs in their first shape, 0")
    size, speed = size.copy(), speed.copy()
    size[other] = facts.size_in(job[other], shape[other])
    speed[other] = facts.shape_speeds(job[other], shape[other], type[other])
    return size, speed


def check_runs(named: NamedRows, rows: Bools, given: str, facts: AnswerFacts) -> None:
    """Raise InvalidAnswer unless each of these rows could run: its job is believed to, and its gang fits the type."""
    for row in np.flatnonzero(rows & ~(named.speed > 0))[:1].tolist():
        how = ", where the two cannot run side by side" if named.partner[row] >= 0 else ", where it cannot run"
        rule = f"{named.say(row, facts)} {given} {facts.types[named.type[row]]}{how} (its throughput is 0 there)"
        column = "packed_throughput" if named.partner[row] >= 0 else "throughput"
        raise refused(facts, rule, f"name only types on which view.{column} is above 0")
    if not (rows & (named.size > facts.capacity[named.type])).any():
        return
    room = facts.whole()[named.type]  # a type that is too small only while machines are away may be waited for
    for row in np.flatnonzero(rows & (named.size > room))[:1].tolist():
        rule = (
            f"{named.say(row, facts)} {given} {facts.types[named.type[row]]}, which is too small: it has "
            f"{room[row]:g}, its gang {named.size[row]}"
        )
        raise refused(facts, rule, "name only types whose view.capacity holds the gang, view.scale_factor")


# ---- an order --------------------------------------------------------------------------------------------------------


def check_order(answer: Order, facts: AnswerFacts) -> None:
    """Raise InvalidAnswer unless an order can be carried out."""
    if not isinstance(answer.misfit, str) or answer.misfit not in MISFIT:
        rule = f"misfit is {answer.misfit!r}; it is one of {', '.join(map(repr, MISFIT))}"
        raise refused(facts, rule, "say what becomes of a gang that does not fit")
    named = candidates_of(answer.rows, facts)
    check_runs(named, np.ones(len(named.job), dtype=np.bool_), "is ordered to", facts)
    job = named.job
    firsts = np.flatnonzero(np.diff(job, prepend=-1) != 0)  # rows at which those of a job begin
    again = np.flatnonzero(np.bincount(job[firsts], minlength=1) > 1)
    for m in again[:1].tolist():
        rule = f"the rows of job {facts.name(m)!r} do not stand together"
        raise refused(facts, rule, "list each job once, with all its types, the best first")
    _check_once(named, answer.rows, facts)


def _check_once(named: NamedRows, rows: Rows, facts: AnswerFacts) -> None:
    """Raise InvalidAnswer where two rows are the same candidate."""
    within = rows.filled()[2]
    columns = np.stack([named.job, named.type, named.partner, named.shape, within])
    order = np.lexsort(columns[::-1])
    same = (columns[:, order[1:]] == columns[:, order[:-1]]).all(axis=0)
    for at in np.flatnonzero(same)[:1].tolist():
        row = int(order[at + 1])
        rule = f"{named.say(row, facts)} is named on {facts.types[named.type[row]]} twice"
        raise refused(facts, rule, "name each candidate once")


# ---- shares ----------------------------------------------------------------------------------------------------------


def check_shares(answer: Shares, facts: AnswerFacts, question: PendingAsk) -> None:
    """Raise InvalidAnswer unless shares can be carried out; note in `question` which of the candidates can run."""
    x = _numbers(answer.x, facts)
    if not isinstance(answer.fill, bool | np.bool_):
        raise refused(facts, f"fill is {answer.fill!r}; it is True or False", "leave it out, or give one of the two")
    if answer.rows is None:
        shape = len(facts.active), len(facts.types)
        if x.shape != shape:
            rule = f"x has shape {x.shape}; it should be {shape}"
            raise refused(facts, rule, "give a row for each job of the view and a column for each type, or use rows=")
        job, type = (axis.ravel() for axis in np.indices(shape))
        named = _plain_candidates(job, type, facts)
        x = x.ravel()
    else:
        named = candidates_of(answer.rows, facts)
        if x.shape != (len(named.job),):
            rule = f"x has shape {x.shape} for {len(named.job)} rows"
            raise refused(facts, rule, "give one share for each row")
        _check_once(named, answer.rows, facts)
    _check_range(x, named, facts)
    check_runs(named, x > SOLVED, "has a share on", facts)
    _check_time(x, named, facts)
    _check_capacity(x, named, facts)
    question.runs = np.asarray((named.speed > 0) & (named.size <= facts.whole()[named.type]))


def _numbers(x: Any, facts: AnswerFacts) -> Floats:
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub":
        given = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"of type {type(x).__name__}"
        rule = f"x is {given}; shares are an array of numbers"
        raise refused(facts, rule, "build x with numpy, such as np.zeros((view.jobs, len(view.types)))")
    return x.astype(np.float64)


def _plain_candidates(job: Ints, type: Ints, facts: AnswerFacts) -> NamedRows:
    row, none = facts.active[job], np.full(len(job), -1)
    size, speed = facts.scale_factor[row], facts.throughput[row, type]
    return NamedRows(job, type, none, np.zeros(len(job), dtype=np.int64), size, speed)


def _check_range(x: Floats, named: NamedRows, facts: AnswerFacts) -> None:
    for row in np.flatnonzero(~((x >= -SOLVED) & (x <= 1.0 + SOLVED)))[:1].tolist():
        value = float(x[row])
        fix = "cut off what is below 0 and scale what is above 1 down"
        if np.isnan(value):
            fix = "look for 0/0 in what it computes, and give 0 to a job that gets nothing"
        elif np.isinf(value):
            fix = "look for a division by 0 in what it computes"
        elif value > 1:
            fix = "a share is a part of time: count accelerators in scale_factor, and scale shares down to 1"
        where = f"{named.say(row, facts)} has a share of {value:.6g} on {facts.types[named.type[row]]}"
        raise refused(facts, f"{where}; a share of time is a number from 0 to 1", fix)


def _check_time(x: Floats, named: NamedRows, facts: AnswerFacts) -> None:
    given = np.maximum(x, 0.0)
    time = np.bincount(named.job, weights=given, minlength=len(facts.active))
    two = named.partner >= 0
    time += np.bincount(named.partner[two], weights=given[two], minlength=len(facts.active))
    if time.max(initial=0.0) > 1.0 + SOLVED:
        m = int(time.argmax())
        rule = f"job {facts.name(m)!r} is given {time[m]:.6g} of its time; the shares of a job add up to at most 1"
        raise refused(facts, rule, "divide its shares by their sum")


def _check_capacity(x: Floats, named: NamedRows, facts: AnswerFacts) -> None:
    held = np.maximum(x, 0.0) * named.size
    used = np.bincount(named.type, weights=held, minlength=len(facts.types))
    over = used - (facts.capacity * (1.0 + SOLVED) + SOLVED)
    if over.max(initial=-1.0) > 0:
        j = int(over.argmax())
        row = int(np.argmax(np.where(named.type == j, held, -1.0)))
        rule = (
            f"shares take {used[j]:.6g} accelerators of {facts.types[j]} (scale_factor × x, added up), and "
            f"{facts.capacity[j]:g} are in service; the most, {held[row]:.6g}, takes {named.say(row, facts)}"
        )
        raise refused(facts, rule, "scale the shares of that type down to its capacity")
