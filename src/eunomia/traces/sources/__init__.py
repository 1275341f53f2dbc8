"""Where published traces can be had: who made them, under which licence, and how a copy is verified."""

from __future__ import annotations

from eunomia.inputs.problems import refused
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.sources.public import SOURCES
from eunomia.traces.sources.source import File, TraceSource

__all__ = ["SOURCES", "File", "TraceSource", "source"]


def source(name: str) -> TraceSource:
    """Return the named source. Raises InvalidInput for a name that is not known."""
    found = {one.name: one for one in SOURCES}
    if name not in found:
        raise refused("data", "NAME", name, "this source is not known", nearest(name, found))
    return found[name]
