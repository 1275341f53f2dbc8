"""Tables of past jobs under names of other systems, as CSV or Parquet, with every way to write nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from math import ceil
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from tests.traces.generated.truth import BEGAN, HOUR_S, TENANTS, TYPES, Truth, chance

from eunomia.traces.accounting_csv import read_history
from eunomia.traces.import_findings import History
from eunomia.traces.writing import quote_cell

Cells = dict[str, str]
NAMES = {
    "job_id": ("job_id", "Job Name", "id"),
    "submitted_s": ("submit_time", "Submit Time", "submitted"),
    "started_s": ("start_time", "Started", "begin_time"),
    "ended_s": ("end_time", "Finish Time", "finished_at"),
    "duration_s": ("runtime", "Duration", "elapsed"),
    "tenant": ("user", "Account", "organization"),
    "ran_on": ("gpu_type", "GPU Model"),
    "status": ("state", "Status"),
}
WIDTHS = (("num_gpus",), ("GPUs",), ("gpu_request", "worker_num"), ("gpus_per_node", "num_nodes"), ("AllocTRES",))
NEVER = ("0", "-1", "", "NaN", "None", "1970-01-01 00:00:00")
DONE = ("COMPLETED", "FAILED", "CANCELLED by 7", "TIMEOUT")


def clock(rng: Random) -> Callable[[float], str]:
    """Return how times are written in one table."""
    way, ahead = rng.randrange(5), timezone(timedelta(hours=rng.choice((-5, 0, 8))))
    if way == 0:
        return lambda at: f"{at:.0f}"
    if way == 1:
        return lambda at: f"{1000 * at:.0f}"
    if way == 2:
        return lambda at: datetime.fromtimestamp(at, ahead).isoformat(sep=" ")
    if way == 3:
        return lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y/%m/%d %H:%M:%S")


def span(rng: Random) -> Callable[[float], str]:
    """Return how time spans are written in one table."""
    if chance(rng, 0.5):
        return lambda s: f"{s:g}"
    return lambda s: f"{int(s) // 86_400}-{int(s) // 3600 % 24:02d}:{int(s) // 60 % 60:02d}:{int(s) % 60:02d}"


class Table:
    """The rows of one table, and what they hold."""

    def __init__(self, rng: Random):
        self.rng, self.truth = rng, Truth()
        self.rows: list[Cells] = []
        self.when, self.long = clock(rng), span(rng)
        self.width = rng.choice(WIDTHS)
        self.has_starts = chance(rng, 0.8)
        self.has_ends = self.has_starts and chance(rng, 0.7)
        self.has_durations = not self.has_ends or chance(rng, 0.5)
        self.has_types = chance(rng, 0.7)
        self.last = BEGAN + 400_000.0  # latest time of the table

    def size(self) -> tuple[Cells, float, int]:
        """Return the cells of a width, the accelerators that they say, and those that are read."""
        rng = self.rng
        if len(self.width) == 2:
            each, units = rng.choice((0.5, 1, 2, 8)), rng.choice((1, 1, 3, 4))
            return dict(zip(self.width, (f"{each:g}", str(units)), strict=True)), each * units, ceil(each) * units
        size = rng.choice((1, 2, 4, 8, 0.25)) if self.width != ("AllocTRES",) else rng.choice((1, 4))
        text = f"cpu=8,mem=4G,gres/gpu={size},node=1" if self.width == ("AllocTRES",) else f"{size:g}"
        return {self.width[0]: text}, size, ceil(size)

    def add(self, name: str) -> None:
        """Add a row of a random kind."""
        rng = self.rng
        cells, asked, read = self.size()
        tenant, kind = rng.choice(TENANTS), rng.choice(TYPES) if self.has_types else "gpu"
        submitted = BEGAN + float(rng.randrange(200_000))
        start = submitted + rng.randrange(5000)
        lasted = float(rng.choice((1, 60, rng.randrange(2, 90_000))))
        row = {"job_id": name, "submitted_s": self.when(submitted), "tenant": tenant, **cells}
        row |= {"started_s": self.when(start), "ended_s": self.when(start + lasted), "duration_s": self.long(lasted)}
        row |= {"ran_on": kind, "status": rng.choice(DONE)}
        what = rng.randrange(10)
        if what == 0 and self.has_starts:  # never ran
            ended = self.when(submitted + 9) if chance(rng, 0.5) else rng.choice(NEVER)
            row |= {"started_s": rng.choice(NEVER), "ended_s": ended, "duration_s": rng.choice(("", "0", "-1", "None"))}
        elif what == 1:  # no accelerator
            row |= (
                dict.fromkeys(cells, rng.choice(("0", "", "-1", "None"))) if len(cells) == 1 else {self.width[0]: "0"}
            )
        elif what == 2 and self.has_ends:  # still runs, or ended at a time that is not written
            row |= {"ended_s": rng.choice(NEVER), "duration_s": rng.choice(("", "-1", "NaN"))}
            if chance(rng, 0.5):
                row["status"] = "RUNNING"
                self.ran(name, kind, tenant, asked, read, self.last - start, start - submitted)
        else:
            self.ran(name, kind, tenant, asked, read, lasted, start - submitted)
        self.rows.append(row)

    def ran(self, name: str, kind: str, tenant: str, asked: float, read: int, lasted: float, wait: float) -> None:
        self.truth.add(kind, tenant, asked * lasted / HOUR_S, written=read * lasted / HOUR_S)
        if self.has_starts:
            self.truth.wait_s[name] = wait

    def columns(self) -> dict[str, list[str]]:
        """Return the cells of each column of the file, in a random order."""
        fields = ["job_id", "submitted_s", "tenant", "status", *self.width]
        fields += ["started_s"] * self.has_starts + ["ended_s"] * self.has_ends
        fields += ["duration_s"] * self.has_durations + ["ran_on"] * self.has_types
        self.rng.shuffle(fields)
        names = {field: self.rng.choice(NAMES.get(field, (field,))) for field in fields}
        return {names[field]: [row[field] for row in self.rows] for field in fields}


def generate(rng: Random, folder: Path, *, parquet: bool = False) -> tuple[History, Truth]:
    """Return the history that is read of a table, and what it holds."""
    table = Table(rng)
    for k in range(rng.randrange(3, 40)):
        table.add(f"j{k}")
    cells, asked, read = table.size()
    last = {"job_id": "last", "submitted_s": table.when(BEGAN), "tenant": "ann", "status": "FAILED", "ran_on": "v100"}
    last |= {"started_s": table.when(BEGAN), "ended_s": table.when(table.last), "duration_s": table.long(400_000)}
    table.ran("last", "v100" if table.has_types else "gpu", "ann", asked, read, 400_000, 0)
    table.rows.append({**last, **cells})
    rng.shuffle(table.rows)
    columns = table.columns()
    path = folder / ("jobs.parquet" if parquet else "jobs.csv")
    if parquet:
        pq.write_table(pa.table({name: pa.array([cell or None for cell in c]) for name, c in columns.items()}), path)
    else:
        rows = [columns.keys(), *zip(*columns.values(), strict=True)]
        path.write_text("\n".join(",".join(map(quote_cell, row)) for row in rows) + "\n")
    options = {"scale_factor": "AllocTRES:gres/gpu"} if table.width == ("AllocTRES",) else {}
    return read_history(path, options), table.truth


def generate_parquet(rng: Random, folder: Path) -> tuple[History, Truth]:
    """Return the same of a table in Parquet."""
    return generate(rng, folder, parquet=True)
