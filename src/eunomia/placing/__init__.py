"""The floor: who sits where; gangs whole or not at all."""

from eunomia import kernels as kernels  # tells numba where to keep them, before any is made
