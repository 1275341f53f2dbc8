"""`eunomia check`: holds a policy to the rules of the published contract."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eunomia.cli.command import Output, command
from eunomia.cli.errors import FAILED
from eunomia.cli.options import argument, option
from eunomia.inputs.problems import InvalidInput, Problem

if TYPE_CHECKING:
    from eunomia.model.policy import Policy
    from eunomia.scenario import Scenario
    from eunomia.testing.policy_examination import RuleFinding

SEEDS = 8
BEFORE_A_RUN = (1, 5)  # seeds of views that a policy of a file is asked about before its first run; small worlds
_WORDS = {"pass": "PASS", "fail": "FAIL", "note": "note"}


@command
def check(
    output: Output,
    policy: Annotated[str, argument("POLICY", "path.py:Class, NAME, or either with ?key=value&….")],
    seeds: Annotated[int, option("N", "Views and worlds to draw for each rule.", min=1, max=1000)] = SEEDS,
) -> None:
    """Check a policy: its answers, what its card promises, and whole runs in small random worlds.

    Each rule is tried on clusters and jobs that are drawn by seed; a rule that is broken is shown with the first seed,
    the job and what to change. A line with `note` is a rule that some policies break for a good reason, which it gives.

    These are the rules of eunomia.testing.PolicyContract, which docs/how-to/add-a-policy.md explains. Exit code 1 when
    a rule is broken.
    """
    from eunomia.testing.policy_examination import examine

    found: list[RuleFinding] = []
    for finding in examine(_find(policy), range(seeds)):
        if not output.as_json:
            _show(finding, is_known=any(finding.text == earlier.text for earlier in found))
        found.append(finding)
    broken = sum(finding.outcome == "fail" for finding in found)
    verdict = (
        f"{broken} of {len(found)} rules {'is' if broken == 1 else 'are'} broken" if broken else "no rule is broken"
    )
    rules = [one.as_dict() for one in found]
    output.show({"policy": policy, "broken": broken, "rules": rules}, f"{policy}: {verdict}")
    if broken:
        raise typer.Exit(FAILED)


def _find(spelling: str) -> Policy:
    from eunomia.scenario import parse_policy
    from eunomia.setup.policy_lookup import find_policy

    name, parameters = parse_policy(spelling)
    return find_policy(name, parameters, Path())


def _show(finding: RuleFinding, *, is_known: bool) -> None:
    """Print one rule; a text that an earlier one had is not repeated."""
    print(f"{_WORDS[finding.outcome]}  {finding.rule}")
    if finding.text:
        seed = "" if finding.seed is None else f"seed {finding.seed}: "
        text = "as above" if is_known else finding.text
        print("\n".join(f"      {line}" for line in f"{seed}{text}".splitlines()))
    if finding.unless:
        print(f"      fine if {finding.unless}")


def check_policies_of_files(scenarios: Iterable[Scenario]) -> None:
    """Hold each policy that comes from a file to the rules of any view, on a few drawn ones, before its first run.

    Raises InvalidInput for one that breaks such a rule. Whether answers fit is checked in the run itself, on its own
    jobs; where they do not fit a drawn view, a warning says so.
    """
    from eunomia.setup.plugins import is_file_spec
    from eunomia.setup.policy_lookup import find_policy

    policies = {}
    for scenario in scenarios:
        section = scenario.policy
        if is_file_spec(section.name):
            key = json.dumps([str(scenario.base), section.name, section.parameters], default=str, sort_keys=True)
            policies[key] = section.name, scenario
    problems = list[Problem]()
    for name, scenario in policies.values():
        policy = find_policy(scenario.policy.name, scenario.policy.parameters, scenario.base, scenario.where)
        problems += _problems(name, policy)
    if problems:
        raise InvalidInput(problems)


def _problems(name: str, policy: Policy) -> Sequence[Problem]:
    from eunomia.testing.policy_examination import FITS, OF_ANY_VIEW, examine

    problems = list[Problem]()
    with redirect_stdout(sys.stderr):  # what a policy prints is no result of the command
        found = list(examine(policy, BEFORE_A_RUN, (FITS, *OF_ANY_VIEW)))
    for finding in found:
        if finding.rule == FITS.name and finding.outcome == "fail":
            text = f"warning: on a drawn view (seed {finding.seed}) {finding.text.splitlines()[0]}"
            print(
                f"{text}\nthe run goes on, as its own answers are checked; see: eunomia check {name}", file=sys.stderr
            )
        elif finding.outcome == "fail" and not finding.raised:
            rule = f"it breaks the rule that {finding.rule}: {finding.text}"
            problems.append(Problem(file=name, column="policy", rule=rule, fix=f"see: eunomia check {name}"))
    return problems
