"""Gavel's own clock, to the letter: rounds, priorities, a greedy choice. Nothing but the wiring knows it."""

from eunomia.core.mechanisms.gavel.scheduler import GavelScheduler
from eunomia.core.mechanisms.gavel.settings import GavelRounds

__all__ = ["GavelRounds", "GavelScheduler"]
