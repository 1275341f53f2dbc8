"""The rows on which claims rest: those kept in `expected`, of each experiment the run with most seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.spelling_suggestions import nearest
from eunomia_reproduction.expected import FOLDER, NOT_RUN, Key, file_of, kept_seeds, read


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Measured values and whether they are within their tolerance, as text, by experiment and key of the row."""

    by_experiment: Mapping[str, Mapping[Key, tuple[str, str]]]
    seeds: Mapping[str, int]  # with which the rows of an experiment were measured

    @classmethod
    def shipped(cls) -> KeptRows:
        """Return the rows that ship with the package."""
        names = {path.stem.rpartition("-")[0] for path in FOLDER.glob("*-[0-9]*.csv")}
        seeds = {name: max(kept_seeds(name)) for name in sorted(names)}
        return cls({name: read(file_of(name, count)) for name, count in seeds.items()}, seeds)

    def __contains__(self, experiment: str) -> bool:
        return experiment in self.by_experiment

    def value(self, experiment: str, key: Key) -> float:
        """Return the measured value of a row. Raises InvalidInput when there is no such row, or it was never run."""
        rows = self.by_experiment[experiment]
        if key not in rows:
            rule, fix = "there is no such row", nearest(", ".join(key), [", ".join(known) for known in rows])
        elif rows[key][0] in ("", NOT_RUN):
            rule, fix = "this row has no kept value", "give another row, or run the experiment with --accept"
        else:
            return float(rows[key][0])
        raise InvalidInput([Problem(file=f"kept rows of {experiment}", value=", ".join(key), rule=rule, fix=fix)])

    def get(self, experiment: str, key: Key) -> float | None:
        """Return the measured value of a row, or None when there is no such row."""
        return self.value(experiment, key) if key in self.by_experiment[experiment] else None

    def verdicts(self, experiment: str) -> Iterator[tuple[Key, bool]]:
        """Yield the key of each row that was checked, and whether it is within its tolerance."""
        for key, (_, within) in self.by_experiment[experiment].items():
            if within:
                yield key, within == "true"
