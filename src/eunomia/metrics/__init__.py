"""What observers hear, made into figures: JCT, queueing, utilisation, cost, finish-time fairness. Knows no world."""

from eunomia.metrics.figures import Figures, Metrics

__all__ = ["Figures", "Metrics"]
