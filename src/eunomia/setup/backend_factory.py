"""Builds the backend of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from eunomia.backends.inputs import BackendInputs, VirtualBackend
from eunomia.backends.registry import BACKENDS, DEFAULT
from eunomia.metrics import Figures, Metrics
from eunomia.metrics.lost_time import lost_time_of
from eunomia.model.held_time import HeldTime
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import Section
from eunomia.setup.run_objects import RunConfig
from eunomia.setup.world_models import fault_model_of


def backend_inputs(setup: RunConfig, **real_time: Any) -> BackendInputs:
    """Return what the backend of a run is made from; `real_time` are the fields for real time."""
    section = setup.scenario.world
    return BackendInputs(
        jobs=setup.all_jobs(),
        topology=setup.topology,
        speeds=setup.truth,
        overheads=setup.overheads,
        faults=fault_model_of(setup.scenario),
        neighbours=setup.neighbours,
        divides_time=setup.mechanism.divides_time,
        checkpoint_every_s=section.checkpoint_every_s,
        replay_status=section.replay_status,
        seed=setup.scenario.seed,
        report_after_s=setup.scenario.belief.measure_s if setup.scenario.belief.kind == "measured" else 0.0,
        folder=setup.scenario.base,
        options=world_options(setup.scenario),
        **real_time,
    )


def world_options(scenario: Scenario) -> dict[str, Any]:
    """Return the table of the scenario's backend, [world.NAME], and whether it adopts."""
    table = getattr(scenario.world, scenario.world.backend, None)
    found = table.model_dump() if isinstance(table, Section) else {}
    return {**found, "adopt_submissions": scenario.world.adopt_submissions}


def virtual_backend(setup: RunConfig) -> VirtualBackend:
    """Return the backend of a run in virtual time: the scenario's, or else a simulation."""
    cls = BACKENDS.load(DEFAULT) if setup.backend.real_time else setup.backend
    inputs = backend_inputs(setup)
    cls.check(inputs)
    return cast(VirtualBackend, cls.build(inputs))


def with_lost_time(metrics: Metrics, held: HeldTime | None) -> Figures:
    """Return the figures of a completed run, with its accelerator-seconds lost by cause."""
    figures = metrics.figures()
    return replace(figures, summary={**figures.summary, **lost_time_of(metrics, held)})
