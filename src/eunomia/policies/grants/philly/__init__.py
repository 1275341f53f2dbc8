"""Philly: virtual clusters with quotas, gangs that collect accelerators, and locality that is relaxed in steps."""

from eunomia.policies.grants.philly.philly import Philly

__all__ = ["Philly"]
