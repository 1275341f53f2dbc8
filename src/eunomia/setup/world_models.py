"""The physics of a scenario: models of places, pairs and neighbours, and the world in which they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from eunomia.backends.simulated import FaultModel
from eunomia.backends.simulated.job_outcomes import OutcomeModel
from eunomia.backends.simulated.report_latency import ReportLatency
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.job import Job
from eunomia.model.speeds import Speeds
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import PhysicsSection
from eunomia.throughputs.interference import Neighbours, Pairs, PhillyNeighbours, StagedNeighbours
from eunomia.throughputs.placed_throughputs import PlacedThroughputs, TableSpread
from eunomia.throughputs.placement import PhillySlowdowns, Placement, ThemisSlowdowns
from eunomia.throughputs.placement_level import ClusterUnits
from eunomia.throughputs.placement_tables import read_placement
from eunomia.throughputs.stage_times import read_stages

Read = TypeVar("Read")
PLACEMENTS = ("off", "throughputs", "themis", "philly")
NEIGHBOURS = ("off", "philly")
PAIRS = ("measured", "modelled")
OFF = PhysicsSection()


def is_on(scenario: Scenario) -> bool:
    """Say whether the world has any physics besides throughputs."""
    return scenario.physics != OFF


def situated(scenario: Scenario, topology: Topology, speeds: Speeds) -> PlacedThroughputs:
    """Return the speeds on the scenario's ground. Raises InvalidInput for a model that is not there or not right."""
    said = scenario.physics
    _demand_slots(scenario, topology)
    ground = ClusterUnits(topology, said.accelerators_per_slot)
    return PlacedThroughputs(speeds, ground, _placement(scenario, speeds), _pairs(scenario))


def neighbours_of(scenario: Scenario) -> Neighbours | None:
    """Return what neighbours cost. Raises InvalidInput as `situated` does."""
    match scenario.physics.neighbours:
        case "off":
            return None
        case "philly":
            return PhillyNeighbours()
        case _:
            return StagedNeighbours(_read(scenario, "neighbours", NEIGHBOURS, read_stages))


def fault_model_of(scenario: Scenario) -> FaultModel:
    """Return what goes wrong in the scenario's world."""
    world, said = scenario.world, scenario.physics
    return FaultModel(
        job_failures_per_hour=world.job_failures_per_hour,
        node_failures_per_hour=world.node_failures_per_hour,
        node_repair_s=world.node_repair_s,
        cancel_fraction=world.cancel_fraction,
        cancel_after_s=world.cancel_after_s,
        rack_failures_per_hour=said.rack_failures_per_hour,
        rack_repair_s=said.rack_repair_s,
        repairs_fixed=said.repair == "fixed",
        blacklist_s=world.blacklist_s if world.retry == "adaptive" else 0.0,
        outcomes=OutcomeModel(failing=said.failing, killed=said.killed) if said.fates == "philly" else None,
        report_latency=ReportLatency(delay_s=said.report_delay_s, lost=said.report_lost, reconcile_s=said.reconcile_s),
    )


def tried_again(scenario: Scenario, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return the jobs with at least as many retries as the scenario gives to jobs that are to fail.

    One that fails because its trace says so has none: what it tried again is part of its duration there.
    """
    least, replayed = scenario.physics.retries if scenario.physics.fates != "off" else 0, scenario.world.replay_status
    retries = (0 if replayed and job.status == "failed" else max(job.retries, least) for job in jobs)
    return tuple(
        job if job.retries == wanted else replace(job, retries=wanted)
        for job, wanted in zip(jobs, retries, strict=True)
    )


def notes(scenario: Scenario) -> tuple[str, ...]:
    """Return what a reader of the figures must know of the models."""
    said, found = scenario.physics, []
    if said.placement != "off":
        found.append(f"Gangs are slowed by their places ({said.placement}); what racks cost was measured by nobody.")
    if said.neighbours != "off":
        found.append(f"Gangs on one machine slow each other ({said.neighbours}).")
    if said.pairs != "measured":
        found.append("Pairs that nobody measured share accelerators at a modelled speed.")
    if said.fates != "off":
        found.append(
            f"{said.failing:.1%} of the jobs are to fail and {said.killed:.1%} to be killed, drawn by the seed."
        )
    if said.fates != "off" and scenario.world.retry == "adaptive" and scenario.world.blacklist_s:
        away = f"{scenario.world.blacklist_s:,.15g} s"
        found.append(f"The machines of a gang that fails for a GPU ECC error are then out of service for {away}.")
    if said.report_delay_s or said.report_lost:
        found.append("Jobs end for the scheduler when word of it comes, which may be late; times are those.")
    return tuple(found)


def files_of(scenario: Scenario) -> set[str]:
    """Return the tables that the physics are read from."""
    said = scenario.physics
    named = ((said.placement, PLACEMENTS), (said.neighbours, NEIGHBOURS), (said.pairs, PAIRS))
    return {name for name, models in named if name not in models}


def _demand_slots(scenario: Scenario, topology: Topology) -> None:
    """Raise InvalidInput for slots that are wider than every machine, or do not fill the machines that are wider."""
    per_slot, sizes = scenario.physics.accelerators_per_slot, sorted(set(topology.size.tolist()))
    wide = [size for size in sizes if size >= per_slot]
    broken = [size for size in wide if per_slot and size % per_slot]
    if wide and not broken:
        return
    rule = "a slot is a part of a machine, and "
    rule += f"a machine of {broken[0]} has no whole number of them" if wide else f"the largest machine has {sizes[-1]}"
    fitting = (n for n in range(1, sizes[-1] + 1) if all(size % n == 0 for size in sizes if size >= n))
    file, row = scenario.where(("physics", "accelerators_per_slot"))
    fix = f"give one of {', '.join(map(str, fitting))}, or 0 for whole machines"
    column = "physics.accelerators_per_slot"
    raise InvalidInput([Problem(file=file, row=row, column=column, value=str(per_slot), rule=rule, fix=fix)])


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
    """Read the table that a key names. Raises InvalidInput, with the key's place when there is no such table."""
    said = getattr(scenario.physics, key)
    path = scenario.resolve(said)
    if path.is_file():
        return read(path, said)
    file, row = scenario.where(("physics", key))
    fix = f"give a table that exists, or {nearest(said, models)}"
    rule = "there is no such model and no such file"
    raise InvalidInput([Problem(file=file, row=row, column=f"physics.{key}", value=said, rule=rule, fix=fix)])
