"""Simulated backends: virtual time, true throughputs, seeded faults."""

from eunomia.backends.simulated.fault_model import FaultModel
from eunomia.backends.simulated.simulation import Simulation

__all__ = ["FaultModel", "Simulation"]
