"""Environment variables of a job's processes: some inherited ones, and those that Eunomia sets.

Others are removed, so that tokens in the scheduler's environment do not reach jobs. A job sets more in its command:
`["env", "NAME=value", "python", "train.py"]`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from eunomia.backends.orders import Launch
from eunomia.backends.processes.folder import JobFolder
from eunomia.model.topology import Topology

SEARCHED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")  # lists of folders
PERSON = {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"}
LIBRARIES = {"VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME"}
THREADS = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"}
INHERITED = frozenset(SEARCHED) | PERSON | LIBRARIES | THREADS
INHERITED_PREFIXES = ("LC_", "NCCL_")
NO_DEVICE = "cpu"  # an accelerator type without devices, for trying things out


def environment_of(
    order: Launch, folder: JobFolder, topology: Topology, inherited: Mapping[str, str], more: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a gang: inherited ones, its place, the job's own, those with file names, and `more`."""
    inherited_here = {
        name: _absolute_paths(value) if name in SEARCHED else value
        for name, value in inherited.items()
        if name in INHERITED or name.startswith(INHERITED_PREFIXES)
    }
    seats = sorted(order.seats)
    types = dict.fromkeys(topology.types[j] for j in topology.type[seats].tolist())
    ours = inherited_here | {
        "PYTHONUNBUFFERED": "1",  # so that the log of a killed job is complete
        "EUNOMIA_JOB_ID": order.job_id,
        "EUNOMIA_EPOCH": str(order.epoch),
        "EUNOMIA_SCALE_FACTOR": str(len(seats)),
        "EUNOMIA_SHAPE": str(order.shape),
        "EUNOMIA_ACCELERATOR_TYPE": ",".join(types),
        "EUNOMIA_SEATS": ",".join(map(str, seats)),
        "EUNOMIA_TOTAL_STEPS": repr(order.total_steps) if order.total_steps else "",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(visible_devices(topology, seats, inherited)),
    }
    if order.array_index is not None:
        ours["EUNOMIA_ARRAY_INDEX"] = str(order.array_index)
    if folder.account is not None:
        ours = folder.account.environment(ours)
    files = {
        "EUNOMIA_LEASE_FILE": str(folder.lease),
        "EUNOMIA_PROGRESS_FILE": str(folder.progress),
        "EUNOMIA_CHECKPOINT_DIR": str(folder.checkpoints),
    }
    return {**ours, **order.spec.get("env", {}), **files, **more}


def _absolute_paths(folders: str) -> str:
    """Return a list of folders with absolute paths, as jobs start in another folder."""
    return os.pathsep.join(os.path.abspath(folder) for folder in folders.split(os.pathsep) if folder)


def visible_devices(topology: Topology, seats: list[int], inherited: Mapping[str, str]) -> list[str]:
    """Return the CUDA devices of seats: the n-th seat of a type other than `cpu` is the scheduler's n-th device."""
    real = np.array([topology.types[j] != NO_DEVICE for j in topology.type.tolist()])
    number = np.cumsum(real) - 1
    given = given_devices(inherited)
    return [str(number[seat]) if given is None else given[number[seat]] for seat in seats if real[seat]]


def given_devices(inherited: Mapping[str, str]) -> list[str] | None:
    """Return the devices that the scheduler may use; None = all."""
    names = inherited.get("CUDA_VISIBLE_DEVICES")
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]
