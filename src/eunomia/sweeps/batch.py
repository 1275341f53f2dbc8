"""Runs scenarios from Python in parallel."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from eunomia.runs.fingerprint import scenario_hash
from eunomia.scenario import Scenario
from eunomia.sweeps.pool import Answer, Pool, Task
from eunomia.sweeps.store import Store


class RunsFailed(RuntimeError):
    """Some runs failed; the others are done."""


def simulate_many(
    scenarios: Sequence[Scenario], *, workers: int, folder: Path | None = None
) -> list[dict[str, float | int | None]]:
    """Return the numbers of summary.json of each scenario, run in `workers` processes.

    With `folder` runs are stored there, and stored runs are not repeated. Raises RunsFailed after all runs have ended
    if one failed, and InvalidInput if `folder` cannot be used.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return simulate_many(scenarios, workers=workers, folder=Path(temporary) / "runs")
    store, failed = Store(folder), dict[str, str]()

    def on_answer(task: Task, answer: Answer) -> None:
        if "error" in answer:
            failed[task["hash"]] = answer["error"]

    hashes = [scenario_hash(scenario) for scenario in scenarios]
    by_hash = dict(zip(hashes, scenarios, strict=True))
    with store.opened(""), Pool(workers) as pool:
        pool.run([store.task(key, one) for key, one in by_hash.items() if not store.finished(key)], on_answer)
        if failed:
            raise RunsFailed("; ".join(f"{by_hash[key].name}: {error}" for key, error in failed.items()))
        return [store.summary(key) for key in hashes]
