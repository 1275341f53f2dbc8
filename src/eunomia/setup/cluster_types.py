"""Problems of accelerator types, shown where the scenario names the type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario import Scenario
from eunomia.scenario.source_locations import KeyPath, dotted


@contextmanager
def types_where_named(scenario: Scenario) -> Iterator[None]:
    """Raise the InvalidInput of a block again, with problems of a cluster's type at file and line of the scenario."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([_placed(scenario, problem) for problem in error.problems], error.count) from error


def _placed(scenario: Scenario, problem: Problem) -> Problem:
    """Return a problem with a type of the cluster at the line that names the type."""
    path = _path_of(scenario, problem.value) if problem.column == "type" else None
    if path is None:
        return problem
    file, row = scenario.where(path)
    source = "" if problem.file in problem.rule else f" ({problem.file})"
    return replace(problem, file=file, row=row, column=dotted(path), rule=f"{problem.rule}{source}")


def _path_of(scenario: Scenario, name: str | None) -> KeyPath | None:
    cluster = scenario.cluster
    listed = (("cluster", "nodes", n, "type") for n, group in enumerate(cluster.listed_nodes) if group.type == name)
    if name in cluster.accelerators:
        return "cluster", "accelerators", str(name)
    return next(listed, None)
