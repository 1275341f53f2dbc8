"""Shares received as they are answered, at every instant: what any real mechanism can only come near to."""

from eunomia.mechanisms.fluid.config import Fluid

__all__ = ["Fluid"]
