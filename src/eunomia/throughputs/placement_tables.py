"""Slowdowns measured by the number of machines: reads the published tables, and one of your own.

| columns | what it is |
| --- | --- |
| `model, placement, local_bsz, step_time` | Pollux' on nodes of 4 T4; `placement` 211 = 2, 1, 1 on three nodes |
| `model, num_gpus, num_nodes, relative_speed` | Chronus'; relative_speed = 1 on one node |
| `job_type, scale_factor, nodes, slowdown` | your own; slowdown = 1 on the fewest nodes |

    slowdown(n, m) = median over batches and placements of  step time on m nodes / step time on the fewest nodes of n

Figures stay as they were measured, even where more nodes are faster than few (Pollux' are, from two nodes to three);
but no place is faster than the fewest nodes. A. Qiao et al., "Pollux", OSDI 2021; W. Gao et al., "Chronus", SoCC 2021.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

import numpy as np

from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import interpolate
from eunomia.throughputs.job_type_facts import Kind, model_of
from eunomia.throughputs.long_table import ABOVE_0, COUNT, read_layout
from eunomia.throughputs.measured_table import nearest_size
from eunomia.throughputs.placement import across_racks
from eunomia.throughputs.placement_level import PlacementSpan

LAYOUTS = {
    "own": ("job_type", "scale_factor", "nodes", "slowdown"),
    "pollux": ("model", "placement", "local_bsz", "step_time"),
    "chronus": ("model", "num_gpus", "num_nodes", "relative_speed"),
}
Curve = tuple[tuple[float, ...], tuple[float, ...]]  # nodes, rising; slowdown as against the fewest of them
Times = dict[tuple[str, int], dict[int, list[float]]]  # (model, accelerators) → nodes → relative step times


@dataclass(frozen=True, slots=True)
class ByNodes:
    """Slowdowns by model, accelerators and nodes; across racks modelled by Themis' last step.

    A size takes the nearest size that was measured on as few nodes as it could have, at the same numbers of nodes; a
    model that was not measured the geometric mean of those that were.
    """

    name: str
    curve_by_size: Mapping[str, Mapping[int, Curve]]  # model → accelerators → curve

    def slowdown(
        self, kind: Kind, type: int, place: PlacementSpan, best: PlacementSpan, partner: str | None = None
    ) -> float:
        """Return the slowdown of so many nodes instead of the fewest."""
        model = model_of(kind[0])
        models = [model] if model in self.curve_by_size else list(self.curve_by_size)
        spread = [self._spread(each, kind[1], place.nodes, best.nodes) for each in models]
        return geometric_mean(spread) * across_racks(kind[0], place, best)

    def _spread(self, model: str, size: int, nodes: int, fewest: int) -> float:
        curves = {n: curve for n, curve in self.curve_by_size[model].items() if len(curve[0]) > 1}
        near = [n for n, (measured, _) in curves.items() if measured[0] <= fewest]
        if not curves or nodes <= fewest:
            return 1.0
        here, best = interpolate([nodes, fewest], *curves[nearest_size(near or curves, size)])
        return max(float(here / best), 1.0)


def read_placement(path: Path, name: str) -> ByNodes:
    """Return a table of slowdowns. Raises InvalidInput with everything that is wrong with it."""
    layout, table = read_layout(path, name, LAYOUTS)
    found = {"own": _own, "pollux": _pollux, "chronus": _chronus}[layout](table)
    table.raise_if_any()
    curves: dict[str, dict[int, Curve]] = {}
    for (model, size), by_nodes in found.items():
        curves.setdefault(model, {})[size] = _curve(by_nodes)
    return ByNodes(name, curves)


def _curve(by_nodes: Mapping[int, list[float]]) -> Curve:
    nodes = sorted(by_nodes)
    medians = np.array([np.median(by_nodes[m]) for m in nodes])
    return tuple(map(float, nodes)), tuple((medians / medians[0]).tolist())


def _own(table: InputTable) -> Times:
    sizes, nodes = table.whole("scale_factor", COUNT), table.whole("nodes", COUNT)
    slowdown = table.number("slowdown", ABOVE_0)
    table.refuse("slowdown", slowdown < 1, "is at least 1", "give the time over that on the fewest nodes")
    found: Times = {}
    for model, size, n, factor in _rows(table.text("job_type"), sizes, nodes, slowdown):
        found.setdefault((model, size), {1: [1.0]}).setdefault(n, []).append(factor)
    return found


def _chronus(table: InputTable) -> Times:
    sizes, nodes = table.whole("num_gpus", COUNT), table.whole("num_nodes", COUNT)
    found: Times = {}
    for model, size, n, time in _rows(table.text("model"), sizes, nodes, 1 / table.number("relative_speed", ABOVE_0)):
        found.setdefault((model, size), {}).setdefault(n, []).append(time)
    return found


def _rows(jobs: Sequence[str], sizes: Ints, nodes: Ints, values: Floats) -> Iterator[tuple[str, int, int, float]]:
    return zip(map(model_of, jobs), sizes.tolist(), nodes.tolist(), values.tolist(), strict=True)


def _pollux(table: InputTable) -> Times:
    """Divide step times of one batch by that of the fewest nodes, so that batches can be compared."""
    placements, step_times = table.text("placement"), table.number("step_time", ABOVE_0).tolist()
    wrong = np.array([not (each.isascii() and each.isdigit()) or "0" in each for each in placements], dtype=np.bool_)
    table.refuse("placement", wrong, "has a digit above 0 for each node, its accelerators", "correct the placement")
    table.raise_if_any()
    times: dict[tuple[str, int, str], dict[int, list[float]]] = {}
    models, batches = map(model_of, table.text("model")), table.text("local_bsz")
    for model, batch, placement, step in zip(models, batches, placements, step_times, strict=True):
        key = (model, sum(map(int, placement)), batch)
        times.setdefault(key, {}).setdefault(len(placement), []).append(step)
    found: Times = {}
    for (model, size, _), by_nodes in times.items():
        fewest = float(np.median(by_nodes[min(by_nodes)]))
        for nodes, steps in by_nodes.items():
            found.setdefault((model, size), {}).setdefault(nodes, []).extend(step / fewest for step in steps)
    return found
