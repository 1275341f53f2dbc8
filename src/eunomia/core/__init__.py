"""The mind: a deterministic function of the moments so far."""

from eunomia import kernels as kernels  # tells numba where to keep them, before any is made
