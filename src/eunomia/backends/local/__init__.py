"""The local world: gangs are processes on this machine, each watched by a small supervisor of its own."""

from __future__ import annotations

from eunomia.backends.local.resumed import ResumedWorld
from eunomia.backends.local.world import LocalWorld

__all__ = ["LocalWorld", "ResumedWorld"]
