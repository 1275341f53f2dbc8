"""Shockwave's fork of Gavel: jobs whose batch size grows in training, on 32 accelerators of one type."""

from __future__ import annotations

from eunomia_reproduction.peers.shockwave.comparison import is_here, reproduce

__all__ = ["is_here", "reproduce"]
