"""Published data sets (sources.toml): authors, licence, addresses, and how a copy is verified."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from eunomia.inputs.problems import refused
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.sources.source import File, TraceSource

__all__ = ["SOURCES", "File", "TraceSource", "source"]


def _read() -> tuple[TraceSource, ...]:
    text = files(__name__).joinpath("sources.toml").read_text(encoding="utf-8")
    return tuple(_source(**facts) for facts in tomllib.loads(text)["source"])


def _source(*, files: list[dict[str, Any]], columns: tuple[str, ...] = (), **facts: Any) -> TraceSource:
    """Return one source; `columns` are those of all its files."""
    return TraceSource(
        files=tuple(File(**{**file, "columns": tuple(file.get("columns", columns))}) for file in files), **facts
    )


SOURCES = _read()


def source(name: str) -> TraceSource:
    """Return the named source. Raises InvalidInput for a name that is not known."""
    source_by_name = {each.name: each for each in SOURCES}
    if name not in source_by_name:
        raise refused("data", "NAME", name, "this source is not known", nearest(name, source_by_name))
    return source_by_name[name]
