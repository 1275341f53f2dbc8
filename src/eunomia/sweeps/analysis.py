"""Builds the report of a sweep: averages with intervals, and differences to the baseline, paired by seed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from eunomia.metrics.statistics import NEGLIGIBLE, Estimate, PairedDifference, estimate, one_run, paired
from eunomia.model import elementary
from eunomia.runs.as_it_was import AS_IT_WAS
from eunomia.sweeps.axes import AxisRoles
from eunomia.sweeps.plan import Label, PlannedRun
from eunomia.sweeps.runner import SweepResult
from eunomia.sweeps.store import Resamples
from eunomia.sweeps.sweep_file import SweepFile
from eunomia.verdict.judgement import interval_of_ratio
from eunomia.verdict.number_format import plural
from eunomia.verdict.ranking import COLUMNS
from eunomia.verdict.seed_groups import finished_enough, part_done
from eunomia.verdict.sweep_content import BaselineDifference, Group, Interval, SweepContent, SweepSetting, Verdict

_MAX_LOG = 700.0  # exp of it is finite
BETTER = {column.name: column.better for column in COLUMNS}

Values = Mapping[str, Mapping[int, float]]  # name of summary.json → seed → value


def content_of(sweep: SweepFile, frame: AxisRoles, outcome: SweepResult) -> SweepContent:
    """Return the content of the report."""
    done, failed = len(outcome.rows), len(outcome.failures)
    seeds = len({row.scenario.seed for row in outcome.rows})
    subtitle = f"{plural(done, 'run')} with {plural(seeds, 'seed')}" + (f", {failed} failed" if failed else "")
    return SweepContent(
        title=f"{sweep.name}: a sweep",
        subtitle=subtitle,
        compared=tuple(frame.name(value) for value in frame.compared),
        baseline=frame.name(frame.baseline),
        along=frame.along,
        places=frame.places,
        groups=tuple(_groups(sweep, frame, outcome)),
        confidence=sweep.confidence,
        failures=tuple((failure.row.name, failure.error) for failure in outcome.failures),
        notes=tuple(_merge_similar(outcome.notes)),
        sweep_toml=sweep.text,
    )


def _merge_similar(notes: Iterable[str]) -> Iterator[str]:
    """Yield the notes; of notes that differ only in numbers, as between seeds, only the first."""
    similar: dict[str, list[str]] = defaultdict(list)
    for note in notes:
        similar[re.sub(r"\d[\d.,]*", "#", note)].append(note)
    for first, *others in similar.values():
        yield f"{first} ({plural(len(others), 'note')} more of this kind, with other numbers.)" if others else first


def _groups(sweep: SweepFile, frame: AxisRoles, outcome: SweepResult) -> Iterator[Group]:
    """Yield each comparison, in order of the file."""

    def key_of(row: PlannedRun) -> tuple[float, Label]:
        return float(row.labels[frame.along] or 0.0), row.labels[frame.compare]

    cells_by_group: dict[str, dict[tuple[float, Label], dict[str, dict[int, float]]]] = {}
    resamples: dict[tuple[str, tuple[float, Label]], Resamples | None] = {}
    unknown = (None,) * len(outcome.rows)
    loads, resampled = outcome.offered_load or unknown, outcome.resamples or unknown
    for row, summary, offered, sample in zip(outcome.rows, outcome.summaries, loads, resampled, strict=True):
        key = key_of(row)
        resamples.setdefault((frame.group(row), key), sample)
        values = cells_by_group.setdefault(frame.group(row), {}).setdefault(key, defaultdict(dict))
        for name, value in (*summary.items(), ("offered_load", offered)):
            if value is not None:
                values[name][row.scenario.seed] = float(value)
    planned = {(frame.group(row), key_of(row)): row for row in outcome.rows}
    for name, cells in cells_by_group.items():
        places = sorted({place for place, _ in cells})
        keys = [(place, value) for place in places for value in frame.compared if (place, value) in cells]
        samples = {key: resamples[name, key] for key in keys}
        made = [_marked(_setting(sweep, frame, cells, samples, *key), planned[name, key]) for key in keys]
        yield Group(name=name, settings=tuple(made))


def _marked(setting: SweepSetting, row: PlannedRun) -> SweepSetting:
    """Return the setting with what its policy knows."""
    is_history = row.scenario.policy.name == AS_IT_WAS
    return replace(setting, is_history=is_history, knows_durations=row.knows_durations)


def _setting(
    sweep: SweepFile,
    frame: AxisRoles,
    cells: Mapping[tuple[float, Label], Values],
    samples: Mapping[tuple[float, Label], Resamples | None],
    place: float,
    value: Label,
) -> SweepSetting:
    own, base = cells[place, value], cells.get((place, frame.baseline), {})
    versus = {}
    if value != frame.baseline:
        comparable, (this, other) = _is_comparable(own, base), _select_seeds(own, base)
        for name in this:
            difference = paired(this[name], other.get(name, {}), sweep.confidence)
            if difference is not None:
                versus[name] = _versus(difference, name, comparable)
                pair = samples[place, value], samples.get((place, frame.baseline))
                if difference.change.half is None:
                    versus[name] = _resampled(versus[name], pair, name, sweep.confidence)
    averages = {
        name: _interval(average)
        for name, by_seed in _select_seeds(own)[0].items()
        if (average := estimate(np.array(list(by_seed.values())), sweep.confidence)) is not None
    }
    alike = len(_seeds(own)) if one_run(own) else 1
    return SweepSetting(name=frame.name(value), place=place, averages=averages, versus=versus, alike=alike)


def _select_seeds(*all_values: Values) -> tuple[Values, ...]:
    """Return the values of all seeds, or of one shared seed if the seeds change no value."""
    if not all(one_run(values) for values in all_values):
        return all_values
    shared = sorted(set.intersection(*(_seeds(values) for values in all_values)))[:1]
    return tuple(
        {name: {seed: by_seed[seed] for seed in shared} for name, by_seed in values.items()} for values in all_values
    )


def _seeds(values: Values) -> set[int]:
    return {seed for by_seed in values.values() for seed in by_seed}


def _is_comparable(own: Values, other: Values) -> bool:
    """Whether both finished nearly the same part of their jobs, as averages are of finished jobs."""
    parts = []
    for values in (own, other):
        total = {name: sum(by_seed.values()) for name, by_seed in values.items()}
        parts.append(part_done(total.get))
    return all(finished_enough(parts))


def _versus(difference: PairedDifference, name: str, comparable: bool) -> BaselineDifference:
    relative = None if difference.log_ratio is None else _interval(difference.log_ratio, _relative_change)
    verdict = _verdict(difference, name, comparable)
    return BaselineDifference(change=_interval(difference.change), relative=relative, verdict=verdict)


def _resampled(
    one: BaselineDifference, pair: tuple[Resamples | None, Resamples | None], name: str, confidence: float
) -> BaselineDifference:
    """Return the difference of one run each with the interval of resampled weeks, where there is one."""
    this, other = pair
    if one.relative is None or this is None or other is None or this.basis != other.basis:
        return one
    if name not in this.values or name not in other.values:
        return one
    ends = interval_of_ratio(this.values[name], other.values[name], confidence)
    if ends is None:
        return one
    low, high = np.quantile(this.values[name] - other.values[name], [(1 - confidence) / 2, (1 + confidence) / 2])
    change = replace(one.change, low=float(low), high=float(high))
    relative = replace(one.relative, low=ends[0], high=ends[1])
    verdict = one.verdict
    if verdict == "unknown":
        verdict = _verdict_of(relative, name)
    return replace(one, change=change, relative=relative, verdict=verdict, basis=this.basis)


def _verdict_of(relative: Interval, name: str) -> Verdict:
    """Return the conclusion from a ratio with an interval."""
    assert relative.low is not None
    assert relative.high is not None
    excludes_0 = relative.low > 0 or relative.high < 0
    within = max(abs(relative.low), abs(relative.high)) <= NEGLIGIBLE
    if abs(relative.mean) <= NEGLIGIBLE and (excludes_0 or within):
        return "alike"
    return _direction(relative.mean, name) if excludes_0 else "noise"


def _direction(change: float, name: str) -> Verdict:
    return "better" if (change < 0) == (BETTER.get(name) != "high") else "worse"


def _verdict(difference: PairedDifference, name: str, comparable: bool) -> Verdict:
    """Return the conclusion from a difference."""
    if not comparable:
        return "unfit"
    if difference.alike:
        return "alike"
    if difference.real is None:
        return "unknown"
    if not difference.real:
        return "noise"
    return _direction(difference.change.mean, name)


def _relative_change(log_ratio: float) -> float:
    """Return ratio − 1, bounded so that it stays finite."""
    return elementary.expm1(min(log_ratio, _MAX_LOG))


def _interval(average: Estimate, scale: Callable[[float], float] = float) -> Interval:
    low, high = (None if end is None else scale(end) for end in (average.low, average.high))
    return Interval(mean=scale(average.mean), low=low, high=high, seeds=average.seeds)
