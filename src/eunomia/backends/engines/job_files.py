"""What an engine is given to run for a gang: a supervisor of ours, with its orders in a file that only we can read."""

from __future__ import annotations

import json
import math
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
from eunomia.backends.processes.folder import JobFolder, folder_name
from eunomia.backends.processes.gangs import SUPERVISOR
from eunomia.backends.processes.plain_files import open_anew
from eunomia.lease import write_whole
from eunomia.model.topology import Topology

CLUSTER = "cluster_id"  # file with the first part of the marks of a folder of jobs


def cluster_id(workdir: Path) -> str:
    """Return the id of a folder of jobs, which is made once: 8 hexadecimal digits."""
    file = workdir / CLUSTER
    if not file.exists():
        write_whole(file, secrets.token_hex(4), durable=True)
    return file.read_text(encoding="utf-8").strip()


def write_lease(folder: JobFolder, stop_grace_s: float | None = None) -> None:
    """Write the lease: without an end, as the engine keeps the seats; or called back, on any machine."""
    folder.write_lease(math.inf if stop_grace_s is None else 0.0, stop_grace_s)


def prepare(
    order: Launch, mark: Mark, folder: JobFolder, topology: Topology, names: Mapping[int, str], grace_s: float
) -> GangRequest:
    """Write the files of a gang, and return what its engine is asked for; `names` are the engine's names of nodes."""
    folder.make(0o700)
    write_lease(folder)
    orders = folder.path / f"supervisor-{order.epoch}.in.json"
    draft = json.dumps(_supervisor_spec(order, folder, topology, grace_s)) + "\n"
    with open(open_anew(orders, os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(draft)
    os.close(folder.begin_log())
    return request_of(order, mark, folder, topology, names, grace_s)


def request_of(
    order: Launch, mark: Mark, folder: JobFolder, topology: Topology, names: Mapping[int, str], grace_s: float
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


def _supervisor_spec(order: Launch, folder: JobFolder, topology: Topology, grace_s: float) -> dict[str, Any]:
    first, *rest = order.spec["command"]
    environment = environment_of(order, folder, topology, os.environ, {})
    if "CUDA_VISIBLE_DEVICES" not in order.spec.get("env", {}):
        environment.pop("CUDA_VISIBLE_DEVICES")  # its engine says which devices are visible
    return {
        "command": [sys.executable if first == "python" else first, *rest],
        "cwd": order.spec.get("cwd") or str(folder.path),
        "environment": environment,
        "lease": str(folder.lease),
        "exit": str(folder.exit),
        "record": str(folder.record),
        "finished": str(folder.path / "finished.json"),
        "claim": str(folder.path / f"claim-{order.epoch}"),
        "epoch": order.epoch,
        "grace_s": grace_s,
        "log": str(folder.log),
        **({"errors": str(folder.errors)} if order.spec.get("stderr") == "apart" else {}),
        "log_bytes": 0,
        "locks": [],
        **({"processes": len(order.seats)} if order.spec.get("processes") == "per_accelerator" else {}),
    }
