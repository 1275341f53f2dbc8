"""The local backend: gangs are processes on this machine, each with a supervisor process."""

from __future__ import annotations

from eunomia.backends.processes.resumed import ResumedWorld
from eunomia.backends.processes.world import LocalWorld

__all__ = ["LocalWorld", "ResumedWorld"]
