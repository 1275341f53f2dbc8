"""What was measured on Philly, from a synthetic workload."""

from eunomia_reproduction.philly.tables import reproduce

__all__ = ["reproduce"]
