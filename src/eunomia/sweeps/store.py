"""The folder of a sweep: a folder for each finished run, whole or not at all, and what failed.

sweep.toml       the sweep as it was last run
runs/HASH/       summary.json, service.json, timing.json, notes.json, scenario.toml, and on request the tables;
                 unfinished.json where jobs were left unfinished: why
errors/HASH.json why a run failed
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.disk_errors import DISK
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.runs.result_files import write_json
from eunomia.runs.scenario_variants import spelling
from eunomia.runs.simulation import Result
from eunomia.scenario import Scenario
from eunomia.scenario.writing import as_toml

TABLES = ("jobs.csv", "tenants.csv", "apps.csv")
MARK = "swept.toml"  # what tells a folder that a sweep wrote from any other
ANOTHER = "give another folder"
SERVICE = "service.json"  # what fairness costs is reckoned from it
UNFINISHED = "unfinished.json"


def check_place(out: Path) -> None:
    """Raise InvalidInput when `out` is no place for a sweep: it holds something else, or cannot be a folder."""
    above = next(place for place in (out, *out.absolute().parents) if place.exists() or place.is_symlink())
    if not above.is_dir():
        raise _refusal(out, f"there is a file on the way, {above}" if above != out else "it is a file", ANOTHER)
    if out.is_dir() and not (out / MARK).is_file() and any(out.iterdir()):
        raise _refusal(out, "the folder holds something else than a sweep", f"{ANOTHER}; nothing was changed")


def _refusal(out: Path, rule: str, fix: str) -> InvalidInput:
    return InvalidInput([Problem(file=str(out), column="--out", rule=rule, fix=fix)])


class Store:
    """What is known of the runs, by scenario hash."""

    def __init__(self, out: Path):
        self._runs, self._errors = out / "runs", out / "errors"
        self.out = out

    @contextmanager
    def opened(self, sweep: str) -> Iterator[None]:
        """Make the folder and keep other sweeps out of it; what a killed sweep left half-written is removed.

        `sweep` is kept as what was last asked for.
        """
        check_place(self.out)
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            self._errors.mkdir(exist_ok=True)
            write_whole(self.out / MARK, sweep.encode())
        except OSError as error:
            if error.errno in DISK:
                raise
            raise _refusal(self.out, f"it cannot be written ({error.strerror})", ANOTHER) from error
        with self._lock():
            self._remove_drafts()
            try:
                yield
            finally:
                self._remove_drafts()

    def holds(self, file: str | None) -> bool:
        """Say whether a file is one of the sweep's; a write that fails does not say which it was."""
        return file is None or Path(file).resolve().is_relative_to(self.out.resolve())

    def _remove_drafts(self) -> None:
        for draft in self._runs.glob(".*"):
            shutil.rmtree(draft, ignore_errors=True)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the folder; the lock goes with the process, however that ends."""
        folder = os.open(self._runs, os.O_RDONLY)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise _refusal(self.out, "another sweep is running in this folder", "wait for it") from error
            yield
        finally:
            os.close(folder)

    def finished(self, scenario_hash: str, *, jobs: bool = False) -> bool:
        """Return whether a run is done; with `jobs` only when its jobs.csv was kept."""
        names = (SERVICE, "jobs.csv" if jobs else "summary.json")
        return all((self._runs / scenario_hash / name).is_file() for name in names)

    def task(self, scenario_hash: str, scenario: Scenario, *, jobs: bool = False) -> dict[str, Any]:
        """Return what a worker needs to know of a run that it is to make and write here."""
        return {
            "hash": scenario_hash,
            "scenario": scenario.as_dict(),
            "base": str(scenario.base),
            "name": scenario.name,
            "out": str(self.out.resolve()),
            "keep_jobs": jobs,
        }

    def write(self, scenario_hash: str, result: Result, *, jobs: bool) -> None:
        """Write a finished run, whole or not at all."""
        draft = self._runs / f".{scenario_hash}.{os.getpid()}"
        draft.mkdir()
        try:
            self._fill(draft, result, jobs=jobs)
            place = self._runs / scenario_hash
            if place.exists():  # without its jobs
                shutil.rmtree(place)
            draft.rename(place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)  # unless it has its place

    def _fill(self, draft: Path, result: Result, *, jobs: bool) -> None:
        """Write the files of a run."""
        result.write(draft)
        if not jobs:
            for name in TABLES:
                (draft / name).unlink(missing_ok=True)
        write_json(draft / SERVICE, {"attained_service_s": float(result.jobs["attained_service_s"].sum())})
        notes = (*result.notes, *(f"{spelling(result.scenario)}: {said}" for said in result.endings))
        (draft / "notes.json").write_text(json.dumps(notes, indent=2, ensure_ascii=False), encoding="utf-8")
        if result.unfinished:
            text = json.dumps(result.unfinished, indent=2, ensure_ascii=False)
            (draft / UNFINISHED).write_text(text, encoding="utf-8")
        (draft / "scenario.toml").write_text(as_toml(result.scenario), encoding="utf-8")

    def summary(self, scenario_hash: str) -> dict[str, float | int | None]:
        """Return the numbers of a finished run."""
        return dict(self._read(scenario_hash, "summary.json"))

    def service_s(self, scenario_hash: str) -> float:
        """Return the accelerator-seconds that the jobs of a finished run held."""
        return float(self._read(scenario_hash, SERVICE)["attained_service_s"])

    def timing(self, scenario_hash: str) -> dict[str, Any]:
        """Return what a finished run cost."""
        return dict(self._read(scenario_hash, "timing.json"))

    def notes(self, scenario_hash: str) -> list[str]:
        """Return what the numbers of a finished run rest on."""
        return list(self._read(scenario_hash, "notes.json"))

    def unfinished(self, scenario_hash: str) -> list[str]:
        """Return why a run left jobs unfinished; nothing when it did not."""
        there = (self._runs / scenario_hash / UNFINISHED).is_file()
        return list(self._read(scenario_hash, UNFINISHED)) if there else []

    def _read(self, scenario_hash: str, name: str) -> Any:
        return json.loads((self._runs / scenario_hash / name).read_text(encoding="utf-8"))

    def fail(self, scenario_hash: str, told: Mapping[str, object]) -> None:
        """Keep why a run failed."""
        content = json.dumps(dict(told), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        write_whole(self._errors / f"{scenario_hash}.json", content.encode())

    def forget_failure(self, scenario_hash: str) -> None:
        """Forget an earlier failure of a run that is done now, or is tried again."""
        (self._errors / f"{scenario_hash}.json").unlink(missing_ok=True)
