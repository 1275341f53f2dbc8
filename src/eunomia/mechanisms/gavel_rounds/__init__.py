"""Gavel's own rounds, to the letter: rounds, priorities, a greedy choice. Only the registry knows them."""

from eunomia.mechanisms.gavel_rounds.config import GavelRounds

__all__ = ["GavelRounds"]
