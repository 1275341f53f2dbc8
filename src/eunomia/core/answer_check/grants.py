"""Checks grants of seats rule by rule, so that a refusal names the rule, the job and what to change."""

from __future__ import annotations

import numpy as np

from eunomia.core.answer_check.candidates import NamedRows, candidates_of, check_runs, index_column
from eunomia.core.answer_check.facts import AnswerFacts, refused
from eunomia.model.answers import Grants
from eunomia.model.arrays import Ints


def check_grants(answer: Grants, facts: AnswerFacts) -> None:
    """Raise InvalidAnswer unless whole gangs get distinct seats that are free or become free by the answer."""
    named = candidates_of(answer.rows, facts)
    check_runs(named, np.ones(len(named.job), dtype=np.bool_), "is granted seats on", facts)
    topology, rows = facts.topology(), len(named.job)
    row = index_column(answer.row, "row", 0, rows, "row", facts)
    device = index_column(answer.device, "device", 0, topology.devices, "device", facts)
    stop = index_column(answer.stop, "stop", 0, len(facts.active), "job to stop", facts)
    if len(row) != len(device):
        rule = f"row and device differ in length: {len(row)} and {len(device)}"
        raise refused(facts, rule, "say for each seat which row gets it")
    _check_jobs_once(named, facts)
    _check_until(answer, named, facts)
    _check_seats(named, row, device, facts)
    _check_whole(named, row, facts)
    _check_free(named, row, device, stop, facts)


def _check_jobs_once(named: NamedRows, facts: AnswerFacts) -> None:
    jobs = np.concatenate((named.job, named.partner[named.partner >= 0]))
    for m in np.flatnonzero(np.bincount(jobs, minlength=1) > 1)[:1].tolist():
        raise refused(facts, f"grants name job {facts.name(m)!r} twice", "grant a job one gang")


def _check_until(answer: Grants, named: NamedRows, facts: AnswerFacts) -> None:
    until = answer.until
    if not (isinstance(until, np.ndarray) and until.shape == named.job.shape and until.dtype.kind in "fiu"):
        given = f"an array of {until.dtype} with shape {until.shape}" if isinstance(until, np.ndarray) else repr(until)
        rule = f"until is {given}; it is a time for each of {len(named.job)} rows"
        raise refused(facts, rule, "give the end of each lease in seconds, nan where the mechanism decides")
    for row in np.flatnonzero(until <= facts.at)[:1].tolist():
        rule = f"{named.say(row, facts)} is granted until {float(until[row])}, but it is {facts.at:,.9g}"
        raise refused(facts, rule, "let a lease end after view.at, or give nan, and the mechanism decides")


def _check_seats(named: NamedRows, row: Ints, device: Ints, facts: AnswerFacts) -> None:
    taken = np.flatnonzero(np.bincount(device, minlength=1) > 1)
    for seat in taken[:1].tolist():
        names = " and ".join(named.say(int(one), facts) for one in row[device == seat][:2])
        raise refused(facts, f"grants give one device twice: device {seat} to {names}", "give each device once")
    wrong = np.flatnonzero(facts.topology().type[device] != named.type[row])
    for at in wrong[:1].tolist():
        of = facts.types[facts.topology().type[device[at]]]
        rule = (
            f"{named.say(int(row[at]), facts)} is granted seats of another type than its row names: device {device[at]}"
        )
        raise refused(facts, f"{rule} is of {of}", "choose devices by view.topology.type")


def _check_whole(named: NamedRows, row: Ints, facts: AnswerFacts) -> None:
    seats = np.bincount(row, minlength=len(named.job))
    for at in np.flatnonzero(seats != named.size)[:1].tolist():
        rule = f"{named.say(at, facts)} is granted {seats[at]} seats; its gang is {named.size[at]}"
        raise refused(facts, rule, "grant whole gangs, view.scale_factor seats each")


def _check_free(named: NamedRows, row: Ints, device: Ints, stop: Ints, facts: AnswerFacts) -> None:
    holder = facts.holder()[device]
    leaving = np.concatenate((stop, named.job, named.partner[named.partner >= 0]))
    kept = (holder >= 0) & ~np.isin(holder, leaving)
    for at in np.flatnonzero((holder == -2) | kept)[:1].tolist():
        who = "is out of service" if holder[at] == -2 else f"job {facts.name(int(holder[at]))!r} keeps"
        seat = f"device {device[at]}, which {who}"
        fix = "grant free devices, those of which view.holder is -1, or stop the job that holds them"
        raise refused(facts, f"{named.say(int(row[at]), facts)} is granted {seat}", fix)
