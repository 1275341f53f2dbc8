"""Shares applied exactly at every instant: the ideal that real mechanisms approximate."""

from eunomia.mechanisms.fluid.config import Fluid

__all__ = ["Fluid"]
