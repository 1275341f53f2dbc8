"""Builds the physical models of a simulated run: placement, space sharing, interference and failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from eunomia.backends.simulated import FaultModel
from eunomia.backends.simulated.job_outcomes import OutcomeModel
from eunomia.backends.simulated.report_latency import ReportLatency
from eunomia.model.arrays import Ints
from eunomia.model.job import Job
from eunomia.model.job_table import job_values
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds, consolidated_throughput, spread_throughput
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import PhysicsSection
from eunomia.throughputs.interference import (
    Neighbours,
    PairNeighbours,
    Pairs,
    PhillyNeighbours,
    StagedNeighbours,
    SyntheticNeighbours,
)
from eunomia.throughputs.measured_table import MeasuredThroughputs
from eunomia.throughputs.placed_throughputs import PlacedThroughputs, TableSpread
from eunomia.throughputs.placement import PhillySlowdowns, Placement, ThemisSlowdowns
from eunomia.throughputs.placement_level import ClusterUnits
from eunomia.throughputs.placement_tables import read_placement
from eunomia.throughputs.stage_times import read_stages
from eunomia.throughputs.throughput_table import Throughputs

Read = TypeVar("Read")
PLACEMENTS = ("auto", "off", "throughputs", "themis", "philly")
NEIGHBOURS = ("off", "philly", "pairs", "synthetic")
PAIRS = ("measured", "modelled")
OFF = PhysicsSection(placement="off")
GAVEL_JSON = (".json", ".json.gz")
APART = "_unconsolidated"  # after a type: its rows measured on several machines


def is_on(scenario: Scenario) -> bool:
    """Whether the scenario, with its placement chosen, sets any physical model besides throughputs."""
    return scenario.physics != OFF


def with_placement(scenario: Scenario, stated: Throughputs, *, real_time: bool) -> Scenario:
    """Return the scenario with the model of placement that is meant where it leaves that to the throughputs.

    A long table with rows measured on several machines says how fast gangs are there, so they hold; Gavel's JSON has
    such rows too, and published runs leave them out. Mechanisms with a clock of their own have no places.
    """
    if scenario.physics.placement != "auto":
        return scenario
    source, mechanism = stated.source, scenario.mechanism
    rows = source.measurements.types if isinstance(source, MeasuredThroughputs) else ()
    apart = any(f"{name}{APART}" in rows for name in stated.types) and not scenario.throughputs.source.endswith(
        GAVEL_JSON
    )
    holds = apart and not real_time and (mechanism is None or mechanism.name == "leases")
    physics = scenario.physics.model_copy(update={"placement": "throughputs" if holds else "off"})
    return scenario.model_copy(update={"physics": physics})


def placed_throughputs(scenario: Scenario, topology: Topology, speeds: Speeds) -> PlacedThroughputs:
    """Return throughputs that depend on placement. Raises InvalidInput for a missing or invalid model."""
    _check_slots(scenario, topology)
    units = ClusterUnits(topology)
    return PlacedThroughputs(speeds, units, _placement(scenario, speeds), _pairs(scenario))


def neighbours_of(scenario: Scenario, speeds: Speeds) -> Neighbours | None:
    """Return the model of interference on one machine. Raises InvalidInput as `placed_throughputs` does."""
    match scenario.physics.neighbours:
        case "off":
            return None
        case "philly":
            return PhillyNeighbours()
        case "pairs":
            return PairNeighbours(speeds)
        case "synthetic":
            return SyntheticNeighbours()
        case _:
            return StagedNeighbours(_read(scenario, "neighbours", NEIGHBOURS, read_stages))


def fault_model_of(scenario: Scenario) -> FaultModel:
    """Return the fault model of the scenario."""
    world, physics = scenario.world, scenario.physics
    return FaultModel(
        job_failures_per_hour=world.job_failures_per_hour,
        node_failures_per_hour=world.node_failures_per_hour,
        node_repair_s=world.node_repair_s,
        cancel_fraction=world.cancel_fraction,
        cancel_after_s=world.cancel_after_s,
        rack_failures_per_hour=physics.rack_failures_per_hour,
        rack_repair_s=physics.rack_repair_s,
        repairs_fixed=physics.repair == "fixed",
        blacklist_s=world.blacklist_s if world.retry == "adaptive" else 0.0,
        outcomes=OutcomeModel(failing=physics.failing, killed=physics.killed) if physics.fates == "philly" else None,
        early_stop=physics.early_stop,
        report_latency=ReportLatency(
            delay_s=physics.report_delay_s, lost=physics.report_lost, reconcile_s=physics.reconcile_s
        ),
    )


def with_retries(scenario: Scenario, jobs: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs with at least the retries that the scenario gives to jobs drawn to fail.

    A job whose failure is replayed from the trace has none, as its duration in the trace includes its retries.
    """
    least, replayed = scenario.physics.retries if scenario.physics.fates != "off" else 0, scenario.world.replay_status
    if not (least or replayed):
        return jobs
    retries = (0 if replayed and job.status == "failed" else max(job.retries, least) for job in jobs)
    return tuple(
        job if job.retries == wanted else replace(job, retries=wanted)
        for job, wanted in zip(jobs, retries, strict=True)
    )


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Return notes on the models for readers of the results."""
    physics, sentences = scenario.physics, []
    if physics.placement != "off":
        sentences.append(f"Placement slows gangs ({physics.placement}); the cost of crossing racks is not measured.")
    if physics.neighbours != "off":
        sentences.append(f"Gangs on one machine slow each other ({physics.neighbours}).")
    if physics.pairs != "measured":
        sentences.append("Pairs without a measurement share accelerators at a modelled speed.")
    if physics.fates != "off":
        shares = f"{physics.failing:.1%} of the jobs are to fail and {physics.killed:.1%} to be killed"
        sentences.append(f"{shares}, drawn by the seed.")
    if physics.early_stop:
        sentences.append(
            "Jobs end once they are within 0.1 % of their lowest loss, at a part of their steps drawn by the seed."
        )
    if physics.fates != "off" and scenario.world.retry == "adaptive" and scenario.world.blacklist_s:
        away = f"{scenario.world.blacklist_s:,.15g} s"
        sentences.append(f"The machines of a gang that fails for a GPU ECC error are then out of service for {away}.")
    if physics.report_delay_s or physics.report_lost:
        sentences.append("The end of a job counts from when its report, which may be late, reaches the scheduler.")
    return tuple(sentences)


def note_on_places(
    scenario: Scenario, policy: Policy, believed: Speeds, jobs: Sequence[Job], *, real_time: bool
) -> tuple[str, ...]:
    """Return a note if the policy believes that places differ in speed, and no gang of this world is slower in any."""
    if real_time or scenario.physics.placement != "off" or "spread_throughput" not in policy.info.needs:
        return ()
    kinds = dict.fromkeys(zip(job_values(jobs, "job_type"), job_values(jobs, "scale_factor"), strict=True))
    partners = {job_type for job_type, _ in kinds} if "packed_spread_throughput" in policy.info.needs else ()
    gangs = [(*kind, partner) for partner in (None, *partners) for kind in kinds]
    if all(
        np.array_equal(consolidated_throughput(believed, *gang), spread_throughput(believed, *gang)) for gang in gangs
    ):
        return ()
    belief = f"{policy.info.name} believes that some gangs are slower on several machines"
    return (f'{belief}; in this run none is: physics.placement = "throughputs" makes them so.',)


def files_of(scenario: Scenario) -> set[str]:
    """Return the names of the tables that the models are read from."""
    physics = scenario.physics
    named = ((physics.placement, PLACEMENTS), (physics.neighbours, NEIGHBOURS), (physics.pairs, PAIRS))
    return {name for name, models in named if name not in models}


def _check_slots(scenario: Scenario, topology: Topology) -> None:
    """Raise InvalidInput for slots larger than every machine, or that do not divide a larger machine."""
    declared = scenario.physics.accelerators_per_slot
    if not isinstance(declared, Mapping):
        _check_slot_size(scenario, declared, topology.size, ())
        return
    for name, per_slot in declared.items():
        if name not in topology.types:
            rule, fix = "the cluster has no such accelerator type", nearest(name, topology.types)
            raise scenario.refused(("physics", "accelerators_per_slot", name), rule, fix, per_slot)
        _check_slot_size(scenario, per_slot, topology.size[topology.node_type == topology.types.index(name)], (name,))


def _check_slot_size(scenario: Scenario, per_slot: int, machines: Ints, key: tuple[str, ...]) -> None:
    """Raise InvalidInput for a slot larger than these machines, or that does not divide a larger one."""
    sizes = sorted(set(machines.tolist()))
    wide = [size for size in sizes if size >= per_slot]
    broken = [size for size in wide if per_slot and size % per_slot]
    if wide and not broken:
        return
    rule = "a slot is a part of a machine, and "
    rule += f"a machine of {broken[0]} has no whole number of them" if wide else f"the largest machine has {sizes[-1]}"
    fitting = (n for n in range(1, sizes[-1] + 1) if all(size % n == 0 for size in sizes if size >= n))
    fix = f"give one of {', '.join(map(str, fitting))}, or 0 for whole machines"
    raise scenario.refused(("physics", "accelerators_per_slot", *key), rule, fix, per_slot)


def _placement(scenario: Scenario, speeds: Speeds) -> Placement | None:
    match scenario.physics.placement:
        case "off":
            return None
        case "throughputs":
            return TableSpread(speeds)
        case "themis":
            return ThemisSlowdowns()
        case "philly":
            return PhillySlowdowns()
        case _:
            return _read(scenario, "placement", PLACEMENTS, read_placement)


def _pairs(scenario: Scenario) -> Pairs | None:
    match scenario.physics.pairs:
        case "measured":
            return None
        case "modelled":
            return Pairs()
        case _:
            return Pairs(_read(scenario, "pairs", PAIRS, read_stages))


def _read(scenario: Scenario, key: str, models: Sequence[str], read: Callable[[Path, str], Read]) -> Read:
    """Read the table that a key names. Raises InvalidInput if it is neither a model nor a file."""
    name = getattr(scenario.physics, key)
    path = scenario.resolve(name)
    if path.is_file():
        return read(path, name)
    fix = f"give a table that exists, or {nearest(name, models)}"
    raise scenario.refused(("physics", key), "there is no such model and no such file", fix, name)
