"""Runs scenarios and writes their results."""

from eunomia.runs.simulation import Result, simulate

__all__ = ["Result", "simulate"]
