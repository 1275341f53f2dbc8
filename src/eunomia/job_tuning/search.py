"""Searches the shape of one job by measuring few of them: Bayesian optimisation over workers, servers and types.

    repeat: measure the shape with the largest expected improvement by the surrogate of s (or US$) per step
    until the measurements are used up, or less than a share ε of improvement is expected

A shape in which the job does not run counts as a measurement and is not tried again. Reference: Bayesian optimisation
of workers and parameter servers with a Gaussian process and expected improvement, a Chinese master's thesis of 2020 by
its published summary; the search is `solvers.bayesian`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.problems import refused
from eunomia.job_tuning.measurements import FILE, MeasuredShape, read_measurements, write_measurements
from eunomia.job_tuning.objective import Objective
from eunomia.job_tuning.shapes import JobShape, ShapeSpace
from eunomia.solvers.bayesian import GridSearch
from eunomia.solvers.bayesian.search import EPSILON

Measure = Callable[[JobShape], MeasuredShape]
SUBJECT, RESULT = "subject.json", "tune-job.json"
OTHER = "give another folder, or repeat that command"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSearch:
    """What to search and how; `possible` are the shapes that can be measured, None = all of the space."""

    space: ShapeSpace
    objective: Objective
    method: str = "gp-ei"
    budget: int = 15
    seed: int = 0
    epsilon: float = EPSILON
    possible: frozenset[JobShape] | None = None

    def start(self) -> GridSearch:
        """Return the search before its first measurement."""
        search = GridSearch(self.space.grid(), self.method, budget=self.budget, seed=self.seed, epsilon=self.epsilon)
        if self.possible is not None:
            allowed = {self.space.point(shape) for shape in self.possible}
            for point in range(self.space.grid().points):
                if point not in allowed:
                    search.exclude(point)
        return search

    @property
    def shapes(self) -> int:
        """The number of shapes that can be measured."""
        return self.space.grid().points if self.possible is None else len(self.possible)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTuning:
    """What was measured, in order; `ended` says why the search ended, and is empty before."""

    objective: Objective
    measured: tuple[MeasuredShape, ...]
    ended: str = ""

    @property
    def best(self) -> MeasuredShape | None:
        """The shape with the largest gain, the first of several; None if the job ran in none."""
        running = [one for one in self.measured if one.rate is not None]
        return max(running, key=self.gain, default=None)

    @property
    def as_good(self) -> tuple[JobShape, ...]:
        """Other shapes whose interval meets that of the best: the measurements do not decide between them."""
        best = self.best
        if best is None or best.rate is None or best.rate.low is None:
            return ()
        bound, _ = self.objective.interval(best.shape, best.rate)
        return tuple(
            one.shape
            for one in self.measured
            if one is not best and one.rate is not None and self._reaches(one, bound or 0.0)
        )

    def gain(self, one: MeasuredShape) -> float:
        """Return the gain of a shape in the objective's unit; 0 where the job does not run."""
        return 0.0 if one.rate is None else self.objective.gain(one.shape, one.rate.steps_per_s)

    def _reaches(self, one: MeasuredShape, bound: float) -> bool:
        assert one.rate is not None
        low, high = self.objective.interval(one.shape, one.rate)
        return self.gain(one) >= bound if low is None else high is None or high >= bound

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        best = self.best
        return {
            "objective": self.objective.name,
            "unit": self.objective.unit,
            "ended": self.ended,
            "best": None if best is None else self._row(best),
            "as_good": [str(shape) for shape in self.as_good],
            "measurements": [self._row(one) for one in self.measured],
        }

    def _row(self, one: MeasuredShape) -> dict[str, Any]:
        rate = one.rate
        low, high = (None, None) if rate is None else self.objective.interval(one.shape, rate)
        return {
            "workers": one.shape.workers,
            "servers": one.shape.servers,
            "type": one.shape.type,
            "steps_per_s": 0.0 if rate is None else rate.steps_per_s,
            "gain": self.gain(one),
            "gain_low": low,
            "gain_high": high,
            "reason": one.reason,
        }


def tune_job(
    request: JobSearch, measure: Measure, known: Sequence[MeasuredShape], report: Callable[[JobTuning], None]
) -> JobTuning:
    """Search from what is known; `report` receives the result so far after every new measurement.

    What an earlier search with the same request measured is known, in its order: then this one goes on as that would
    have.
    """
    search, found = request.start(), JobTuning(objective=request.objective, measured=())
    for one in known:
        if (point := request.space.point(one.shape)) is not None:
            search.ask()  # the draws of the search that measured it
            found = _record(request, search, point, one, found)
    while len(found.measured) < request.budget:
        point = search.ask()
        if point is None:
            everything = len(found.measured) >= request.shapes
            ended = (
                "every shape is measured" if everything else f"less than {100 * request.epsilon:g} % more is expected"
            )
            return replace(found, ended=ended)
        found = _record(request, search, point, measure(request.space.shape(point)), found)
        report(found)
    return replace(found, ended=f"{request.budget} shapes are measured")


def _record(request: JobSearch, search: GridSearch, point: int, one: MeasuredShape, found: JobTuning) -> JobTuning:
    """Tell the search a measurement, and return the result with it."""
    found = replace(found, measured=(*found.measured, one))
    if one.rate is None:
        search.exclude(point)
    else:
        search.tell(point, 1.0 / found.gain(one))
    return found


def first_shapes(request: JobSearch, known: Sequence[MeasuredShape]) -> list[JobShape]:
    """Return the shapes that would be measured before the first model: all of a method without a model."""
    search, shapes = request.start(), list[JobShape]()
    points = [point for one in known if (point := request.space.point(one.shape)) is not None]
    for point in points:
        search.exclude(point)
    while len(points) + len(shapes) < request.budget and (point := search.next_planned()) is not None:
        search.exclude(point)
        shapes.append(request.space.shape(point))
    return shapes


@dataclass(frozen=True, slots=True)
class SearchFolder:
    """`subject` is what was measured, such as the command: measurements of different subjects do not mix."""

    path: Path
    subject: Mapping[str, Any]

    @property
    def table(self) -> Path:
        """The table of measurements."""
        return self.path / FILE

    def known(self) -> list[MeasuredShape]:
        """Return what an earlier search measured here; changes nothing.

        Raises InvalidInput for a folder with something else in it, and for a table with every problem of it.
        """
        if self.path.exists() and not self.path.is_dir():
            raise refused(str(self.path), "--out", None, "it is a file", "name a folder")
        subject = self.path / SUBJECT
        if not subject.is_file():
            if self.path.is_dir() and any(self.path.iterdir()):
                raise refused(str(self.path), "--out", None, "the folder holds something else", "give a new folder")
            return []
        try:
            earlier = json.loads(subject.read_bytes())
        except ValueError:
            raise refused(str(subject), None, None, "it is not JSON", "give another folder to --out") from None
        if earlier != dict(self.subject):
            raise refused(str(self.path), "--out", None, f"the folder holds measurements of {_shown(earlier)}", OTHER)
        return read_measurements(self.table) if self.table.is_file() else []

    def begin(self) -> None:
        """Make the folder."""
        write_whole(self.path / SUBJECT, (json.dumps(dict(self.subject), indent=2) + "\n").encode())

    def keep(self, found: JobTuning, others: Sequence[MeasuredShape] = ()) -> None:
        """Write what was measured, first that of shapes which this search leaves out."""
        write_measurements(self.table, [*others, *found.measured])
        text = json.dumps(found.as_dict(), indent=2, allow_nan=False, ensure_ascii=False)
        write_whole(self.path / RESULT, f"{text}\n".encode())


def _shown(subject: Any) -> str:
    command = subject.get("command") if isinstance(subject, dict) else None
    return " ".join(map(str, command)) if isinstance(command, list) else json.dumps(subject)[:200]
