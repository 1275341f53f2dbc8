"""The simulated world: virtual time, true speeds, seeded mishaps."""

from eunomia import kernels as kernels  # tells numba where to keep them, before any is made
from eunomia.backends.simulated.mishaps import Mishaps
from eunomia.backends.simulated.world import SimulatedWorld

__all__ = ["Mishaps", "SimulatedWorld"]
