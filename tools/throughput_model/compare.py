"""Errors of the analytic model against measured tables.

A ratio is max(model / measured, measured / model), so 1 is exact and 2 is wrong by half or by double. Only rows of
models that the catalogue does not have are left out.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from eunomia.model import elementary
from eunomia.throughputs import analytic, read_table
from eunomia.throughputs.catalogue import Accelerator, accelerators
from eunomia.throughputs.job_type_facts import JobFacts, job_types

RESNET_50 = "ResNet-50 (batch size 64)"
RESNET_18 = "ResNet-18 (batch size 64)"
BERT = "BERT-Base fine-tuning (batch size 8)"
GPT_2 = "GPT-2 (batch size 4)"
T4_PER_NODE = 4  # g4dn.12xlarge
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table against the model. In `mismatched` rows only one of the two has a rate: they have no ratio."""

    table: str
    what: str
    fitted: bool  # whether the model was fitted on these rows
    rows: int
    mismatched: int
    median: float
    p90: float
    worst: float
    within: float  # share of the ratios that are within the interval of the catalogue's rates


def compare(reference: Path) -> list[Comparison]:
    """Return comparisons of each table in `reference`, a folder with `gavel/` and `throughputs/`; absent ones: none."""
    found = []
    for part, comparisons in (
        ("gavel", _gavel),
        ("throughputs/shockwave", _shockwave),
        ("throughputs/zeus-power", _zeus),
        ("throughputs/pollux-aws-t4", _pollux),
        ("throughputs/elasticflow", _elasticflow),
    ):
        if (reference / part).is_dir():
            found += list(comparisons(reference / part))
    return found


def summary(table: str, what: str, pairs: Iterable[tuple[float, float]], *, fitted: bool = False) -> Comparison:
    """Return the comparison of (model, measured) rates."""
    model, measured = np.array(list(pairs)).T
    both, one = (model > 0) & (measured > 0), (model > 0) != (measured > 0)
    ratio = elementary.exp(np.abs(elementary.log(model[both] / measured[both])))
    median, p90, worst = (float(np.quantile(ratio, q)) for q in (0.5, 0.9, 1.0))
    within = float((ratio <= analytic.INTERVAL_FACTOR).mean())
    return Comparison(table, what, fitted, len(model), int(one.sum()), median, p90, worst, within)


def _gavel(folder: Path) -> Iterator[Comparison]:
    table = read_table("simulation_throughputs.json.gz", folder)
    rows: dict[str, list[tuple[float, float]]] = {}
    for (type_name, job_type, n), rate in table.alone.items():
        base = type_name.removesuffix("_unconsolidated")
        spread = base != type_name
        what = "one accelerator" if n == 1 else "2 to 8, one a node" if spread else "2 to 8, consolidated"
        modelled = analytic.step_rate(job_types()[job_type], accelerators()[base], n, n if spread else None)
        if n > 1 or not spread:  # one accelerator alone is the same row in both tables
            rows.setdefault(what, []).append((modelled, rate))
    for what, found in rows.items():
        yield summary("gavel", what, found, fitted=True)
    pairs = [
        (analytic.shared_rate(job_types()[a], job_types()[b], accelerators()[each], n), rate)
        for (each, a, b, n), rate in table.pairs.items()
        if each in accelerators() and n == 1
    ]
    yield summary("gavel", "two jobs on one accelerator (memory fitted)", pairs)


def _shockwave(folder: Path) -> Iterator[Comparison]:
    for name in ("tacc", "wisr"):
        rows = [row for row in _rows(folder / f"{name}_throughputs.csv.gz") if not row["co_job_type"]]
        yield summary(
            f"shockwave {name}",
            "alone, consolidated (nearly all is Gavel's table)",
            (
                (_rate(job_types()[row["job_type"]], row["gpu_type"], int(row["num_gpus"])), float(row["steps_per_s"]))
                for row in rows
                if row["gpu_type"] in accelerators()
            ),
            fitted=True,
        )


def _zeus(folder: Path) -> Iterator[Comparison]:
    """Compare ratios of epoch times, each type against V100, at the fastest power limit and optimiser."""
    best: dict[tuple[str, str, int], float] = {}
    for row in _rows(folder / "summary_power.csv"):
        key = (f"{row['dataset']}/{row['network']}", row["gpu_type"], int(row["batch_size"]))
        best[key] = min(best.get(key, np.inf), float(row["time_per_epoch"]))
    for model, job in (
        ("imagenet/resnet50", job_types()[RESNET_50]),
        ("squad/bert_base_uncased", replace(job_types()[BERT], precision="fp32")),
    ):
        rows = []
        for (name, type_name, batch), seconds in best.items():
            if name == model and type_name != "v100" and (name, "v100", batch) in best:
                sized = replace(job, batch_size=batch)
                modelled = _unlimited(sized, type_name) / _unlimited(sized, "v100")
                rows.append((modelled, best[name, "v100", batch] / seconds))
        yield summary("zeus", f"{model}: speed relative to V100", rows)


def _pollux(folder: Path) -> Iterator[Comparison]:
    """Compare samples/s at each placement; its digits are the accelerators on each node."""
    t4 = accelerators()["t4"]
    table = list(_rows(folder / "placements.csv.gz"))
    for model, job in (("imagenet", RESNET_50), ("cifar10", RESNET_18), ("bert", BERT)):
        facts = replace(job_types()[job], precision="fp32")
        rows = [row for row in table if row["model"] == model]
        alone = {int(row["local_bsz"]): float(row["step_time"]) for row in rows if row["placement"] == "1"}
        absolute, scaling = [], []
        for row in rows:
            n, nodes, batch = sum(map(int, row["placement"])), len(row["placement"]), int(row["local_bsz"])
            sized = replace(facts, batch_size=batch)
            modelled, measured = analytic.unlimited_rate(sized, t4, n, nodes), n / float(row["step_time"])
            absolute.append((modelled, measured))
            if batch in alone and n > 1:
                scaling.append((modelled / analytic.unlimited_rate(sized, t4, 1), measured * alone[batch]))
        yield summary("pollux", f"{model} on T4: rate", absolute)
        yield summary("pollux", f"{model} on T4: speed-up over 1", scaling)


def _elasticflow(folder: Path) -> Iterator[Comparison]:
    """Compare strong scaling: the batch of the whole gang stays, so each accelerator's shrinks."""
    rows = list(_rows(folder / "throughputs.csv"))
    for model, type_name, alias, job in (
        ("resnet50", "a100-40gb", "A100", RESNET_50),
        ("bert", "a100-40gb", "A100", BERT),
        ("gpt2", "a100-40gb", "A100", GPT_2),
        ("imagenet", "t4", "T4", RESNET_50),
        ("bert", "t4", "T4", BERT),
    ):
        mine = [row for row in rows if (row["model"], row["gpu_type"]) == (model, alias)]
        per_node = T4_PER_NODE if type_name == "t4" else analytic.ACCELERATORS_PER_NODE
        pairs = []
        for row in mine:
            sizes = [int(key) for key, value in row.items() if key.isdigit() and float(value or 0) > 0]
            steps = {n: _global_steps(job_types()[job], accelerators()[type_name], row, n, per_node) for n in sizes}
            pairs += [(steps[n] / steps[1], float(row[str(n)]) / float(row["1"])) for n in sizes if n > 1]
        yield summary("elasticflow", f"{model} on {alias}: speed-up over 1, 2 to 64", pairs)
        if job == RESNET_50:
            absolute = (
                (_global_steps(job_types()[job], accelerators()[type_name], row, 1, per_node), float(row["1"]))
                for row in mine
            )
            yield summary("elasticflow", f"{model} on {alias}: rate of 1", absolute)


def _global_steps(job: JobFacts, accelerator: Accelerator, row: Row, n: int, per_node: int) -> float:
    sized = replace(job, batch_size=max(1, int(row["global_batch_size"]) // n))
    return analytic.unlimited_rate(sized, accelerator, n, accelerators_per_node=per_node) / n


def _rate(job: JobFacts, type_name: str, n: int) -> float:
    return analytic.step_rate(job, accelerators()[type_name], n)


def _unlimited(job: JobFacts, type_name: str) -> float:
    return analytic.unlimited_rate(job, accelerators()[type_name], 1)


def _rows(path: Path) -> Iterator[Row]:
    contents = path.read_bytes()
    text = gzip.decompress(contents) if path.suffix == ".gz" else contents
    yield from csv.DictReader(io.StringIO(text.decode()))
