"""The throughputs that a scenario states: those of its source, what the run needs of them, and what is estimated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.metrics import Figures
from eunomia.model.speeds import ESTIMATED, USED
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.scenario.load import AUTO
from eunomia.scenario.source_locations import KeyPath, dotted
from eunomia.throughputs import catalogue, load
from eunomia.throughputs.job_type_facts import job_types
from eunomia.throughputs.throughput_table import Throughputs
from eunomia.throughputs.unknown_job_types import taking_any
from eunomia.traces import Trace

Kind = tuple[str, int]  # job type, scale factor
ANY_SIZE = 2**31  # accelerators: no gang is wider


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedOrigins:
    """How the throughputs that the jobs of a run use are known: one for each job type, size and type where it fits."""

    used: int = 0
    estimated: int = 0
    cannot_run: int = 0
    factor: float = 1.0  # p90 over the estimate, in the median
    is_drawn: bool = False  # whether the true ones were drawn from the intervals by the seed

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader of the results has to know; nothing where nothing is estimated."""
        if not self.estimated:
            return ()
        zeros = f" ({self.cannot_run:,} more are 0: cannot run)" if self.cannot_run else ""
        text = f"{self.estimated:,} of {self.used:,} throughputs that the jobs use are estimates{zeros}"
        if self.is_drawn:
            drawn = "the true ones are drawn from their 80 % intervals by the seed, the scheduler assumes the estimates"
            return (f"{text}: {drawn}.",)
        width = f"the upper end of their 80 % intervals is {self.factor:.2f} times the estimate in the median"
        return (f"{text}, not measurements: {width}; [throughputs] draw = true draws them by the seed.",)

    def added_to(self, figures: Figures) -> Figures:
        """Return the figures with the counts in their summary."""
        numbers = {USED: self.used, ESTIMATED: self.estimated}
        return replace(figures, summary={**figures.summary, **numbers})


NOTHING_USED = SpeedOrigins()


def stated_throughputs(scenario: Scenario, topology: Topology) -> Throughputs:
    """Return the throughputs of the scenario's source on the cluster, as stated. Raises InvalidInput as `load` does.

    Job types that it lacks have those of a typical one where speeds are measured during the run.
    """
    section = scenario.throughputs
    capacity = tuple(map(int, topology.capacity().tolist()))
    with types_where_named(scenario):
        found = load(section.source, topology.types, base=scenario.base, capacity=capacity, missing=section.missing)
    return taking_any(found) if scenario.belief.kind == "measured" else found


def true_throughputs(scenario: Scenario, stated: Throughputs) -> Throughputs:
    """Return the stated throughputs, or those drawn from the intervals of estimates by the scenario's seed."""
    return replace(stated, drawn_by=scenario.seed) if scenario.throughputs.draw else stated


def reference_throughputs(scenario: Scenario, speeds: Throughputs) -> tuple[Throughputs, int]:
    """Return throughputs that have the type on which durations are counted, whatever the gang, and its row there."""
    name, section = scenario.throughputs.reference_type, scenario.throughputs
    if name in speeds.types:
        row = speeds.types.index(name)
        capacity = tuple(ANY_SIZE if j == row else each for j, each in enumerate(speeds.capacity))
        return replace(speeds, capacity=capacity), row
    found = load(section.source, [name], base=scenario.base, missing=section.missing, drawn_by=speeds.drawn_by)
    return taking_any(found) if speeds.takes_any else found, 0


def without_job_types(scenario: Scenario, trace: Trace) -> bool:
    """Return whether the durations of a trace are all that is needed: on the cluster's only type every speed is 1.

    So where each job has one and the catalogue lacks the type or a job type, or no job names its own.
    """
    types = scenario.cluster.types
    if scenario.throughputs.source != AUTO or len(types) != 1 or not np.isnan(trace.total_steps).all():
        return False
    known = trace.job_type is not None and set(trace.job_type) <= job_types().keys()
    return not known or catalogue.find(types[0]) is None


def resolved(scenario: Scenario, trace: Trace | None) -> Scenario:
    """Return the scenario with the source of throughputs that is meant where it leaves that to the trace."""
    if scenario.throughputs.source != AUTO:
        return scenario
    plain = "linear" if scenario.workload.elastic != "off" else "uniform"
    chosen = {"source": "catalogue"}
    if trace is not None and without_job_types(scenario, trace):
        chosen = {"source": plain, "reference_type": scenario.cluster.types[0]}
    section = scenario.throughputs.model_copy(update=chosen)
    return scenario.model_copy(update={"throughputs": section})


def check_known(
    scenario: Scenario, speeds: Throughputs, jobs: Mapping[Kind, int], by_duration: Mapping[Kind, int]
) -> None:
    """Raise InvalidInput with every throughput that is needed and not known, grouped by type.

    `jobs` are counted by job type and least size; those of `by_duration` are needed on the reference type as well.
    """
    problems = []
    reference, _ = reference_throughputs(scenario, speeds) if by_duration else (speeds, 0)
    for table, needed in ((speeds, jobs), (reference, by_duration)):
        try:
            table.refuse_unknown(needed)
        except InvalidInput as error:
            problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise InvalidInput(problems)


def origins_of(
    speeds: Throughputs, kinds: Sequence[Kind], given: Mapping[Kind, str], capacity: Sequence[int]
) -> SpeedOrigins:
    """Return how the throughputs of these gangs are known; on the type in `given` jobs of a kind have durations."""
    used = estimated = cannot_run = 0
    factors, stated = [], replace(speeds, drawn_by=None)
    for kind in dict.fromkeys(kinds):
        rates, guessed, high = speeds.solo_throughput(*kind), speeds.estimated(*kind), speeds.interval(*kind)[1]
        for j, name in enumerate(speeds.types):
            if capacity[j] < kind[1]:
                continue
            used += bool(rates[j] > 0)
            cannot_run += not rates[j] > 0
            if guessed[j] and given.get(kind) != name:
                estimated += 1
                factors.append(float(high[j] / stated.solo_throughput(*kind)[j]))
    return SpeedOrigins(
        used=used, estimated=estimated, cannot_run=cannot_run, factor=median(factors) if factors else 1.0,
        is_drawn=speeds.drawn_by is not None,
    )  # fmt: skip


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
