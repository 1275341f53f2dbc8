"""Published results measured again: each name is an experiment that writes its numbers beside the published ones.

This registry holds names; an experiment is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from eunomia.reproduction.table import Request, Table


class Entry(NamedTuple):
    """One experiment: where its function is, and one line that says what it measures."""

    place: str  # module:function
    about: str


EXPERIMENTS: dict[str, Entry] = {
    "peers": Entry(
        "eunomia.reproduction.peers:reproduce",
        "job by job beside the simulators of Tiresias, Blox, Helios, Pollux and Shockwave",
    ),
    "gavel-parity": Entry(
        "eunomia.reproduction.gavel.parity:reproduce", "run by run and round by round beside Gavel's own simulator"
    ),
    "gavel-fig8": Entry(
        "eunomia.reproduction.gavel.curves:fig8", "average JCT against load, one accelerator a job, LAS and its rivals"
    ),
    "gavel-fig9": Entry("eunomia.reproduction.gavel.curves:fig9", "the same with gangs"),
    "gavel-fig10": Entry("eunomia.reproduction.gavel.curves:fig10", "the same with gangs, finish-time fairness"),
    "gavel-cdf": Entry("eunomia.reproduction.gavel.curves:cdf", "the distribution of JCTs at 5.6 jobs per hour"),
    "gavel-ftf": Entry("eunomia.reproduction.gavel.sharing:ftf", "mean JCT relative to an even split of the cluster"),
    "gavel-cost": Entry("eunomia.reproduction.gavel.money:cost", "cost and late jobs, with and without deadlines"),
    "gavel-ideal": Entry("eunomia.reproduction.gavel.ideal:ideal", "what rounds cost against shares as a fluid"),
    "gavel-makespan": Entry("eunomia.reproduction.gavel.batch:makespan", "makespan against the number of jobs"),
}


def load(name: str) -> Callable[[Request], Table]:
    """Return the function behind a name of `EXPERIMENTS`. Raises InvalidInput for another name."""
    if name not in EXPERIMENTS:
        from eunomia.model.nearest import nearest
        from eunomia.model.problems import InvalidInput, Problem

        rule, mend = "there is no such experiment", nearest(name, EXPERIMENTS)
        raise InvalidInput([Problem(file="command line", column="NAME", value=name, rule=rule, mend=mend)])
    module, _, function = EXPERIMENTS[name].place.partition(":")
    return cast("Callable[[Request], Table]", getattr(import_module(module), function))
