"""The simulated world of a scenario, and what it cost: the plain one, the one with physics, or the one of the ideal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eunomia.backends.simulated import SimulatedWorld
from eunomia.backends.simulated.fluid import FluidWorld
from eunomia.backends.simulated.physical import PhysicalWorld
from eunomia.metrics import Figures, Metrics
from eunomia.metrics.losses import losses_of
from eunomia.model.losses import Losses
from eunomia.setup.run_config import RunConfig
from eunomia.setup.world_models import mishaps_of
from eunomia.throughputs.placed_throughputs import PlacedThroughputs


def simulated_world(setup: RunConfig) -> SimulatedWorld | PhysicalWorld | FluidWorld:
    """Return a fresh world."""
    said, mishaps = setup.scenario.world, mishaps_of(setup.scenario)
    if setup.mechanism.divides_time:
        return FluidWorld(setup.jobs, setup.topology, setup.truth, mishaps=mishaps, seed=setup.scenario.seed)
    common: dict[str, Any] = {
        "overheads": setup.overheads,
        "mishaps": mishaps,
        "checkpoint_every_s": said.checkpoint_every_s,
        "replay_status": said.replay_status,
        "seed": setup.scenario.seed,
    }
    if isinstance(setup.truth, PlacedThroughputs):
        return PhysicalWorld(setup.jobs, setup.topology, setup.truth, neighbours=setup.neighbours, **common)
    return SimulatedWorld(setup.jobs, setup.topology, setup.truth, **common)


def with_losses(metrics: Metrics, held: Losses | None) -> Figures:
    """Return the figures of a run that is over, with what its accelerator-seconds were lost to."""
    figures = metrics.figures()
    return replace(figures, summary={**figures.summary, **losses_of(metrics, held)})
