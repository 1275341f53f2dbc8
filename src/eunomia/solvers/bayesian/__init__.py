"""Minimisation of a costly function on a grid from few measurements: surrogate models and acquisition functions."""

from __future__ import annotations

from eunomia.solvers.bayesian.grid import SearchGrid
from eunomia.solvers.bayesian.search import METHODS, GridSearch

__all__ = ["METHODS", "GridSearch", "SearchGrid"]
