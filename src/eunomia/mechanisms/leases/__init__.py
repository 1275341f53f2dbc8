"""Leases: a right to seats until a stated time. Rounds, run-to-completion and preemption are all leases."""

from eunomia.mechanisms.leases.config import Leases

__all__ = ["Leases"]
