"""The simulated world: virtual time, true speeds, seeded mishaps."""

from eunomia.backends.simulated.mishaps import Mishaps
from eunomia.backends.simulated.world import SimulatedWorld

__all__ = ["Mishaps", "SimulatedWorld"]
