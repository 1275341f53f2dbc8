"""The role of each axis of a sweep: compared, along the curves, or separating comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eunomia.inputs.problems import InvalidInput
from eunomia.model.spelling_suggestions import nearest
from eunomia.runs.as_it_was import AS_IT_WAS
from eunomia.scenario.source_locations import refused_at, shown
from eunomia.sweeps.plan import Label, PlannedRun, text
from eunomia.sweeps.sweep_file import SweepFile

SEED = "seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisRoles:
    """The roles of the axes. Runs that differ only in their seed are one setting."""

    compare: str  # its values are compared, paired by seed
    along: str  # the horizontal axis of curves, with numeric values
    apart: tuple[str, ...]  # each combination of the other axes is a separate comparison
    baseline: Label  # value of `compare` that the others are compared with
    compared: tuple[Label, ...]  # the values of `compare`, in order of the file
    places: tuple[float, ...]  # the values of `along`, lowest first

    def group(self, row: PlannedRun) -> str:
        """Return the name of a run's comparison, such as `cluster small`; empty if there is only one."""
        return ", ".join(f"{key} {text(row.labels[key])}" for key in self.apart)

    def name(self, value: Label) -> str:
        """Return the display name of a compared value."""
        return text(value) if self.compare == "policy" else f"{self.compare} {text(value)}"


def frame_of(sweep: SweepFile, rows: Sequence[PlannedRun]) -> AxisRoles:
    """Return the roles that the sweep sets, or defaults. Raises InvalidInput for impossible roles."""
    values = {key: list(dict.fromkeys(row.labels[key] for row in rows)) for key in rows[0].labels}
    several = [key for key, options in values.items() if len(options) > 1 and key != SEED]
    along = sweep.along or _along(sweep, several, values)
    compare = sweep.compare or next(
        (key for key in ("policy", *several) if key in several and key != along),
        "policy" if along != "policy" else "load",
    )
    places = [value for value in values[along] if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(places) != len(values[along]):
        fix = "choose an axis of numbers, such as load"
        raise _refusal(sweep, "along", along, "its values are not all numbers", fix)
    if compare in (along, SEED) or along == SEED:
        key = "compare" if sweep.compare else "along"
        raise _refusal(sweep, key, compare, "it plays another part", "choose another axis, or leave the key out")
    return AxisRoles(
        compare=compare,
        along=along,
        apart=tuple(key for key in several if key not in (compare, along)),
        baseline=_baseline(sweep, compare, values[compare]),
        compared=tuple(values[compare]),
        places=tuple(sorted(float(place) for place in places)),
    )


def _along(sweep: SweepFile, several: list[str], values: dict[str, list[Label]]) -> str:
    """Return load if it has several values, else the first axis with several numbers, else load.

    If only one axis has several values, it is the compared one.
    """
    if sweep.compare is None and len(several) == 1:
        return "load"
    numbers = [key for key in several if all(type(value) in (int, float) for value in values[key])]
    free = [key for key in numbers if key != sweep.compare]
    return "load" if "load" in free or not free else free[0]


def _baseline(sweep: SweepFile, compare: str, values: list[Label]) -> Label:
    if sweep.baseline is None:
        return next((value for value in values if value != AS_IT_WAS), values[0])
    if sweep.baseline not in values:
        fix = nearest(str(sweep.baseline), [text(value) for value in values])
        raise _refusal(sweep, "baseline", sweep.baseline, f"this is no value of the axis {compare}", fix)
    baseline: Label = sweep.baseline
    return baseline


def _refusal(sweep: SweepFile, key: str, value: object, rule: str, fix: str) -> InvalidInput:
    return refused_at(sweep.places.where((key,)), key, shown(value), rule, fix)
