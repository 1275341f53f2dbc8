"""Measured speeds on many accelerator types, and predictors judged on them by the model that is left out.

NeuSight: S. Lee, A. Phanishayee and D. Mahajan, "Forecasting GPU Performance for Deep Learning Training and Inference",
ASPLOS 2025. MLPerf Training: the public logs of four rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.inputs.open_table import read_table
from eunomia.inputs.table import InputTable
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.throughputs.analytic import GIGA, PEAK_SHARE
from eunomia.throughputs.estimators.type_transfer import TransferFacts, TypeTransfer, fit_calibration, traits_of

# Layers, width, heads and vocabulary, from the models' papers; values read and written for each token and layer, over
# the width: 42 with an activation in one kernel, 106 with GPT's, a tanh approximation of eight kernels in eager mode.
ARCHITECTURES = {
    "bert_large": (24, 1024, 16, 30522, 42),
    "gpt2_large": (36, 1280, 20, 50257, 106),
    "gpt3_xl": (24, 3072, 24, 50257, 106),
    "gpt3_27": (32, 2560, 32, 50257, 106),
    "opt_13": (24, 2048, 32, 50272, 42),
}
MLPERF_AREAS = {  # MLPerf Training's own areas; others are vision
    "bert": "language", "llama2_70b_lora": "language", "rnnt": "language", "dlrm": "commerce", "dlrm_dcnv2": "commerce",
    "gnn": "graphs", "minigo": "research",
}  # fmt: skip
MLPERF_SPECS = {  # dense half-precision TFLOP/s and memory bandwidth in GB/s, from the vendors' data sheets
    "a100-pcie-80gb": (312, 1935), "a100-sxm-40gb": (312, 1555), "a100-sxm-80gb": (312, 2039), "a30": (165, 933),
    "a40": (150, 696), "gaudi2": (432, 2450), "h100-pcie": (756, 2000), "h100-sxm": (989, 3350),
    "h200-sxm": (989, 4800), "l40": (181, 864), "l40s": (362, 864),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class TransferTable:
    """Measured rates: row m is job `job[m]` on type `type[m]`."""

    facts: TransferFacts
    job: Ints
    type: Ints
    rate: Floats
    of_time: bool = False  # errors are of the time of a step, not of its rate
    types: tuple[str, ...] = ()  # names

    def error(self, guess: float, truth: float) -> float:
        """Return the relative error of an estimated rate."""
        return abs(truth / guess - 1) if self.of_time else abs(guess / truth - 1)

    def cases(self) -> Iterator[tuple[int, int, Ints]]:
        """Yield each target row with a source row of another type, and the rows of other models."""
        group, family = self.facts.type_group, self.facts.family
        for target in range(len(self.job)):
            others = np.flatnonzero(family[self.job] != family[self.job[target]])
            for source in range(len(self.job)):
                same = self.job[source] == self.job[target]
                if same and group[self.type[source]] != group[self.type[target]]:
                    yield target, source, others


@dataclass(frozen=True, slots=True)
class TransferScores:
    """Relative errors; each target counts once, with the mean over its sources."""

    mean: float
    median: float
    p90: float
    coverage80: float | None
    targets: int
    cases: int
    median_case: float  # over all pairs of target and source


def judge_transfer(table: TransferTable) -> TransferScores:
    """Judge our estimator: the target's model is left out but for one measurement on another type.

    How far families differ, and how wide intervals are, is chosen on the other models alone.
    """
    estimates: dict[int, tuple[Floats, Floats, Floats]] = {}  # by source
    off: dict[int, list[float]] = {}
    inside: list[bool] = []
    family = table.facts.family[table.job]
    for each in dict.fromkeys(family.tolist()):
        others = np.flatnonzero(family != each)
        known = table.job[others], table.type[others], table.rate[others]
        base = TypeTransfer(table.facts, fit_calibration(table.facts, *known))
        base.learn(*known)
        for source in np.flatnonzero(family == each).tolist():
            beliefs = base.copy()
            beliefs.observe(int(table.job[source]), int(table.type[source]), float(table.rate[source]))
            estimates[source] = beliefs.estimate()
    for target, source, _ in table.cases():
        cell = table.job[target], table.type[target]
        median, low, high = (float(each[cell]) for each in estimates[source])
        truth = float(table.rate[target])
        off.setdefault(target, []).append(table.error(median, truth))
        inside.append(low <= truth <= high)
    return _scores(off, float(np.mean(inside)))


def judge_specs(table: TransferTable) -> TransferScores:
    """Judge our estimator of types on which nothing was measured: each is left out, the jobs' other rates known."""
    off: dict[int, list[float]] = {}
    inside: list[bool] = []
    group = table.facts.type_group[table.type]
    for each in dict.fromkeys(group.tolist()):
        others = np.flatnonzero(group != each)
        known = table.job[others], table.type[others], table.rate[others]
        beliefs = TypeTransfer(table.facts, fit_calibration(table.facts, *known))
        beliefs.learn(*known)
        estimates = beliefs.estimate()
        for target in np.flatnonzero((group == each) & np.isin(table.job, known[0])).tolist():
            median, low, high = (float(found[table.job[target], table.type[target]]) for found in estimates)
            truth = float(table.rate[target])
            off[target] = [table.error(median, truth)]
            inside.append(low <= truth <= high)
    return _scores(off, float(np.mean(inside)))


def judge_ratios(table: TransferTable) -> TransferScores:
    """Judge the naive answer: the measurement times the median ratio of other models between the two types."""
    group = table.facts.type_group[table.type]
    rate: dict[tuple[int, int], list[float]] = {}
    for row in range(len(table.job)):
        rate.setdefault((int(table.job[row]), int(group[row])), []).append(float(table.rate[row]))
    off: dict[int, list[float]] = {}
    for target, source, others in table.cases():
        ratios = [
            float(table.rate[row]) / beside
            for row in others.tolist()
            if group[row] == group[target]
            for beside in rate.get((int(table.job[row]), int(group[source])), [])
        ]
        if ratios:
            guess = float(table.rate[source]) * float(np.median(ratios))
            off.setdefault(target, []).append(table.error(guess, float(table.rate[target])))
    return _scores(off, None)


def _scores(off: dict[int, list[float]], coverage: float | None) -> TransferScores:
    each = np.array([np.mean(errors) for errors in off.values()])
    cases = sum(map(len, off.values()))
    single = float(np.median([error for errors in off.values() for error in errors]))
    mean, median, p90 = float(each.mean()), float(np.median(each)), float(np.quantile(each, 0.9))
    return TransferScores(mean, median, p90, coverage, len(each), cases, single)


def read_neusight(folder: Path) -> TransferTable:
    """Read the single-accelerator rows; variants of one chip count as one type.

    Peaks are those of matrix products in single precision: AMD's libraries use the matrix units for them.
    """
    devices = read_table(folder / "devices.csv", "devices.csv").stripped()
    peaks_of_products, bandwidth = (devices.text(name) for name in ("fp32_gflops", "mem_bw_gb_s"))
    peak = dict(zip(devices.text("device"), map(float, peaks_of_products), strict=True))
    wide = dict(zip(devices.text("device"), map(float, bandwidth), strict=True))
    table = read_table(folder / "latency.csv", "latency.csv").stripped()
    columns = [
        table.text(name) for name in ("device", "model", "mode", "option", "seq_len", "batch_size", "measured_ms")
    ]
    rows = [row for row in zip(*columns, strict=True) if row[3] == "" and row[6]]
    types = tuple(dict.fromkeys(row[0] for row in rows))
    groups = tuple(dict.fromkeys(_chip(name) for name in types))
    jobs = tuple(dict.fromkeys((row[1], row[2], int(row[4]), int(row[5])) for row in rows))
    models = tuple(dict.fromkeys(job[0] for job in jobs))
    known = np.array([job[0] in ARCHITECTURES for job in jobs])
    flop, traffic = np.array([_work(*job) if job[0] in ARCHITECTURES else (1e12, 1e10) for job in jobs]).T
    peaks, widths = (np.array([each[name] for name in types]) for each in (peak, wide))
    facts = TransferFacts(
        family=np.array([models.index(job[0]) for job in jobs]),
        job_class=np.array([int(job[1] == "train") for job in jobs]),
        has_expected=known.astype(float),
        specs=elementary.log(np.stack((peaks, widths), axis=1)),
        type_group=np.array([groups.index(_chip(name)) for name in types]),
        expected=-elementary.log(
            flop[:, None] / (PEAK_SHARE["fp32"] * GIGA * peaks) + traffic[:, None] / (GIGA * widths)
        ),
        traits=traits_of(np.where(known, flop, 0.0), traffic),
    )
    job = np.array([jobs.index((row[1], row[2], int(row[4]), int(row[5]))) for row in rows])
    type = np.array([types.index(row[0]) for row in rows])
    return TransferTable(facts, job, type, 1e3 / np.array([float(row[6]) for row in rows]), of_time=True, types=types)


@dataclass(frozen=True, slots=True)
class ModelError:
    """Speed of a device over the A100 in one class of jobs: medians of what was measured and of the analytic model."""

    device: str
    job_class: str
    rows: int
    measured: float
    model: float

    @property
    def error(self) -> float:
        """The relative error of the model."""
        return self.model / self.measured - 1.0


def model_errors(table: TransferTable) -> list[ModelError]:
    """Compare data sheets, by the analytic model, with the rows of each device whose jobs an A100 has run as well."""
    found, facts = [], table.facts
    is_base = np.array(["A100" in name for name in table.types])[table.type]
    for t, device in enumerate(table.types):
        for number, name in enumerate(("inference", "training")):
            ratios = []
            for row in np.flatnonzero((table.type == t) & (facts.job_class[table.job] == number)).tolist():
                beside, job = np.flatnonzero(is_base & (table.job == table.job[row])), table.job[row]
                if facts.has_expected[job] and len(beside) and "A100" not in device:
                    base = float(facts.expected[job, table.type[beside]].mean())
                    model = elementary.exp(float(facts.expected[job, t]) - base)
                    ratios.append((float(table.rate[row] / np.median(table.rate[beside])), model))
            if ratios:
                measured, model = np.median(np.array(ratios), axis=0).tolist()
                found.append(ModelError(device, name, len(ratios), measured, model))
    return found


def _chip(device: str) -> str:
    return next((chip for chip in ("A100", "MI2") if chip in device), device)


def _work(model: str, mode: str, seq_len: int, batch: int) -> tuple[float, float]:
    """Return the floating-point operations and the bytes of memory traffic of one iteration of a transformer."""
    layers, width, heads, vocabulary, values = ARCHITECTURES[model]
    tokens = seq_len * batch
    flop = tokens * (layers * (24 * width * width + 4 * seq_len * width) + 2 * width * vocabulary)
    traffic = 4 * tokens * (layers * (values * width + 8 * seq_len * heads) + vocabulary)
    passes = 3.0 if mode == "train" else 1.0
    return passes * flop, passes * traffic


def mlperf_throughputs(table: InputTable) -> dict[tuple[str, str, int], list[float]]:
    """Return the median throughputs of runs by benchmark, type and count: closed, successful, no repeats."""
    names = ("benchmark", "type", "accelerators", "division", "status", "repeat_of", "throughput_median")
    found: dict[tuple[str, str, int], list[float]] = {}
    for bench, type, count, division, status, repeat, rate in zip(*map(table.text, names), strict=True):
        if division == "closed" and status == "success" and not repeat and count and rate and float(rate):
            found.setdefault((bench, type, int(count)), []).append(float(rate))
    return found


def read_mlperf(folder: Path, accelerators: int = 8) -> TransferTable:
    """Read the median throughput of each benchmark on each type at one count: closed, successful, no repeats."""
    table = read_table(folder / "runs.csv.gz", "runs.csv.gz").stripped()
    every = mlperf_throughputs(table)
    found = {
        (bench, type): rates
        for (bench, type, count), rates in every.items()
        if count == accelerators and type in MLPERF_SPECS
    }
    benches, types = (tuple(dict.fromkeys(key[m] for key in found)) for m in (0, 1))
    areas = ("vision", *dict.fromkeys(MLPERF_AREAS.values()))
    specs = elementary.log(np.array([MLPERF_SPECS[type] for type in types], dtype=float))
    facts = TransferFacts(
        family=np.arange(len(benches)),
        job_class=np.array([areas.index(MLPERF_AREAS.get(bench, "vision")) for bench in benches]),
        has_expected=np.zeros(len(benches)),
        specs=specs,
        type_group=np.arange(len(types)),
        expected=np.broadcast_to(np.asarray(specs.mean(axis=1)), (len(benches), len(types))).copy(),
        traits=np.zeros((len(benches), 2)),
    )
    rates = np.array([np.median(each) for each in found.values()])
    job, type = (np.array([names.index(key[m]) for key in found]) for m, names in ((0, benches), (1, types)))
    return TransferTable(facts, job, type, rates)
