"""Observers that compute figures from moments and decisions: JCT, queueing, utilisation, cost, fairness, losses."""

from eunomia.metrics.figures import Figures, Metrics

__all__ = ["Figures", "Metrics"]
