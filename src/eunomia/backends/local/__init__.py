"""The local backend: gangs are processes on this machine, each with a supervisor process."""

from __future__ import annotations

from eunomia.backends.local.resumed import ResumedWorld
from eunomia.backends.local.world import LocalWorld

__all__ = ["LocalWorld", "ResumedWorld"]
