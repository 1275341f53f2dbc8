"""A chart as a value: the data that the HTML page and the picture files draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.verdict.number_format import Unit

NO_VALUES: Floats = np.empty(0)


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis: its label, its unit, and its ends where they are fixed."""

    label: str
    unit: Unit
    scale: Literal["linear", "log"] = "linear"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One line or one colour of bars. In bars and forests `x` counts the categories; a forest's `y` are changes."""

    name: str
    style: int  # colour, dashes and hatching
    x: Floats
    y: Floats  # same rows; nan = nothing there
    low: Floats = field(default_factory=lambda: NO_VALUES)  # least and most over the seeds, or empty
    high: Floats = field(default_factory=lambda: NO_VALUES)
    details: tuple[str, ...] = ()  # text beside each value, or empty
    tones: tuple[str, ...] = ()  # of a forest: better, worse, or another verdict without a colour


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One pair of axes."""

    title: str = ""
    series: tuple[Series, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """One figure: a title, how to read it, and one or several panels with the same x axis."""

    name: str  # unique in the report; the stem of picture files
    title: str
    how_to_read: str
    kind: Literal["cdf", "steps", "line", "bars", "forest"]  # cdf and steps: a value holds until the next
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]
    categories: tuple[str, ...] = ()  # of bars
    load: float | None = None  # the load that it shows, where the report has several
    mark: tuple[float, str] | None = None  # x of a vertical line, and its label
    palette: Literal["runs", "parts"] = "runs"  # parts: tenants, types or sizes, in other colours than policies
