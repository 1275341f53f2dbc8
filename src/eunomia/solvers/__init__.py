"""The engines: exact optimisation over arrays; no cluster words beyond capacity, no policy names."""

from eunomia import kernels as kernels  # tells numba where to keep them, before any is made
