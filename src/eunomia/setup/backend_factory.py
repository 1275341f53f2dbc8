"""Chooses and builds the simulated backend of a run: plain, with physical models, or fluid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eunomia.backends.simulated import Simulation
from eunomia.backends.simulated.detailed_simulation import DetailedSimulation
from eunomia.backends.simulated.fluid import FluidSimulation
from eunomia.metrics import Figures, Metrics
from eunomia.metrics.losses import losses_of
from eunomia.model.losses import Losses
from eunomia.setup.run_config import RunConfig
from eunomia.setup.world_models import fault_model_of
from eunomia.throughputs.placed_throughputs import PlacedThroughputs


def simulated_world(setup: RunConfig) -> Simulation | DetailedSimulation | FluidSimulation:
    """Return a new simulated backend."""
    section, faults = setup.scenario.world, fault_model_of(setup.scenario)
    if setup.mechanism.divides_time:
        return FluidSimulation(setup.jobs, setup.topology, setup.truth, faults=faults, seed=setup.scenario.seed)
    common: dict[str, Any] = {
        "overheads": setup.overheads,
        "faults": faults,
        "checkpoint_every_s": section.checkpoint_every_s,
        "replay_status": section.replay_status,
        "seed": setup.scenario.seed,
    }
    if isinstance(setup.truth, PlacedThroughputs):
        return DetailedSimulation(setup.jobs, setup.topology, setup.truth, neighbours=setup.neighbours, **common)
    return Simulation(setup.jobs, setup.topology, setup.truth, **common)


def with_losses(metrics: Metrics, losses: Losses | None) -> Figures:
    """Return the figures of a completed run, with its accelerator-seconds lost by cause."""
    figures = metrics.figures()
    return replace(figures, summary={**figures.summary, **losses_of(metrics, losses)})
