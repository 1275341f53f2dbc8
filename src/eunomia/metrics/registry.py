"""The registry of metrics: groups of fields of summary.json, in the order of the file."""

from __future__ import annotations

from eunomia.metrics.summary import Metric
from eunomia.model.registry import Registry

METRICS: Registry[Metric] = Registry(
    {
        "completion": "eunomia.metrics.job_summary:completion",
        "utilization": "eunomia.metrics.job_summary:utilization",
        "service": "eunomia.metrics.job_summary:service",
        "apps": "eunomia.metrics.job_summary:of_apps",
        "tenants": "eunomia.metrics.job_summary:of_tenants",
    }
)


def load_all() -> dict[str, Metric]:
    """Return the registered metrics by name."""
    return {name: METRICS.load(name) for name in METRICS}
