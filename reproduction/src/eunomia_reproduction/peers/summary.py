"""The summary beside the results of a case: each number of each run, as near as it is printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem, Problems
from eunomia_reproduction.peers.peer_sheet import read
from eunomia_reproduction.peers.running import Life, mean
from eunomia_reproduction.rounding import half_a_digit
from eunomia_reproduction.table import FigureRow

Key = tuple[str, ...]


@dataclass(slots=True)
class Summary:
    """A file with a line a run. `notes` reports the lines that were not requested."""

    path: Path
    names: Key  # columns that say which run it is
    lines: dict[Key, list[tuple[int, dict[str, str]]]] = field(default_factory=dict)  # (row of the file, cells) each
    lacks: str = ""  # why no line is compared
    asked: set[Key] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)  # that were compared
    silent: list[Key] = field(default_factory=list)  # runs of which it says nothing

    @classmethod
    def of(cls, path: Path, names: Key) -> Summary:
        """Read a summary; one that is absent has no lines. Raises InvalidInput for a file that is no table."""
        found = cls(path, names)
        if not path.is_file():
            found.lacks = "there is none"
            return found
        texts = read(path, rest=True).texts
        if not set(names) <= texts.keys():
            found.lacks = f"it has no columns {', '.join(names)}"
            return found
        for row, cells in enumerate(zip(*texts.values(), strict=True), 2):
            line = dict(zip(texts, cells, strict=True))
            found.lines.setdefault(_key(line[name] for name in names), []).append((row, line))
        return found

    def number(self, run: Iterable[str], column: str) -> float | None:
        """Return a number of a run; None where it tells none."""
        lines = self.lines.get(_key(run), [])
        return None if not lines or column not in lines[0][1] else _number(self.path, *lines[0], column)

    def beside(
        self,
        series: str,
        run: Iterable[str],
        ours: Mapping[str, float],
        source: str,
        *,
        words: Mapping[str, Mapping[str, float]] | None = None,
        checked: bool = True,
    ) -> list[FigureRow]:
        """Return a row with how many numbers of a run are ours to half of their last printed digit; none without it.

        `words` are columns that hold NAME=NUMBER words, and what each of these is here. Raises InvalidInput for a run
        with two lines, and for what is no number.
        """
        key = _key(run)
        if self.lacks:
            return []
        lines = self.lines.get(key, [])
        if not lines:
            self.silent.append(key)
            return []
        if len(lines) > 1:
            rule, fix = "a run has one line", "keep one of them"
            raise InvalidInput([Problem(file=str(self.path), row=lines[1][0], rule=rule, fix=fix)])
        row, line = lines[0]
        self.asked.add(key)
        pairs = [(name, line[name], value) for name, value in ours.items() if name in line]
        self.columns |= {*self.names, *(name for name, _, _ in pairs), *(words or {})}
        for name, _, _ in pairs:
            _number(self.path, row, line, name)
        for column, known in (words or {}).items():
            pairs += _words(self.path, row, column, line.get(column, ""), known)
        if not pairs:
            return []
        off = [
            f"{name} {reported} there, {value:.10g} here"
            for name, reported, value in pairs
            if not abs(value - float(reported)) <= half_a_digit(reported)
        ]
        return [
            FigureRow(
                series=series,
                quantity="summary_equal",
                unit="numbers",
                published=len(pairs),
                measured=len(pairs) - len(off),
                tolerance=0.0 if checked else None,
                source=source,
                note=f"first to differ: {off[0]}" if off else "",
            )
        ]

    def notes(self, case: str) -> list[str]:
        """Say what of it was not compared."""
        if self.lacks:
            return [f"{case}: {self.path.name}: not compared: {self.lacks}"] if self.path.is_file() else []
        left = [" ".join(key).strip() for key in self.lines if key not in self.asked]
        columns = {name for lines in self.lines.values() for _, line in lines for name in line} - self.columns
        found = []
        if left:
            found.append(f"{case}: {self.path.name}: not compared: runs {', '.join(left)}")
        if columns and self.asked:
            found.append(f"{case}: {self.path.name}: not compared: columns {', '.join(sorted(columns))}")
        if self.silent:
            runs = ", ".join(" ".join(key).strip() for key in self.silent)
            found.append(f"{case}: {self.path.name} says nothing of {runs}")
        return found


def totals(lives: Mapping[str, Life], submitted: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """Return what summaries tell of these jobs, by the name of the column; nan where one never ended.

    The 50th and 99th percentiles are the values at the places ⌊n/2⌋ and ⌊0.99 n⌋ of the sorted list.
    """
    jobs = [(lives[name], submitted[name]) for name in names]
    jct = sorted(life.end - at for life, at in jobs)
    n = len(jct)
    if n == 0 or any(map(math.isnan, jct)):
        return {"n": n} | dict.fromkeys(("avg_jct_s", "p50_jct_s", "p99_jct_s", "makespan_s", "last_end_s"), math.nan)
    last = max(life.end for life, _ in jobs)
    return {
        "n": n,
        "avg_jct_s": mean(jct),
        "p50_jct_s": jct[n // 2],
        "p99_jct_s": jct[99 * n // 100],
        "makespan_s": last,
        "last_end_s": last,
        "avg_preemptions": mean([life.stops for life, _ in jobs]),
    }


def _key(words: Iterable[str]) -> Key:
    return tuple(word.strip().casefold() for word in words)


def _number(path: Path, row: int, line: Mapping[str, str], column: str) -> float:
    problems = Problems(str(path))
    try:
        value = float(line[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problems.add("is a number", "write digits", row=row, column=column, value=line[column])
    problems.raise_if_any()
    return value


def _words(
    path: Path, row: int, column: str, reported: str, known: Mapping[str, float]
) -> list[tuple[str, str, float]]:
    """Return (name, number as written, ours) of `NAME=NUMBER NAME=NUMBER …`. Raises InvalidInput for anything else."""
    problems, found = Problems(str(path)), []
    for word in reported.split():
        name, _, value = word.rpartition("=")
        if name not in known:
            rule, fix = "it names nothing that the case has", f"it has {', '.join(known)}"
        elif not _is_number(value):
            rule, fix = "it gives no number", "write it as NAME=1.2345"
        else:
            found.append((name, value, known[name]))
            continue
        problems.add(rule, fix, row=row, column=column, value=word)
    problems.raise_if_any()
    return found


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
