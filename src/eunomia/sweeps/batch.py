"""Scenarios made in Python, run side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from eunomia.scenario import Scenario
from eunomia.sweeps.fingerprint import scenario_hash
from eunomia.sweeps.pool import Answer, Pool, Task
from eunomia.sweeps.store import Store


class RunsFailed(RuntimeError):
    """Some of many runs failed; the others are done."""


def simulate_many(
    scenarios: Sequence[Scenario], *, workers: int, folder: Path | None = None
) -> list[dict[str, float | int | None]]:
    """Return the numbers of summary.json of each scenario, run in so many processes.

    With `folder` the runs are kept there, and those that it has are not made again. Raises RunsFailed when one failed,
    after all have ended, and InvalidInput when `folder` is no place for them.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return simulate_many(scenarios, workers=workers, folder=Path(made) / "runs")
    store, failed = Store(folder), dict[str, str]()

    def hear(task: Task, answer: Answer) -> None:
        if "error" in answer:
            failed[task["hash"]] = answer["error"]

    hashes = [scenario_hash(scenario) for scenario in scenarios]
    by_hash = dict(zip(hashes, scenarios, strict=True))
    with store.opened(""), Pool(workers) as pool:
        pool.run([store.task(key, one) for key, one in by_hash.items() if not store.finished(key)], hear)
        if failed:
            raise RunsFailed("; ".join(f"{by_hash[key].name}: {why}" for key, why in failed.items()))
        return [store.summary(key) for key in hashes]
