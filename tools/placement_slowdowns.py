"""Prints the table of docs/physics.md: what each source says of four accelerators on two and on four machines.

python tools/placement_slowdowns.py --reference ../shared/data
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from eunomia.throughputs import Throughputs, load
from eunomia.throughputs.job_type_facts import model_of
from eunomia.throughputs.placement import PhillySlowdowns, Placement, ThemisSlowdowns
from eunomia.throughputs.placement_level import CLOSEST, PlacementSpan
from eunomia.throughputs.placement_tables import ByNodes, read_placement

SIZE = 4
PLACES = (PlacementSpan(nodes=2, slots=2), PlacementSpan(nodes=4, slots=4))
MODELS = (
    "alexnet", "vgg16", "resnet18", "resnet50", "resnet101", "inceptionv3", "mobilenetv2", "yolov3",
    "transformer", "lm", "bert", "deepspeech2", "ncf",
)  # fmt: skip


def rows(reference: Path) -> Iterator[list[str]]:
    """Yield the cells of each model."""
    tables = reference / "throughputs"
    pollux = read_placement(tables / "pollux-aws-t4" / "placements.csv.gz", "pollux")
    chronus = read_placement(tables / "chronus-iteration-times" / "placement_slowdown.csv", "chronus")
    gavel = load("gavel/simulation_throughputs.json.gz", ("v100",), base=reference)
    for model in MODELS:
        modelled = [pair(source, model) for source in (ThemisSlowdowns(), PhillySlowdowns())]
        measured = [pair(source, model) if model in source.curve_by_size else "" for source in (pollux, chronus)]
        yield [model, *modelled, *measured, of_gavel(gavel, model)]


def pair(source: Placement | ByNodes, model: str) -> str:
    """Return the slowdowns on two and on four machines."""
    return ", ".join(f"{source.slowdown((model, SIZE), 0, place, CLOSEST):.2f}" for place in PLACES)


def of_gavel(table: Throughputs, model: str) -> str:
    """Return the median over the batches of a model of what its table says of gangs that are not on one machine."""
    kinds = [name for name in table.job_types if model_of(name) == model]
    both = [(table.solo_throughput(name, SIZE)[0], table.source.spread_throughput(name, SIZE)[0]) for name in kinds]
    known = [float(alone / apart) for alone, apart in both if apart > 0]
    return f"{median(known):.2f}" if known and max(known) > 1 else ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True, help="folder of reference data")
    print("| model | themis | philly | pollux | chronus | gavel, v100 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for cells in rows(parser.parse_args().reference):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
