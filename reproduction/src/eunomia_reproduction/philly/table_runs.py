"""The plays behind Table 2: each made once, in a process of its own, and kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eunomia_reproduction.philly import played, quotas, traced
from eunomia_reproduction.philly.played import Waited
from eunomia_reproduction.philly.quotas import Play
from eunomia_reproduction.philly.tries import FirstStart, Tally
from eunomia_reproduction.run_cache import RunRequest, make_all
from eunomia_reproduction.table import Request


class Drawn(NamedTuple):
    """The synthetic workload of a seed at a load; jobs are preempted from that part of the cluster in use on."""

    seed: int
    load: float
    preempt_above: float

    @property
    def name(self) -> str:
        """Return how the play is called in messages."""
        return f"load {self.load:g}, preemption above {self.preempt_above:g}, seed {self.seed}"


def made(
    drawn: Iterable[Drawn], of_trace: Sequence[Play], request: Request
) -> tuple[dict[Drawn | Play, Waited], dict[str, str]]:
    """Make every play; return what its jobs waited for, and by name why others failed.

    Those of the trace read it from the reference folder.
    """
    orders: dict[Drawn | Play, RunRequest] = {one: RunRequest(one.name, {"drawn": one._asdict()}) for one in drawn}
    if of_trace:
        path = traced.file_in(request.folder(traced.LIKE))
        digest = sha256(path.read_bytes()).hexdigest()
        for play in of_trace:
            task = {"play": play._asdict(), "trace": str(path.parent.absolute())}
            orders[play] = RunRequest(play.name, task, repr((digest, play)))
    found, failed = make_all(orders, __name__, _read, _described, request)
    return found, {orders[one].name: why for one, why in failed.items()}


def show(drawn: dict[str, Any] | None = None, play: dict[str, Any] | None = None, trace: str = "") -> dict[str, Any]:
    """Make the play that is drawn, or that of the trace, and return what its jobs waited for, as JSON."""
    if drawn is not None:
        one = Drawn(**drawn)
        waited = played.waited(one.seed, preempt_above=one.preempt_above, load=one.load)
    else:
        assert play is not None
        waited = quotas.waited(traced.weeks_in(Path(trace)), Play(**play))
    counts = asdict(waited.tally)
    tally = {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in counts.items()}
    numbers = {"seconds": waited.seconds.tolist(), "size": waited.size.tolist(), "preempted": waited.preempted}
    return {**numbers, "tally": tally}


def _read(file: Path) -> Waited:
    said = json.loads(file.read_text(encoding="utf-8"))
    starts = [FirstStart(**start) for start in said["tally"].pop("first_starts")]
    counts: dict[str, Any] = {
        name: np.array(part) if isinstance(part, list) else part for name, part in said["tally"].items()
    }
    seconds, size = np.array(said["seconds"], dtype=float), np.array(said["size"], dtype=np.int64)
    return Waited(seconds, size, said["preempted"], Tally(**counts, first_starts=starts))


def _described(one: Waited) -> str:
    return f"{one.tally.starts:,} starts, {one.tally.tries.sum():,.0f} tries without a place"
