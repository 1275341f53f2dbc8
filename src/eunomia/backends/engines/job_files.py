"""What an engine is given to run for a gang: a supervisor of ours, with its orders in a file that only we can read."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.backends.engines.engine import GangRequest, Mark
from eunomia.backends.orders import Launch
from eunomia.backends.processes.environment import environment_of
from eunomia.backends.processes.folder import folder_name
from eunomia.backends.processes.gang import SUPERVISOR
from eunomia.backends.processes.gangs import EpochFolder
from eunomia.lease import write_whole
from eunomia.model.decisions import Start
from eunomia.model.job import Job
from eunomia.model.topology import Topology

CLUSTER = "cluster_id"  # file with the first part of the marks of a folder of jobs


def cluster_id(workdir: Path) -> str:
    """Return the id of a folder of jobs, which is made once: 8 hexadecimal digits."""
    file = workdir / CLUSTER
    if not file.exists():
        write_whole(file, secrets.token_hex(4), durable=True)
    return file.read_text(encoding="utf-8").strip()


def folder_of(workdir: Path, job_id: str, epoch: int, checkpoint_dir: str = "") -> EpochFolder:
    """Return the files of one start of a job."""
    path = workdir / folder_name(job_id)
    return EpochFolder(path, Path(checkpoint_dir) if checkpoint_dir else path / "checkpoint", epoch)


def write_lease(folder: EpochFolder, stop_grace_s: float | None = None) -> None:
    """Write the lease: without an end, as the engine keeps the seats; or called back, on any machine."""
    lease: dict[str, float | None] = {"end_s": None}
    if stop_grace_s is not None:
        lease = {"end_s": 0.0, "stop": stop_grace_s}
    write_whole(folder.lease, json.dumps(lease))


def prepare(
    order: Launch, mark: Mark, folder: EpochFolder, topology: Topology, names: Mapping[int, str], grace_s: float
) -> GangRequest:
    """Write the files of a gang, and return what its engine is asked for; `names` are the engine's names of nodes."""
    folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.checkpoints.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_lease(folder)
    orders = folder.path / f"supervisor-{order.epoch}.in.json"
    draft = json.dumps(_supervisor_spec(order, folder, topology, grace_s)) + "\n"
    handle = os.open(orders, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "w", encoding="ascii") as file:
        file.write(draft)
    with open(folder.log, "ab") as log:
        log.write(f"--- epoch {order.epoch}\n".encode())
    return request_of(order, mark, folder, topology, names, grace_s)


def request_of(
    order: Launch, mark: Mark, folder: EpochFolder, topology: Topology, names: Mapping[int, str], grace_s: float
) -> GangRequest:
    """Return what an engine is asked for."""
    seats = list(order.seats)
    nodes, counts = np.unique(topology.node[seats], return_counts=True)
    parts = tuple(
        (names[int(node)], topology.types[int(topology.node_type[node])], int(count))
        for node, count in zip(nodes, counts, strict=True)
    )
    longest_s = order.spec.get("max_run_s")
    return GangRequest(
        mark=mark,
        name=f"eu-{folder_name(order.job_id)}-{order.epoch}",
        parts=parts,
        argv=(sys.executable, "-I", "-S", str(SUPERVISOR)),
        stdin=folder.path / f"supervisor-{order.epoch}.in.json",
        log=folder.log,
        grace_s=grace_s,
        cpus=float(order.spec.get("cpus", 0.0)),
        memory_gib=float(order.spec.get("memory_gib", 0.0)),
        longest_s=None if longest_s is None else float(longest_s) + grace_s,
        submission=str(order.spec.get("labels", {}).get(SUBMISSION, "")),
    )


SUBMISSION = "engine-submission"  # label of a job that a user submitted to the engine: its number there


def _supervisor_spec(order: Launch, folder: EpochFolder, topology: Topology, grace_s: float) -> dict[str, Any]:
    first, *rest = order.spec["command"]
    return {
        "command": [sys.executable if first == "python" else first, *rest],
        "cwd": order.spec.get("cwd") or str(folder.path),
        "environment": _environment(order, folder, topology),
        "lease": str(folder.lease),
        "progress": str(folder.progress),
        "exit": str(folder.exit),
        "record": str(folder.record),
        "finished": str(folder.path / "finished.json"),
        "claim": str(folder.path / f"claim-{order.epoch}"),
        "epoch": order.epoch,
        "grace_s": grace_s,
        "detached": True,
        "log": str(folder.log),
        "log_bytes": 0,
        "locks": [],
        **({"processes": len(order.seats)} if order.spec.get("processes") == "per_accelerator" else {}),
    }


def _environment(order: Launch, folder: EpochFolder, topology: Topology) -> dict[str, str]:
    """Return the variables of a gang, besides those of its engine, which says which devices are visible."""
    job = Job(job_id=order.job_id, total_steps=order.total_steps or 1.0)
    ours = environment_of(job, Start(order.job_id, order.epoch, order.seats, 0.0), topology, os.environ)
    ours.pop("CUDA_VISIBLE_DEVICES")
    ours["EUNOMIA_TOTAL_STEPS"] = repr(order.total_steps) if order.total_steps else ""
    if order.array_index is not None:
        ours["EUNOMIA_ARRAY_INDEX"] = str(order.array_index)
    files = {
        "EUNOMIA_LEASE_FILE": str(folder.lease),
        "EUNOMIA_PROGRESS_FILE": str(folder.progress),
        "EUNOMIA_CHECKPOINT_DIR": str(folder.checkpoints),
    }
    return {**ours, **order.spec.get("env", {}), **files}
