"""Files of a judged estimator, of a search of parameters and of a training: their numbers, and a picture of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from eunomia.inputs.atomic_write import write_whole
from eunomia.report.image_export import COLOURS, STYLE, encode
from eunomia.throughputs.estimators.calibration import CheckedRate
from eunomia.throughputs.estimators.judging import PairJudgement

COLUMNS = ("job_type", "type", "partner_job_type", "role", "truth", "estimate", "p10", "p90", "error")
PICTURE = "best-found"


def write_judgement(found: PairJudgement, summary: dict[str, Any], folder: Path) -> None:
    """Write summary.json, cells.csv and truth.svg and .png into a folder."""
    write_whole(folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
    write_whole(folder / "cells.csv", cells(found).encode())
    with mpl.rc_context(STYLE):
        _write_figure(draw_truth(found), folder / "truth")


def write_errors(points: Sequence[tuple[float, float]], x_label: str, name: str, folder: Path) -> None:
    """Write NAME.csv, .svg and .png: the mean error (y) against what was measured (x)."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("measured", "mean_error"), *points])
    write_whole(folder / f"{name}.csv", text.getvalue().encode())
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.4), layout="constrained")
        pane = figure.subplots()
        pane.plot(*zip(*points, strict=True), marker="o", color=COLOURS[0])
        pane.set(xlabel=x_label, ylabel="mean error", ylim=(0, None))
        _write_figure(figure, folder / name)


def write_check(found: Sequence[CheckedRate], summary: dict[str, Any], folder: Path) -> None:
    """Write summary.json and truth.csv, .svg and .png: each measured rate beside its estimate from the others."""
    write_whole(folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("type", "job_type", "scale_factor", "measured", "estimate", "p10", "p90"))
    for each in found:
        row = each.estimate
        rates = (f"{rate:.6g}" for rate in (each.rate, row.median, row.low, row.high))
        writer.writerow([row.type, row.job_type, row.scale_factor, *rates])
    write_whole(folder / "truth.csv", text.getvalue().encode())
    truth, guess, low, high = np.array(
        [(each.rate, each.estimate.median, each.estimate.low, each.estimate.high) for each in found]
    ).T
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 5.0), layout="constrained")
        pane = figure.subplots()
        pane.set(xscale="log", yscale="log", xlabel="measured: steps/s", ylabel="estimated from the others")
        for axis in (pane.xaxis, pane.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ends = [min(low.min(), truth.min()), max(high.max(), truth.max())]
        pane.plot(ends, ends, color="#57606a", linewidth=1)
        pane.vlines(truth, low, high, color=COLOURS[0], alpha=0.4, linewidth=1)
        pane.plot(truth, guess, ".", color=COLOURS[0], markersize=5)
        pane.set_title(f"{len(found)} measurements, each left out", fontsize=10, loc="left")
        _write_figure(figure, folder / "truth")


def _write_figure(figure: Figure, path: Path) -> None:
    for form in ("svg", "png"):
        write_whole(path.with_suffix(f".{form}"), encode(figure, form))


def cells(found: PairJudgement) -> str:
    """Return one row a measured pair: normalised throughput, estimate and interval.

    The role is "reference" for a pair of references, "hidden" for one that is judged, "profiled" for a measured one,
    and "other" for pairs of two new jobs and for those that do not fit.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    table, refs = found.table, set(found.references.tolist())
    estimate = np.where(np.isnan(found.hidden_median), found.median, found.hidden_median)
    for i, w, k in zip(*np.nonzero(~np.isnan(found.truth)), strict=True):
        role = "reference" if {int(i), int(k)} <= refs else "hidden" if found.hidden[i, w, k] else "other"
        if role == "other" and int(k) in refs and found.truth[i, w, k] > 0:
            role = "profiled"
        truth, guess = float(found.truth[i, w, k]), float(estimate[i, w, k])
        ends = ["" if np.isnan(each[i, w, k]) else f"{each[i, w, k]:.6f}" for each in (found.low, found.high)]
        row = [table.job_types[i], table.types[w], table.job_types[k], role, f"{truth:.6f}", f"{guess:.6f}", *ends]
        writer.writerow([*row, f"{guess - truth:.6f}"])
    return text.getvalue()


def draw_truth(found: PairJudgement) -> Figure:
    """Return the figure of hidden pairs: truth against estimate, with the 80 % interval where there is one."""
    figure = Figure(figsize=(5.2, 5.0), layout="constrained")
    pane = figure.subplots()
    truth, guess = found.truth[found.hidden], found.hidden_median[found.hidden]
    low, high = found.low[found.hidden], found.high[found.hidden]
    pane.plot([0, 1], [0, 1], color="#57606a", linewidth=1)
    if len(low) and not np.isnan(low).any():
        pane.vlines(truth, low, high, color=COLOURS[0], alpha=0.25, linewidth=1)
    pane.plot(truth, guess, ".", color=COLOURS[0], markersize=4)
    pane.set(
        xlim=(0, 1.02), ylim=(0, 1.02), xlabel="measured: rate beside the partner / rate alone", ylabel="estimated"
    )
    pane.set_title(f"{found.settings.method}: {len(truth)} hidden pairs", fontsize=10, loc="left")
    return figure


def write_measurements(rows: Sequence[Mapping[str, Any]], title: str, folder: Path) -> None:
    """Write tune.csv and best-found.svg and .png; rows have the columns measurement, the parameters, ratio and best."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(folder / "tune.csv", text.getvalue().encode())
    with mpl.rc_context(STYLE):
        figure = _draw(rows, title)
        for form in ("svg", "png"):
            write_whole(folder / f"{PICTURE}.{form}", encode(figure, form))


def _draw(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    pane = figure.subplots()
    at = [row["measurement"] for row in rows]
    pane.axhline(1.0, color="#57606a", linewidth=1, label="the scenario's own values")
    pane.plot(at, [row["ratio"] for row in rows], "o", color=COLOURS[1], markersize=4, label="measured")
    pane.step(at, [row["best"] for row in rows], where="post", color=COLOURS[0], label="best so far")
    pane.set(xlabel="measurements", ylabel="mean completion time ÷ that of the scenario")
    pane.xaxis.set_major_locator(MaxNLocator(integer=True))
    pane.set_title(title, fontsize=10, loc="left")
    pane.legend(frameon=False, fontsize=8)
    return figure


def curve_picture(name: str, curve: Sequence[Mapping[str, float]], metric: str, best_step: int) -> bytes:
    """Return the SVG of one metric over the steps of training, with a mark at the step of the best model."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        pane = figure.subplots()
        steps, values = [point["step"] for point in curve], [point[metric] for point in curve]
        pane.plot(steps, values, color=COLOURS[0])
        best = steps.index(best_step)
        pane.plot(steps[best], values[best], "o", color=COLOURS[1])
        pane.set(xlabel="training step", ylabel=metric.replace("_", " "))
        pane.set_title(f"{name}: best after {best_step:,} steps", fontsize=10, loc="left")
        return encode(figure, "svg")
