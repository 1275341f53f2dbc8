"""The registry of metrics: groups of fields of summary.json, in the order of the file."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from eunomia.metrics.summary import Metric

METRICS: dict[str, str] = {
    "completion": "eunomia.metrics.job_summary:completion",
    "utilization": "eunomia.metrics.job_summary:utilization",
    "service": "eunomia.metrics.job_summary:service",
    "apps": "eunomia.metrics.job_summary:of_apps",
    "tenants": "eunomia.metrics.job_summary:of_tenants",
}


def load_all() -> dict[str, Metric]:
    """Return the registered metrics by name."""
    places = {name: place.split(":") for name, place in METRICS.items()}
    return {name: cast(Metric, getattr(import_module(module), function)) for name, (module, function) in places.items()}
