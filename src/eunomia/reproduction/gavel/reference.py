"""Reads a folder of Gavel's own results: runs, round logs, throughputs and traces, laid out like data/gavel."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eunomia.model.problems import InvalidInput, Problem, Problems

RESULTS, LOGS, THROUGHPUTS = "reference_results.json", "round_logs.json.gz", "simulation_throughputs.json.gz"
_KINDS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "policy": str,
    "policy_name": str,
    "cluster": dict,
    "gpus_per_server": dict,
    "seed": int,
    "round_seconds": (int, float),
    "global_queue": bool,
    "jct": dict,
    "average_jct": (int, float),
    "makespan": (int, float),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of Gavel's simulator as its file tells it; `said` holds every field."""

    said: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.said[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def window(self) -> tuple[int, int] | None:
        """Return the measured jobs [first, end), None = all."""
        window = self.said.get("window")
        return None if window is None else (int(window[0]), int(window[1]))


@dataclass(frozen=True, slots=True)
class Reference:
    """A folder of results, read. `logs` holds the events of each run that was logged, by its id."""

    folder: Path
    runs: tuple[Run, ...]
    logs: Mapping[str, list[dict[str, Any]]]
    prices: Mapping[str, float]  # US$ per accelerator-hour


def read_reference(folder: Path) -> Reference:
    """Return what the folder holds. Raises InvalidInput for what is missing or not as it should be."""
    results = _json(folder / RESULTS)
    problems = Problems(str(folder / RESULTS))
    runs = results.get("runs")
    if not isinstance(runs, list) or not runs:
        problems.add("holds no runs", 'give {"provenance": …, "runs": [run, …]}', column="runs")
        runs = []
    for row, run in enumerate(runs, start=1):
        _check(run, row, folder, problems)
    problems.raise_if_any()
    if not (folder / THROUGHPUTS).is_file():
        raise _refusal(folder / THROUGHPUTS, "there is no such file", "give Gavel's throughput table")
    logs = _json(folder / LOGS).get("logs", {}) if (folder / LOGS).is_file() else {}
    prices = results.get("provenance", {}).get("prices_usd_per_gpu_hour", {})
    return Reference(folder, tuple(Run(run) for run in runs), logs, prices)


def _check(run: Any, row: int, folder: Path, problems: Problems) -> None:
    """Note what a run lacks."""
    if not isinstance(run, dict):
        problems.add("a run is not an object", "give an object with id, policy, cluster, …", row=row, column="runs")
        return
    name = str(run.get("id", row))
    for field, kind in _KINDS.items():
        if not isinstance(run.get(field), kind):
            problems.add(f"run {name} has no such field, or of another kind", "see data/gavel", row=row, column=field)
    trace, drawn = run.get("trace"), run.get("generated")
    if drawn is None and not (isinstance(trace, str) and (folder / "traces" / trace).is_file()):
        rule = f"run {name} names a trace that is not in traces/"
        problems.add(rule, "add the file", row=row, column="trace", value=str(trace))


def _json(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
        found = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except FileNotFoundError as error:
        raise _refusal(path, "there is no such file", "give a folder laid out like data/gavel") from error
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise _refusal(path, f"it cannot be read as JSON ({error})", "give the file whole") from error
    if not isinstance(found, dict):
        raise _refusal(path, "it holds no object", "give a folder laid out like data/gavel")
    return found


def _refusal(path: Path, rule: str, mend: str) -> InvalidInput:
    return InvalidInput([Problem(file=str(path), rule=rule, mend=mend)])
