"""Holders of accelerators, and answers that grant accelerators to whole gangs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.view import View

FREE, LOST = -1, -2  # entries of View.holder that are no job


def held_by(holder: Ints, jobs: Bools) -> Bools:
    """Return which devices some jobs, (job,), hold, (device,); holder (device,) as in the view."""
    return np.append(jobs, (False, False))[holder]  # FREE and LOST index the last two


def devices_by_job(holder: Ints, jobs: Bools) -> tuple[Ints, Ints]:
    """Return the devices that some jobs, (job,), hold, job by job, and where those of each job begin, (job + 1,)."""
    device = np.flatnonzero(held_by(holder, jobs))
    device = device[np.argsort(holder[device], kind="stable")]
    return device, np.searchsorted(holder[device], np.arange(len(jobs) + 1))


class GrantsBuilder:
    """The gangs of an answer and the devices that each is given: all of a gang's, or none."""

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self._types: list[int] = []
        self.devices: list[Ints] = []
        self._until: list[float] = []

    def give(self, job: int, type: int, devices: Ints, until: float = math.nan) -> None:
        """Grant a gang its devices until then; nan = as long as the mechanism says."""
        self.jobs.append(job)
        self._types.append(type)
        self.devices.append(devices)
        self._until.append(until)

    def sizes(self) -> Ints:
        """Return how many devices each gang is given, (gang,)."""
        return np.array([len(devices) for devices in self.devices], dtype=np.int64)

    def build(self, *, partner: Ints | None = None, shape: Ints | None = None, **more: Any) -> Grants:
        """Return the answer, with partner and shape (gang,) and what else `Grants` says."""
        size = self.sizes()
        return Grants(
            Rows(
                np.array(self.jobs, dtype=np.int64),
                np.array(self._types, dtype=np.int64),
                partner=partner,
                shape=shape,
            ),
            np.repeat(np.arange(len(size)), size),
            np.concatenate([NO_INTS, *self.devices]),
            np.array(self._until, dtype=float),
            **more,
        )


def shapes_of(view: View, job: Ints, size: Ints) -> Ints | None:
    """Return the shapes in which jobs hold so many accelerators, (gang,) each; None where every job has one."""
    if "shapes" not in view.columns or view.shapes.shape[1] == 1:
        return None
    return np.asarray((view.shapes[job] == size[:, None]).argmax(axis=1))


def renewal(view: View, jobs: Bools, until: float = math.nan, **more: Any) -> Grants:
    """Return the answer in which some jobs, (job,), keep the seats that they hold."""
    device = np.flatnonzero(held_by(view.holder, jobs))
    job = np.flatnonzero(jobs)
    row = np.searchsorted(job, view.holder[device])
    shape = shapes_of(view, job, np.bincount(row, minlength=len(job)))
    return Grants(Rows(job, view.on_type[job], shape=shape), row, device, np.full(len(job), until), **more)
