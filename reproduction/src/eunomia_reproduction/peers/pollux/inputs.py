"""Workloads and measurements of Pollux' artifact, from the tables that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from eunomia.model.arrays import Floats
from eunomia_reproduction.peers.peer_sheet import PeerSheet, read
from eunomia_reproduction.peers.pollux.profile import Profile, Validation
from eunomia_reproduction.peers.pollux.scattered import Scattered
from eunomia_reproduction.peers.pollux.training import PolluxJob

WORKLOADS = Path("traces", "pollux-workloads", "pollux_workloads.csv.gz")
MEASURED = Path("throughputs", "pollux-aws-t4")
LOAD_1 = "workloads"  # the set with load 1.0
MAX_LOCAL_BATCH = {"yolov3": 8}  # set in the simulator; of the others it is the largest that was measured


def trainings(path: Path, profiles: dict[str, Profile]) -> dict[str, list[PolluxJob]]:
    """Return the jobs of each workload at load 1.0, by the workload's name in the results."""
    sheet = read(path, numbers=("time", "num_replicas", "batch_size"), texts=("set", "workload", "name", "application"))
    found: dict[str, list[PolluxJob]] = {}
    for row, group in enumerate(sheet.texts["set"]):
        if group == LOAD_1:
            at, size, batch = (sheet.numbers[name][row] for name in ("time", "num_replicas", "batch_size"))
            found.setdefault(f"workload-{sheet.texts['workload'][row]}", []).append(
                PolluxJob(
                    name=sheet.texts["name"][row],
                    profile=profiles[sheet.texts["application"][row]],
                    submitted=at,
                    accelerators=int(size),
                    batch=int(batch),
                )
            )
    return found


def profiles(folder: Path) -> dict[str, Profile]:
    """Return the measurements of each application."""
    times = ("local_bsz", "step_time", "sync_time")
    placed = read(folder / "placements.csv.gz", numbers=times, texts=("model", "placement"))
    wide = read(folder / "scalability.csv.gz", numbers=("num_nodes", "num_replicas", *times), texts=("model",))
    columns = ("batch_size", "progress", "iteration", "grad_sqr", "grad_var")
    runs = read(folder / "validation.csv.gz", numbers=columns, texts=("model",))
    return {name: _profile(name, placed, wide, runs) for name in sorted(set(placed.texts["model"]))}


def _profile(name: str, placed: PeerSheet, wide: PeerSheet, runs: PeerSheet) -> Profile:
    near, far, trained = (_of(sheet, name) for sheet in (placed, wide, runs))
    placements = [tuple(map(int, placed.texts["placement"][row])) for row in near]
    batch, times = _column(placed, near, "local_bsz"), _times(placed, near)
    by_placement = {
        placement: (batch[same], times[same])
        for placement in dict.fromkeys(placements)
        for same in [[i for i, other in enumerate(placements) if other == placement]]
    }
    shape = np.array([(len(placement), sum(placement)) for placement in placements], dtype=np.float64)
    points, means = _averaged(np.column_stack([shape, batch]), times)
    far_points = np.column_stack([_column(wide, far, key) for key in ("num_nodes", "num_replicas", "local_bsz")])
    return Profile(
        name=name,
        validation=_validation(runs, trained),
        placed=by_placement,
        elsewhere=Scattered(np.vstack([points, far_points]), np.vstack([means, _times(wide, far)])),
        max_local_batch=MAX_LOCAL_BATCH.get(name, int(batch.max())),
    )


def _validation(runs: PeerSheet, rows: list[int]) -> dict[int, Validation]:
    batch = _column(runs, rows, "batch_size")
    return {
        int(size): Validation(
            **{
                key: _column(runs, [row for row, of in zip(rows, batch, strict=True) if of == size], key)
                for key in ("progress", "iteration", "grad_sqr", "grad_var")
            }
        )
        for size in np.unique(batch)
    }


def _averaged(points: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Return each point once, (point, 3), with the mean of its times, (point, 2)."""
    once, place = np.unique(points, axis=0, return_inverse=True)
    counts = np.bincount(place, minlength=len(once))
    sums = np.column_stack([np.bincount(place, weights=times[:, k], minlength=len(once)) for k in (0, 1)])
    return once, sums / counts[:, None]


def _of(sheet: PeerSheet, name: str) -> list[int]:
    return [row for row, model in enumerate(sheet.texts["model"]) if model == name]


def _column(sheet: PeerSheet, rows: Iterable[int], name: str) -> Floats:
    return np.array([sheet.numbers[name][row] for row in rows])


def _times(sheet: PeerSheet, rows: list[int]) -> Floats:
    return np.column_stack([_column(sheet, rows, "step_time"), _column(sheet, rows, "sync_time")])
