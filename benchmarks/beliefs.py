"""What a belief costs: an update and an estimate of pair throughputs, a measurement chosen, a run time from history.

python -m benchmarks.beliefs

CPU time on one thread; the goals are beside. Run times need Philly's trace below EUNOMIA_DATA, else ../shared/data.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np

from benchmarks.philly import TRACE, data_folder
from benchmarks.side_by_side import on_one_thread
from eunomia.inputs.open_table import read_table
from eunomia.model.arrays import Floats
from eunomia.throughputs.estimators.pair_estimator import PairEstimator
from eunomia.throughputs.estimators.pair_table import JobFeatures
from eunomia_reproduction.run_time_scores import replay

KINDS, TYPES, JOBS, REFERENCES = (
    26,
    4,
    2_048,
    16,
)  # kinds: Gavel's 26 models and batch sizes, whatever the number of jobs
GOALS = {"update": 5.0, "estimate": 20.0, "choose": None, "run_time": 0.05}  # ms


def beliefs() -> PairEstimator:
    """Return an estimator that knows all pairs of the references."""
    rng = np.random.default_rng(0)
    speed = rng.normal(0.0, 0.5, (KINDS, TYPES))
    features = JobFeatures(np.arange(KINDS) // 4, np.arange(KINDS) % 4.0, speed - speed.mean(axis=1, keepdims=True))
    found = PairEstimator(features)
    kept = rng.uniform(0.3, 1.0, (REFERENCES, TYPES, REFERENCES))
    found.observe_references(np.arange(REFERENCES), kept, 0.2, rng)
    return found


def estimate(known: PairEstimator, kinds: Floats) -> Floats:
    """Return a fresh estimate of every job on every type beside every kind: medians and ends, (3, job, type, kind)."""
    found = known.estimate()
    return np.stack([each[kinds] for each in (found.median, found.low, found.high)])


def run_time_ms() -> float:
    """Return the milliseconds that the history takes for each job of Philly's trace: estimated, ended, learnt."""
    path = data_folder() / TRACE
    table = read_table(path, path.name).stripped()
    submitted, sizes, spans = (np.array(table.text(name), dtype=float) for name in ("submit_s", "gpus", "span_s"))
    tenants, sizes = table.text("vc"), np.maximum(sizes, 1.0)
    rows = [submitted, spans, tenants, sizes.astype(int).tolist(), [""] * len(tenants)]
    replay(*(column[:100] for column in rows))  # loads what numba compiled
    return _ms(lambda: replay(*rows)) / len(tenants)


def _ms(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return 1000 * (time.process_time() - before)


def main() -> None:
    """Measure each, and print a line of JSON."""
    known = beliefs()
    kinds = np.arange(JOBS) % KINDS
    cells = [(KINDS - 1, w, k) for w in range(TYPES) for k in range(8)]
    learning = known.copy()
    learning.observe(KINDS - 1, 0, 0, 0.7)  # loads what numba compiled
    work: dict[str, Callable[[], object]] = {
        "update": lambda: learning.observe(KINDS - 1, 1, 1, 0.7),
        "estimate": lambda: estimate(known, kinds),
        "choose": lambda: known.most_telling(cells, KINDS - 1, KINDS - 2),
    }
    found = {name: float(np.median([_ms(each) for _ in range(9)])) for name, each in work.items()}
    found["run_time"] = run_time_ms()
    for name, ms in found.items():
        goal = "" if GOALS[name] is None else f", goal {GOALS[name]} ms"
        print(f"{name:<10} {ms:9.4f} ms{goal}")
    print(json.dumps({name: round(ms, 4) for name, ms in found.items()}))


if __name__ == "__main__":
    on_one_thread()
    main()
