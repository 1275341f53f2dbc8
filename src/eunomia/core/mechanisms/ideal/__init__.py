"""Shares received as they are answered, at every instant: what any real mechanism can only come near to."""

from eunomia.core.mechanisms.ideal.scheduler import IdealScheduler
from eunomia.core.mechanisms.ideal.settings import Ideal

__all__ = ["Ideal", "IdealScheduler"]
