"""Philly: virtual clusters with quotas, gangs that collect their seats, and locality that is given up bit by bit."""

from eunomia.policies.grants.philly.policy import Philly

__all__ = ["Philly"]
