"""The shapes that a job may have: workers, parameter servers and the type of the workers' accelerators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.inputs.bounds import MOST
from eunomia.inputs.problems import refused
from eunomia.model import elementary
from eunomia.solvers.bayesian import SearchGrid
from eunomia.solvers.bayesian.grid import scaled, unordered

PLACEHOLDERS = ("workers", "servers", "type")  # in braces, in a command
MOST_VALUES = 1000  # of one parameter
_PART = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")


@dataclass(frozen=True, slots=True)
class JobShape:
    """Workers, each with one accelerator of a type, and parameter servers, which hold none."""

    workers: int
    servers: int
    type: str

    def __str__(self) -> str:
        workers, servers = (
            f"{count} {word}{'s' * (count != 1)}"
            for count, word in ((self.workers, "worker"), (self.servers, "server"))
        )
        return f"{workers}, {servers}, {self.type}" if self.servers else f"{workers}, {self.type}"

    @property
    def name(self) -> str:
        """A name for files and jobs."""
        return f"{self.workers}w-{self.servers}s-{re.sub(r'[^A-Za-z0-9.-]', '-', self.type)}"[:60]

    def fill(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command with this shape in place of `{workers}`, `{servers}` and `{type}`."""
        for key in PLACEHOLDERS:
            words = [word.replace(f"{{{key}}}", str(getattr(self, key))) for word in words]
        return tuple(words)


@dataclass(frozen=True, slots=True)
class ShapeSpace:
    """Every combination of numbers of workers, numbers of servers, and types."""

    workers: tuple[int, ...]
    servers: tuple[int, ...]
    types: tuple[str, ...]

    def grid(self) -> SearchGrid:
        """Return the grid of the shapes: counts by their logarithms, servers plus 1, and types without an order."""
        workers = scaled([float(count) for count in self.workers], log=True)
        servers = scaled([elementary.log(count + 1.0) for count in self.servers])
        return SearchGrid((workers, servers, unordered(len(self.types))))

    def shape(self, point: int) -> JobShape:
        """Return the shape of a point of the grid."""
        w, p, j = self.grid().values(np.array([point]))[0].tolist()
        return JobShape(self.workers[w], self.servers[p], self.types[j])

    def point(self, shape: JobShape) -> int | None:
        """Return the point of a shape; None if the space does not have it."""
        try:
            values = (
                self.workers.index(shape.workers),
                self.servers.index(shape.servers),
                self.types.index(shape.type),
            )
        except ValueError:
            return None
        return int(self.grid().point(np.array([values]))[0])

    @classmethod
    def of(cls, shapes: Sequence[JobShape]) -> ShapeSpace:
        """Return the smallest space with these shapes; types in order of first appearance."""
        return cls(
            tuple(sorted({shape.workers for shape in shapes})),
            tuple(sorted({shape.servers for shape in shapes})),
            tuple(dict.fromkeys(shape.type for shape in shapes)),
        )


def parse_counts(option: str, text: str, least: int) -> tuple[int, ...]:
    """Return the counts of `1-8`, `1,2,4` or `1-4,8`, rising. Raises InvalidInput for anything else."""
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not least <= first <= last <= MOST or last - first >= MOST_VALUES:
            found.clear()
            break
        found.update(range(first, last + 1))
    if not found or len(found) > MOST_VALUES:
        rule = f"must be counts from {least} up, at most {MOST_VALUES:,} of them"
        raise refused("command line", option, text, rule, f"write for example {option} {least}-8 or {option} 1,2,4,8")
    return tuple(sorted(found))
