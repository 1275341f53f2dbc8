"""A chart as a value: the data that the HTML page and the picture files draw, its points and its colours."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.verdict.number_format import Unit

NO_VALUES: Floats = np.empty(0)
MOST_POINTS = 400
COLOURS = 8
USUAL = {  # policy → colour
    "as_it_was": 6,
    "fifo": 6,
    "srtf": 1,
    "las": 4,
    "max_min_fairness": 0,
    "max_min_fairness_agnostic": 5,
    "finish_time_fairness": 3,
    "themis": 2,
    "tiresias": 7,
    "slurm_fair_share": 1,
    "astraea": 3,
}


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


def cdf(values: Floats, floor: float = 0.0) -> tuple[Floats, Floats]:
    """Return points of the empirical distribution of the finite `values`: x, and the share of values at most x.

    Values below `floor` count as `floor`, so that a log axis can show jobs that did not wait.
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = np.sort(np.maximum(finite[np.isfinite(finite)], floor))
    if finite.size == 0:
        return np.empty(0), np.empty(0)
    rank = np.unique(np.linspace(0, finite.size - 1, min(finite.size, MOST_POINTS)).round().astype(np.int64))
    x = np.unique(finite[rank])
    return x, np.searchsorted(finite, x, side="right") / finite.size


def thinned(at_s: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Merge neighbouring bins until there are at most `MOST_POINTS`; return their starts and the end of the last.

    `rows` has shape (row, bin); merged bins hold the mean of the finite values, and the last value is repeated.
    """
    bins = at_s.size
    if bins == 0:
        return at_s, rows
    together = -(-bins // (MOST_POINTS - 1))
    groups = -(-bins // together)
    padded = np.full((rows.shape[0], groups * together), np.nan)
    padded[:, :bins] = rows
    parts = padded.reshape(rows.shape[0], groups, together)
    known = np.isfinite(parts)
    count = known.sum(axis=2)
    means = np.full(count.shape, np.nan)
    np.divide(np.where(known, parts, 0.0).sum(axis=2), count, out=means, where=count > 0)
    width = at_s[-1] - at_s[-2] if bins > 1 else 1.0
    return np.append(at_s[::together], at_s[-1] + width), np.concatenate([means, means[:, -1:]], axis=1)


def styles_of(labels: Sequence[str], first: Sequence[str] = ()) -> dict[str, int]:
    """Return the style of each label: its policy's own colour, or the next that is free; dashes differ beyond eight.

    No two of the `first` eight labels share a colour. Which of two other labels gets a colour that both want does not
    depend on their order in the report.
    """
    taken: dict[int, str] = {}
    for label in sorted(labels, key=lambda label: (label not in first, _name(label) not in USUAL, len(label), label)):
        name = _name(label)
        wanted = USUAL.get(name, zlib.crc32(name.encode("utf-8", "replace")) % COLOURS)
        block = len(taken) // COLOURS * COLOURS
        style = next(
            block + (wanted + k) % COLOURS for k in range(COLOURS) if block + (wanted + k) % COLOURS not in taken
        )
        taken[style] = label
    style_by_label = {label: style for style, label in taken.items()}
    return {label: style_by_label[label] for label in labels}


def _name(label: str) -> str:
    """Return the name of the policy without parameters and file: `fifo?backfill=skip` → `fifo`."""
    return label.partition("?")[0].rpartition(":")[2]
