"""ASTRAEA's published artifact: leases, tenants with quotas, and a clock that ticks every ten seconds."""

from __future__ import annotations

from eunomia_reproduction.peers.astraea.comparison import is_here, reproduce

__all__ = ["is_here", "reproduce"]
