"""Chooses the simulation of a run: plain, with physical models, or fluid."""

from __future__ import annotations

from typing import Any

from eunomia.backends.inputs import BackendClass, BackendInputs, VirtualBackend
from eunomia.backends.simulated.detailed_simulation import DetailedSimulation
from eunomia.backends.simulated.fluid import FluidSimulation
from eunomia.backends.simulated.simulation import Simulation
from eunomia.throughputs.placed_throughputs import PlacedThroughputs


class SimulatedBackend(BackendClass):
    """The registered class of all simulations."""

    @classmethod
    def build(cls, inputs: BackendInputs) -> VirtualBackend:
        """Return the simplest simulation that has what the run needs."""
        jobs, topology, speeds = inputs.jobs, inputs.topology, inputs.speeds
        if inputs.divides_time:
            return FluidSimulation(jobs, topology, speeds, faults=inputs.faults, seed=inputs.seed)
        common: dict[str, Any] = {
            "overheads": inputs.overheads,
            "faults": inputs.faults,
            "checkpoint_every_s": inputs.checkpoint_every_s,
            "replay_status": inputs.replay_status,
            "report_after_s": inputs.report_after_s,
            "seed": inputs.seed,
        }
        if isinstance(speeds, PlacedThroughputs):
            return DetailedSimulation(jobs, topology, speeds, neighbours=inputs.neighbours, **common)
        return Simulation(jobs, topology, speeds, **common)
