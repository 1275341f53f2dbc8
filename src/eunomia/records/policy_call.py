"""Asks a policy in this process, and explains an exception of a policy that is not built in by its own lines."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path

import eunomia
from eunomia.core.answer_check import check_kind
from eunomia.inputs.problems import Problem
from eunomia.model.answers import Answer, InvalidAnswer
from eunomia.model.policy import Policy
from eunomia.model.view import View

MOST_LINES = 6  # of the policy's own files that a message shows
TRACEBACK = "EUNOMIA_TRACEBACK"  # environment variable: set, the whole traceback is printed too
_OURS = "eunomia."


class PolicyFailed(RuntimeError):
    """A policy raised an exception, its `__cause__`. The message has the lines of the policy that led to it.

    `file` and `row` are the last of these lines; "" and None where the policy has no file.
    """

    def __init__(self, rule: str, lines: str = "", file: str = "", row: int | None = None) -> None:
        super().__init__(rule, lines, file, row)  # all of them, so that the error can be sent to another process
        self.rule, self.lines, self.file, self.row = rule, lines, file, row

    def __str__(self) -> str:
        return f"{self.rule}{f':{self.lines}' if self.lines else ''}"


def ask_policy(policy: Policy, view: View) -> Answer:
    """Return the policy's answer.

    Raises InvalidAnswer for anything but an answer of the kind on the policy's card, as after a forgotten return, and
    PolicyFailed for an exception of a policy that is not built in.
    """
    try:
        answer = policy.decide(view)
    except Exception as error:
        if type(policy).__module__.startswith(_OURS) or _is_clear(error):
            raise
        raise _failed(policy, view, error) from error
    check_kind(answer, policy.info, view.at)
    return answer


def policy_problem(error: BaseException) -> Problem | None:
    """Return the problem of a refused answer or of a policy's exception; None for other errors."""
    if isinstance(error, InvalidAnswer):
        return Problem(file=error.place or "policy", rule=error.rule, fix=error.fix or "correct its answer")
    if isinstance(error, PolicyFailed):
        fix = f"look at these lines, of which the last one raised it ({TRACEBACK}=1 shows all):{error.lines}"
        fix = fix if error.lines else f"set {TRACEBACK}=1 to see the traceback"
        return Problem(file=error.file or "policy", row=error.row, rule=error.rule, fix=fix)
    return None


def _is_clear(error: Exception) -> bool:
    """Return whether an error needs no lines of the policy to be understood."""
    from eunomia.solvers.program import NoOptimum  # its solver takes memory, which most processes do without

    return isinstance(error, InvalidAnswer | NoOptimum)


def _failed(policy: Policy, view: View, error: Exception) -> PolicyFailed:
    jobs = f"{view.jobs} job{'s' * (view.jobs != 1)}"
    what = f"{type(error).__name__}: {error}".strip(": ")
    rule = f"policy {policy.info.name!r}, asked at {view.at:,.9g} s about {jobs}, raised {what}"
    mine = own_lines(policy, error)
    if not mine:
        return PolicyFailed(rule)
    return PolicyFailed(rule, shown_lines(mine), mine[-1].filename, mine[-1].lineno)


def shown_lines(lines: Sequence[traceback.FrameSummary]) -> str:
    """Return the last of these lines as text, each on a line of its own."""
    places = ((Path(one.filename).name, one) for one in lines[-MOST_LINES:])
    return "".join(f"\n    {file}:{one.lineno} in {one.name}:  {one.line}" for file, one in places)


def own_lines(policy: Policy, error: Exception) -> list[traceback.FrameSummary]:
    """Return the lines of the traceback that are in the policy's file or in other files of its user."""
    home = getattr(sys.modules.get(type(policy).__module__), "__file__", None)
    installed = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    others = tuple(str(Path(place).resolve()) for place in (*installed, *eunomia.__path__))

    def is_own(file: str) -> bool:
        return file == home or not (file.startswith("<") or str(Path(file).resolve()).startswith(others))

    return [one for one in traceback.extract_tb(error.__traceback__) if is_own(one.filename)]
