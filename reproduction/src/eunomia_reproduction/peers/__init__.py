"""Parity with the simulators of other systems, job by job."""

from __future__ import annotations

from eunomia_reproduction.peers.systems import reproduce

__all__ = ["reproduce"]
