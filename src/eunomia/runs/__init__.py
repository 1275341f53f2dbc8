"""From a scenario to figures: wires the rooms together, runs them, and writes what came out."""

from eunomia.runs.simulation import Result, simulate

__all__ = ["Result", "simulate"]
