"""The folder of a sweep: a folder for each finished run, written atomically, and the failures.

swept.toml       the sweep file of the last invocation
runs/HASH/       summary.json, tenants.csv, service.json, timing.json, notes.json, scenario.toml, and on request the
                 other tables;
                 unfinished.json with reasons if jobs are unfinished; of a trace of eight days or more resamples.json,
                 its measures in resamples of its weeks
errors/HASH.json the error of a failed run
"""

from __future__ import annotations

import csv
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.inputs.atomic_write import replacing_folder, write_whole
from eunomia.inputs.disk_errors import DISK
from eunomia.model.arrays import Floats
from eunomia.runs.report_input import run_figures
from eunomia.runs.result_files import write_json
from eunomia.runs.results_dir import refused_out
from eunomia.runs.scenario_variants import spelling
from eunomia.runs.simulation import Result
from eunomia.scenario import Scenario
from eunomia.scenario.writing import as_toml, with_absolute_paths
from eunomia.verdict.judgement import resamples

TABLES = ("jobs.csv", "apps.csv")  # kept on request
TENANTS = "tenants.csv"
SCENARIO = "scenario.toml"
MARKER = "swept.toml"  # in every folder of a sweep
ANOTHER = "give another folder"
SERVICE = "service.json"  # for the price of fairness
UNFINISHED = "unfinished.json"
RESAMPLES = "resamples.json"
DIGITS = 7  # of a measure in a resample


def check_place(out: Path) -> None:
    """Raise InvalidInput when `out` holds something else than a sweep, or cannot be a folder."""
    above = next(place for place in (out, *out.absolute().parents) if place.exists() or place.is_symlink())
    if not above.is_dir():
        raise refused_out(out, f"there is a file on the way, {above}" if above != out else "it is a file", ANOTHER)
    if out.is_dir() and not (out / MARKER).is_file() and any(out.iterdir()):
        raise refused_out(out, "the folder holds something else than a sweep", f"{ANOTHER}; nothing was changed")


def remove_runs(out: Path) -> None:
    """Remove the runs and the failures of a sweep, so that it begins anew; nothing where there is no sweep."""
    if (out / MARKER).is_file():
        for part in ("runs", "errors"):
            shutil.rmtree(out / part, ignore_errors=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Resamples:
    """The measures of a run in resamples of its jobs; runs of equal `basis` have the same resamples."""

    basis: str  # `12 resampled weeks`
    values: Mapping[str, Floats]  # name of summary.json → (resample,)


class Store:
    """The stored runs of a sweep, by scenario hash."""

    def __init__(self, out: Path):
        self._runs, self._errors = out / "runs", out / "errors"
        self.out = out

    @contextmanager
    def opened(self, sweep: str) -> Iterator[None]:
        """Make and lock the folder; remove drafts of a killed sweep. `sweep` is the text of the sweep file."""
        check_place(self.out)
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            self._errors.mkdir(exist_ok=True)
            write_whole(self.out / MARKER, sweep.encode())
        except OSError as error:
            if error.errno in DISK:
                raise
            raise refused_out(self.out, f"it cannot be written ({error.strerror})", ANOTHER) from error
        with self._lock():
            self._remove_drafts()
            try:
                yield
            finally:
                self._remove_drafts()

    def holds(self, file: str | None) -> bool:
        """Whether a file belongs to the sweep; True for None, as a failed write does not name its file."""
        return file is None or Path(file).resolve().is_relative_to(self.out.resolve())

    def _remove_drafts(self) -> None:
        for draft in self._runs.glob(".*"):
            shutil.rmtree(draft, ignore_errors=True)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Lock the folder; the operating system releases the lock when the process ends."""
        folder = os.open(self._runs, os.O_RDONLY)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise refused_out(self.out, "another sweep is running in this folder", "wait for it") from error
            yield
        finally:
            os.close(folder)

    def finished(self, scenario_hash: str, *, jobs: bool = False) -> bool:
        """Whether a run is done, with `jobs` including a stored jobs.csv."""
        names = (SERVICE, "jobs.csv" if jobs else "summary.json")
        return all((self._runs / scenario_hash / name).is_file() for name in names)

    def task(self, scenario_hash: str, scenario: Scenario, *, jobs: bool = False) -> dict[str, Any]:
        """Return the task of a worker: the run to make and where to write it."""
        return {
            "hash": scenario_hash,
            "scenario": scenario.as_dict(),
            "toml": as_toml(with_absolute_paths(scenario)),  # as it is here: a run may be made elsewhere
            "base": str(scenario.base),
            "name": scenario.name,
            "out": str(self.out.resolve()),
            "keep_jobs": jobs,
        }

    def write(self, task: Mapping[str, Any], result: Result) -> None:
        """Write the finished run of a task atomically."""
        with replacing_folder(self._runs / task["hash"]) as draft:  # one without jobs.csv may be there
            _fill(draft, result, jobs=task["keep_jobs"])
            (draft / SCENARIO).write_text(task["toml"], encoding="utf-8")

    def keep(self, scenario_hash: str, files: Mapping[str, bytes]) -> None:
        """Write a run that was made elsewhere, atomically; files by name."""
        with replacing_folder(self._runs / scenario_hash) as draft:
            for name, content in files.items():
                (draft / name).write_bytes(content)

    def summary(self, scenario_hash: str) -> dict[str, float | int | None]:
        """Return the numbers of a finished run."""
        return dict(self._read(scenario_hash, "summary.json"))

    def tenants(self, scenario_hash: str) -> list[dict[str, str]]:
        """Return the rows of tenants.csv of a finished run; none of a run that an earlier version made."""
        path = self._runs / scenario_hash / TENANTS
        if not path.is_file():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def service_s(self, scenario_hash: str) -> float:
        """Return the accelerator-seconds that the jobs of a finished run held."""
        return float(self._read(scenario_hash, SERVICE)["attained_service_s"])

    def offered_load(self, scenario_hash: str) -> float | None:
        """Return the offered load of a finished run; None where it is unknown."""
        found = self._read(scenario_hash, SERVICE).get("offered_load")
        return None if found is None else float(found)

    def timing(self, scenario_hash: str) -> dict[str, Any]:
        """Return the numbers of timing.json of a finished run."""
        return dict(self._read(scenario_hash, "timing.json"))

    def notes(self, scenario_hash: str) -> list[str]:
        """Return the notes of a finished run."""
        return list(self._read(scenario_hash, "notes.json"))

    def unfinished(self, scenario_hash: str) -> list[str]:
        """Return why jobs of a run are unfinished; nothing when all finished."""
        exists = (self._runs / scenario_hash / UNFINISHED).is_file()
        return list(self._read(scenario_hash, UNFINISHED)) if exists else []

    def resamples(self, scenario_hash: str) -> Resamples | None:
        """Return the measures of a run in resamples of the weeks of its trace; None where there are none."""
        if not (self._runs / scenario_hash / RESAMPLES).is_file():
            return None
        found = self._read(scenario_hash, RESAMPLES)
        return Resamples(basis=found["basis"], values={n: np.array(x) for n, x in found["values"].items()})

    def _read(self, scenario_hash: str, name: str) -> Any:
        return json.loads((self._runs / scenario_hash / name).read_text(encoding="utf-8"))

    def write_failure(self, scenario_hash: str, failure: Mapping[str, object]) -> None:
        """Write the error of a failed run."""
        content = json.dumps(dict(failure), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        write_whole(self._errors / f"{scenario_hash}.json", content.encode())

    def remove_failure(self, scenario_hash: str) -> None:
        """Remove the earlier failure of a run, if any."""
        (self._errors / f"{scenario_hash}.json").unlink(missing_ok=True)


def _fill(draft: Path, result: Result, *, jobs: bool) -> None:
    """Write the files of a run."""
    result.write(draft)
    if not jobs:
        for name in TABLES:
            (draft / name).unlink(missing_ok=True)
    service_s = float(result.jobs["attained_service_s"].sum())
    write_json(draft / SERVICE, {"attained_service_s": service_s, "offered_load": result.offered_load})
    if result.scenario.workload.trace is not None:
        basis, measures = resamples(run_figures(result, ""))
        values = {name: [float(f"{x:.{DIGITS}g}") for x in found.tolist()] for name, found in measures.items()}
        if values:
            write_json(draft / RESAMPLES, {"basis": basis, "values": values})
    notes = (*result.notes, *(f"{spelling(result.scenario)}: {line}" for line in result.endings))
    texts = {"notes.json": notes} | ({UNFINISHED: result.unfinished} if result.unfinished else {})
    for name, lines in texts.items():
        (draft / name).write_text(json.dumps(lines, indent=2, ensure_ascii=False), encoding="utf-8")
