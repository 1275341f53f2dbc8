"""The public sources that `eunomia data` knows: sources.toml."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from eunomia.traces.sources.source import File, TraceSource


def _read() -> tuple[TraceSource, ...]:
    text = files("eunomia.traces.sources").joinpath("sources.toml").read_text(encoding="utf-8")
    return tuple(_source(**facts) for facts in tomllib.loads(text)["source"])


def _source(*, files: list[dict[str, Any]], columns: tuple[str, ...] = (), **facts: Any) -> TraceSource:
    """Return one source; `columns` are those of all its files."""
    return TraceSource(
        files=tuple(File(**{**file, "columns": tuple(file.get("columns", columns))}) for file in files), **facts
    )


SOURCES = _read()
