"""Runs the rules of policies one after the other, for `eunomia check` and before a policy of a file runs first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from eunomia.model.answers import InvalidAnswer
from eunomia.model.policy import Policy
from eunomia.records.policy_call import PolicyFailed, own_lines, shown_lines
from eunomia.testing import policy_rules as rules

Outcome = Literal["pass", "fail", "note"]
Check = Callable[[Policy, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """A rule of policies. One that is not `binding` may be broken for a reason, `unless`."""

    name: str
    check: Check
    binding: bool = True
    unless: str = ""
    once: bool = False  # the seed changes nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFinding:
    """What became of one rule."""

    rule: str
    outcome: Outcome
    seed: int | None = None  # that breaks it
    text: str = ""
    unless: str = ""  # when it may be broken
    raised: bool = False  # the policy raised an exception, so that the rule could not be tried

    def as_dict(self) -> dict[str, str | int | None]:
        """Return the JSON form."""
        return asdict(self)


def _parameters(policy: Policy, seed: int) -> None:
    rules.check_parameters(policy, rules.bad_parameters(type(policy)))


def _asks(policy: Policy, seed: int) -> None:
    rules.check_asks(policy, seed, rules.LEASE_TERMS[seed % len(rules.LEASE_TERMS)])


def _world(policy: Policy, seed: int) -> None:
    rules.check_world(policy, seed, may_refuse=True)


# True of every view, whatever the cluster and the jobs; a policy of a file is held to these before its first run.
OF_ANY_VIEW = (
    PolicyRule(name="the same view gets the same answer", check=rules.check_pure),
    PolicyRule(name="an answer leaves the view as it was", check=rules.check_view_unchanged),
    PolicyRule(name="the memory survives being written down", check=rules.check_memory),
)
FITS = PolicyRule(name="an answer fits the view: shares, rows, seats, times", check=rules.check_fits)
RULES = (
    FITS,
    *OF_ANY_VIEW,
    PolicyRule(name="it reads only the columns of info.needs", check=rules.check_columns, once=True),
    PolicyRule(name="what info promises of its answers holds", check=rules.check_promises),
    PolicyRule(name="a view without jobs is answered", check=rules.check_empty, once=True),
    PolicyRule(name="a run ends however time is cut, with at most two asks for one cause", check=_asks),
    PolicyRule(name="every job of a small world is done in the end, or refused", check=_world),
    PolicyRule(
        name="jobs in another order get the same",
        check=rules.check_row_order,
        binding=False,
        unless="the order of submission decides between equal jobs, or the best answer is not the only one",
    ),
    PolicyRule(
        name="parameters out of range are refused by name",
        check=_parameters,
        binding=False,
        unless="every number is meant",
        once=True,
    ),
)


def examine(policy: Policy, seeds: Sequence[int], which: Sequence[PolicyRule] = RULES) -> Iterator[RuleFinding]:
    """Yield what becomes of each rule on views and worlds drawn by these seeds."""
    for rule in which:
        yield _examine(policy, rule, seeds[:1] if rule.once else seeds)


def _examine(policy: Policy, rule: PolicyRule, seeds: Sequence[int]) -> RuleFinding:
    for seed in seeds:
        try:
            rule.check(policy, seed)
        except Exception as error:  # whatever a policy raises breaks the rule, and is shown
            outcome: Outcome = "fail" if rule.binding else "note"
            broken_by = None if rule.once else seed
            text = _described(policy, error)
            raised = not isinstance(error, AssertionError | InvalidAnswer)
            return RuleFinding(
                rule=rule.name, outcome=outcome, seed=broken_by, text=text, unless=rule.unless, raised=raised
            )
    return RuleFinding(rule=rule.name, outcome="pass")


def _described(policy: Policy, error: Exception) -> str:
    if isinstance(error, PolicyFailed | InvalidAnswer):
        return str(error)
    if isinstance(error, AssertionError):
        return " ".join(str(error).split()) or "a rule is broken"
    lines = shown_lines(own_lines(policy, error))
    return f"{type(error).__name__}: {error}{lines}"
