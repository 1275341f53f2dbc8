"""Reads a folder of Gavel's own results: runs, round logs, throughputs and traces, laid out like data/gavel."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem, Problems
from eunomia_reproduction.gavel.checking import ALPHA, check_log, check_prices, check_run

RESULTS, LOGS, THROUGHPUTS = "reference_results.json", "round_logs.json.gz", "simulation_throughputs.json.gz"
Log = list[dict[str, Any]]  # events


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
    def family(self) -> str:
        """Return the policy without its parameter: `allox` for `allox_alpha=0.2`."""
        return str(self.policy).partition(ALPHA)[0]

    @property
    def alpha(self) -> float | None:
        """Return the policy's parameter; None where its name has none."""
        alpha = str(self.policy).partition(ALPHA)[2]
        return float(alpha) if alpha else None

    @property
    def ideal(self) -> bool:
        """Say whether its shares were given out as a fluid, without rounds."""
        return bool((self.said.get("generated") or {}).get("ideal"))

    @property
    def leases_renewed(self) -> float | None:
        """Return which part of the leases that could be renewed were; None where none could, or it is not said."""
        possible = self.said.get("lease_opportunities")
        renewed = self.said.get("lease_extensions")
        return renewed / possible if possible and renewed is not None else None

    @property
    def window(self) -> tuple[int, int] | None:
        """Return the measured jobs [first, end), None = all."""
        window = self.said.get("window")
        return None if window is None else (int(window[0]), int(window[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A folder of results, read. What cannot be used is in `failed`: by the name of the run or log, why."""

    folder: Path  # absolute
    runs: tuple[Run, ...]
    logs: Mapping[str, Log]  # of each run that was logged, by its id
    prices: Mapping[str, float]  # US$ per accelerator-hour
    failed: Mapping[str, InvalidInput]
    notes: tuple[str, ...] = ()


def read_reference(folder: Path) -> Reference:
    """Return what the folder holds. Raises InvalidInput for a file that cannot be used, or holds no run that can."""
    folder = folder.absolute()
    results = _json(folder / RESULTS)
    prices = _prices(results, folder / RESULTS)
    runs, failed = _runs(results, folder)
    if not (folder / THROUGHPUTS).is_file():
        raise _refusal(folder / THROUGHPUTS, "there is no such file", "give Gavel's throughput table")
    named = [run.id for run in runs]
    logs, orphans = _logs(folder / LOGS, {*named, *failed}) if (folder / LOGS).is_file() else ({}, [])
    for name, events in logs.items():
        problems = Problems(str(folder / LOGS))
        check_log(events, name, problems)
        if problems.count:
            failed[f"{name} log"] = InvalidInput(problems.kept, problems.count)
    sound = {name: events for name, events in logs.items() if f"{name} log" not in failed}
    notes = (f"logs of no run in {RESULTS}, not compared: {', '.join(orphans)}",) if orphans else ()
    return Reference(folder=folder, runs=tuple(runs), logs=sound, prices=prices, failed=failed, notes=notes)


def _runs(results: Mapping[str, Any], folder: Path) -> tuple[list[Run], dict[str, InvalidInput]]:
    """Return the runs that can be played, and what is wrong with the others. Raises InvalidInput if all are wrong."""
    said, file = results.get("runs"), folder / RESULTS
    if not isinstance(said, list) or not said:
        raise _refusal(file, "must be a list that holds runs", 'give {"provenance": …, "runs": [run, …]}', "runs")
    runs: list[Run] = []
    failed: dict[str, InvalidInput] = {}
    first: dict[str, int] = {}  # row in which an id stands first
    for row, run in enumerate(said, start=1):
        problems = Problems(str(file))
        name = _check(run, row, first, folder, problems)
        if problems.count:
            failed[name] = InvalidInput(problems.kept, problems.count)
        else:
            runs.append(Run(run))
    if not runs:
        kept = [problem for error in failed.values() for problem in error.problems]
        raise InvalidInput(kept, sum(error.count for error in failed.values()))
    return runs, failed


def _check(run: Any, row: int, first: dict[str, int], folder: Path, problems: Problems) -> str:
    """Note what is wrong with a run; return what it is called. `first` remembers its id."""
    if not isinstance(run, dict):
        problems.add("a run must be an object", "give an object with id, policy, cluster, …", row=row, column="runs")
        return f"run {row}"
    name = run["id"] if isinstance(run.get("id"), str) and run["id"] else f"run {row}"
    check_run(run, name, row, folder, problems)
    if first.setdefault(name, row) == row:
        return name
    rule, fix = f"is the id of run {first[name]} too", "give each run a name of its own"
    problems.add(rule, fix, row=row, column="id", value=name)
    return f"{name}, run {row}"


def _prices(results: Mapping[str, Any], file: Path) -> dict[str, float]:
    """Return what an hour of each type costs; nothing when the file does not say."""
    provenance = results.get("provenance")
    if provenance is not None and not isinstance(provenance, dict):
        raise _refusal(file, "must be an object", "give an object, or leave it out", "provenance")
    prices = (provenance or {}).get("prices_usd_per_gpu_hour")
    problems = Problems(str(file))
    if prices is not None:
        check_prices(prices, problems)
    problems.raise_if_any()
    return dict(prices or {})


def _logs(file: Path, names: set[str]) -> tuple[dict[str, Log], list[str]]:
    """Return the logs of the runs called `names`, and what the others are called."""
    logs = _json(file).get("logs")
    if not isinstance(logs, dict):
        raise _refusal(file, "must be an object", 'give {"logs": {run id: [event, …]}}', "logs")
    return {name: log for name, log in logs.items() if name in names}, [name for name in logs if name not in names]


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


def _refusal(path: Path, rule: str, fix: str, column: str | None = None) -> InvalidInput:
    return InvalidInput([Problem(file=str(path), column=column, rule=rule, fix=fix)])
