"""Histories whose truth is known, and the lines that sacct would write of them, with every oddity that occurs."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

HOUR_S = 3600
ZONE = "Europe/Berlin"
BEGINS = {  # UTC: a day without a change of clocks, the nights in which they are set back and forward
    "plain": datetime(2024, 5, 1, 6, tzinfo=UTC),
    "autumn": datetime(2024, 10, 26, 20, tzinfo=UTC),
    "spring": datetime(2024, 3, 30, 20, tzinfo=UTC),
}
DAYS = 2
TYPES = ("a100", "v100", "h100", "abacus", "a100_1g.5gb")
NAMES = ("train", "lr=1|wd=0", "a||b", "two\nlines", "x|", "|", "2024-01-01T00:00:00|COMPLETED|7", "käse")
LAYOUTS = ("21.08", "23.02", "23.11", "25.05")  # of sacct --json, by the version of Slurm that writes them so
NEVER = ("Unknown", "None", "", "0", "-1", "1970-01-01T00:00:00")


@dataclass
class Run:
    """One line of a job. Times are seconds since the history began; `gives` is what AllocTRES says."""

    submitted: int
    eligible: int
    started: int | None
    ended: int | None  # None: it runs
    state: str
    held: dict[str, int]  # accelerators by type, "" = not named
    suspended: int = 0


@dataclass
class Truth:
    """What happened: accelerator-hours by (type, tenant), and each job's wait for the cluster."""

    hours: dict[tuple[str, str], float] = field(default_factory=dict)
    wait_s: dict[str, int] = field(default_factory=dict)

    def add(self, tenant: str, run: Run, now: int, until: int) -> None:
        """Add what a run held; that of one that runs now ends at `until`."""
        assert run.started is not None
        if run.ended is None or run.ended > now:
            seconds = until - run.started
        else:
            seconds = run.ended - run.started - run.suspended
        for kind, width in run.held.items():
            if seconds > 0:
                owner = (kind, tenant)
                self.hours[owner] = self.hours.get(owner, 0.0) + width * seconds / HOUR_S


class SacctHistory:
    """A history, its truth, and the files that sacct would write of it."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.season = self.draw.choice(["plain", "plain", "autumn", "spring"])
        self.began = BEGINS[self.season]
        self.now = DAYS * 24 * HOUR_S
        self.elapsed_in = self.draw.choice(["ElapsedRaw", "Elapsed", "both", "none"])
        if self.season != "plain" and self.elapsed_in == "none":
            self.elapsed_in = "ElapsedRaw"
        self.without_elapsed = self.elapsed_in == "none" or (self.season == "plain" and self.draw.random() < 0.3)
        self.typed = self.draw.choice(["typed", "typed", "both", "mostly"])
        self.jobs: list[tuple[str, str, str, list[Run]]] = []  # id, tenant, name, runs
        self.split = self.draw.choice([None, None, self.draw.randrange(HOUR_S, self.now)])
        self.truth = Truth()
        number = self.draw.randrange(100, 900)
        for _ in range(self.draw.randrange(4, 25)):
            number += self.draw.randrange(1, 5)
            self._add(str(number))
        self._add_plain("9001")  # so that a job ran

    def _add(self, number: str) -> None:
        kind = self.draw.choice(["plain", "plain", "array", "requeued", "mixed", "het", "reused", "waiting", "cpu"])
        if kind == "array":
            for task in range(self.draw.randrange(1, 4)):
                self._add_plain(f"{number}_{task}")
        elif kind == "het":
            self._add_plain(f"{number}+0")
            self._add_plain(f"{number}+1")
        elif kind == "requeued":
            self._add_requeued(number)
        elif kind == "mixed":
            first, second = self.draw.sample(TYPES, 2)
            self._add_plain(number, {first: self.draw.randrange(1, 9), second: self.draw.randrange(1, 5)})
        elif kind == "waiting":
            submitted = self.draw.randrange(self.now)
            state = self.draw.choice(["PENDING", "CANCELLED by 1001", "CANCELLED"])
            self.jobs.append((number, self._tenant(), self._name(), [self._never(submitted, state)]))
        elif kind == "reused":
            self._add_reused(number)
        elif kind == "cpu":
            self._add_plain(number, {})
        else:
            self._add_plain(number)

    def _tenant(self) -> str:
        return self.draw.choice(["bio", "phy", "chem", ""])

    def _name(self) -> str:
        return self.draw.choice(NAMES)

    def _held(self) -> dict[str, int]:
        named = self.typed != "mostly" or self.draw.random() < 0.8
        return {self.draw.choice(TYPES) if named else "": self.draw.randrange(1, 17)}

    def _never(self, submitted: int, state: str) -> Run:
        return Run(submitted, submitted, None, None, state, {"a100": 4})

    def _run(self, submitted: int, held: dict[str, int], *, may_run_on: bool = True) -> Run:
        late = self.draw.random() < 0.25
        eligible = submitted + (self.draw.randrange(60, 5 * HOUR_S) if late else 0)
        started = eligible + self.draw.choice([0, 1, self.draw.randrange(0, 3 * HOUR_S)])
        lasts = self.draw.choice([self.draw.randrange(1, 60), self.draw.randrange(60, 12 * HOUR_S)])
        suspended = self.draw.randrange(1, HOUR_S) if self.draw.random() < 0.1 else 0
        ended: int | None = started + lasts + suspended
        state = self.draw.choice(["COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001", "NODE_FAIL"])
        if may_run_on and self.draw.random() < 0.15:
            ended, state, suspended = None, "RUNNING", 0
        return Run(submitted, eligible, started, ended, state, held, suspended)

    def _add_plain(self, job_id: str, held: dict[str, int] | None = None) -> None:
        submitted = self.draw.randrange(0, self.now - 20 * HOUR_S)
        run = self._run(submitted, self._held() if held is None else held, may_run_on=job_id != "9001")
        self._keep(job_id, [run])

    def _add_requeued(self, number: str) -> None:
        """Add a job of several runs; width and type may change from run to run, and Submit is that of the requeue."""
        at, runs, held = self.draw.randrange(0, HOUR_S), [], self._held()
        for last in [False] * self.draw.randrange(1, 3) + [True]:
            run = self._run(at, held, may_run_on=last)
            if not last:
                run.state = self.draw.choice(["REQUEUED", "PREEMPTED", "NODE_FAIL"])
                assert run.ended is not None
                at = run.ended + self.draw.choice([0, 1, 121])
            runs.append(run)
            change = self.draw.random()
            if change < 0.3:
                held = {kind: self.draw.randrange(1, 9) for kind in held}
            elif change < 0.5:
                held = self._held()
        self._keep(number, runs)

    def _add_reused(self, number: str) -> None:
        """Add two jobs of one id, the second more than a day after the first."""
        early = Run(0, 0, 60, 600, "COMPLETED", self._held())
        later = self.draw.randrange(30 * HOUR_S, self.now - HOUR_S)
        self._keep(number, [early])
        self._keep(number, [Run(later, later, later + 5, later + 900, "FAILED", self._held())], f"{number}#2")

    def _keep(self, job_id: str, runs: list[Run], read_as: str = "") -> None:
        first = runs[0]
        assert first.started is not None
        self.jobs.append((job_id, self._tenant(), self._name(), runs))
        if any(run.held for run in runs):
            self.truth.wait_s[read_as or job_id] = first.started - first.eligible

    # ---- lines -------------------------------------------------------------------------------------------------

    def write(self, folder: Path, layout: str = "") -> list[Path]:
        """Write the files, in any order, and complete the truth of what ran on: lines, or JSON in a layout."""
        if layout:
            self.elapsed_in, self.without_elapsed = "ElapsedRaw", False
        periods = [(0, self.now)] if self.split is None else [(0, self.split), (self.split, self.now)]
        fields = self._fields()
        files: list[Path] = []
        until: dict[int, int] = {}  # of each run, the latest time in a file that lists it
        for k, (begin, end) in enumerate(periods):
            seen = [(job, run) for job in self.jobs for run in job[3] if _overlaps(run, begin, end)]
            cut = self._latest(seen, end)
            until |= {id(run): max(cut, until.get(id(run), 0)) for _, run in seen}
            if layout:
                objects = [self._object(job, run, end, layout) for job, run in seen]
                self.draw.shuffle(objects)
                path = folder / f"{self.draw.choice('ab')}{k}.json"
                meta = {"Slurm": {"release": layout}, "plugin": {"type": "openapi/dbv0.0.37"}}
                text = json.dumps({"meta": meta, "errors": [], "jobs": objects}, indent=self.draw.choice([None, 2]))
                path.write_text(text, encoding="utf-8")
                files.append(path)
                continue
            lines = [line for job, run in seen for line in self._lines(fields, job, run, end)]
            self.draw.shuffle(lines)
            lines.insert(self.draw.randrange(len(lines) + 1), "|".join(fields))
            path = folder / f"{self.draw.choice('ab')}{k}.txt"
            path.write_text("\n".join(["|".join(fields), *lines, ""]), encoding="utf-8")
            files.append(path)
        for _, tenant, _, runs in self.jobs:
            for run in runs:
                if run.started is not None and run.started <= self.now and run.submitted < self.now:
                    self.truth.add(tenant, run, self.now, until[id(run)] if self.without_elapsed else self.now)
        self.draw.shuffle(files)
        return files

    def _fields(self) -> list[str]:
        elapsed = {"both": ["ElapsedRaw", "Elapsed"], "none": []}.get(self.elapsed_in, [self.elapsed_in])
        fields = ["JobID", "Submit", "Eligible", "Start", "End", *elapsed, "Suspended", "State", "Account", "User",
                  "NNodes", "NodeList", "AllocTRES", "ReqTRES", "JobName"]  # fmt: skip
        self.draw.shuffle(fields)
        return fields

    def _latest(self, seen: list[tuple[tuple[str, str, str, list[Run]], Run]], end: int) -> int:
        """Return the latest time that the lines of a file name, but for ends and starts that are only expected."""
        times = [0]
        for _, run in seen:
            times += [run.submitted, *([run.started] if run.started is not None and run.started <= end else [])]
            times += [run.ended] if run.ended is not None and run.ended <= end else []
        return max(times)

    def _lines(self, fields: list[str], job: tuple[str, str, str, list[Run]], run: Run, end: int) -> Iterator[str]:
        job_id, tenant, name, _ = job
        started = run.started if run.started is not None and run.started <= end else None
        ended = run.ended if run.ended is not None and run.ended <= end else None
        state = run.state
        if run.started is not None and started is None:
            state = "PENDING"
        elif started is not None and ended is None:
            state = "RUNNING"
        never = self.draw.choice(NEVER)
        tres = self._tres(run.held) if started is not None else ""
        values = {
            "JobID": job_id,
            "Submit": self._date(run.submitted),
            "Eligible": self._date(run.eligible) if run.eligible <= end else never,
            "Start": never if started is None else self._date(started),
            "End": never if ended is None else self._date(ended),
            "State": state,
            "Account": tenant,
            "User": f"u-{job_id.partition('_')[0]}",
            "NNodes": "1",
            "NodeList": "None assigned" if started is None else f"n{job_id[:3]}",
            "AllocTRES": tres,
            "ReqTRES": self._tres(run.held) or "cpu=4",
            "JobName": name,
            "Suspended": _span(run.suspended if ended is not None else 0),
        } | self._elapsed(run, started, ended, end)
        yield "|".join(values[field] for field in fields)
        if started is not None:
            step = values | {"JobID": f"{job_id}.batch", "JobName": "batch", "User": ""}
            yield "|".join(step[field] for field in fields)

    def _object(self, job: tuple[str, str, str, list[Run]], run: Run, end: int, layout: str) -> dict[str, Any]:
        """Return a run as sacct --json writes it. Until 23.02 `start` is the time of becoming eligible."""
        job_id, tenant, name, _ = job
        begun = run.started is not None and run.started <= end
        over = run.ended is not None and run.ended <= end
        state = (run.state if over or run.started is None else "RUNNING" if begun else "PENDING").partition(" ")[0]
        newer = layout in ("23.11", "25.05")

        def wrapped(value: int | None) -> Any:
            if layout == "21.08":
                return value
            return {"set": value is not None, "infinite": False, "number": value or 0}

        def time(at: int | None) -> Any:
            seconds = 0 if at is None else int(self.began.timestamp()) + at
            return wrapped(seconds) if layout == "25.05" else seconds

        elapsed = (run.ended if over else end) - run.started - (run.suspended if over else 0) if begun else 0
        array, _, task = job_id.partition("_")
        het, _, offset = job_id.partition("+")
        number = int(re.split("[_+]", job_id)[0]) + int(task or offset or 0)
        tres = [{"type": "cpu", "name": None, "id": 1, "count": 8},
                {"type": "mem", "name": "", "id": 2, "count": 65536},
                {"type": "energy", "name": None, "id": 3, "count": None}]  # fmt: skip
        held = [{"type": "gres", "name": f"gpu:{kind}", "id": 1002, "count": width}
                for kind, width in run.held.items() if kind]  # fmt: skip
        if run.held and ("" in run.held or self.typed != "typed"):
            held.append({"type": "gres", "name": "gpu", "id": 1001, "count": sum(run.held.values())})
        return {
            "account": tenant, "user": f"u-{array}", "name": name, "job_id": number, "partition": "gpu",
            "qos": "normal", "cluster": "c", "allocation_nodes": 1,
            "nodes": f"n{job_id[:3]}" if begun else "None assigned",
            "array": {"job_id": int(array) if task else 0, "task_id": wrapped(int(task) if task else None), "task": ""},
            "het": {"job_id": int(het) if offset else 0, "job_offset": wrapped(int(offset) if offset else None)},
            "state": {"current": [state] if newer else state, "reason": "None"},
            "time": {
                "submission": time(run.submitted), "eligible": time(run.eligible if run.eligible <= end else None),
                "start": time((run.started if newer else run.eligible) if begun else None),
                "end": time(run.ended if over else None), "elapsed": elapsed,
                "suspended": run.suspended if over else 0, "limit": wrapped(None),
            },
            "tres": {"allocated": tres + held if begun else [], "requested": held or tres},
            "steps": [{"step": {"id": f"{number}.batch"}, "time": {"elapsed": elapsed}}],
        }  # fmt: skip

    def _elapsed(self, run: Run, started: int | None, ended: int | None, end: int) -> dict[str, str]:
        if started is None:
            return {"ElapsedRaw": "0", "Elapsed": "00:00:00"}
        if ended is None and self.without_elapsed:
            return {"ElapsedRaw": self.draw.choice(["", "INVALID", "-1"]), "Elapsed": self.draw.choice(["", "INVALID"])}
        seconds = (end if ended is None else ended) - started - (run.suspended if ended is not None else 0)
        return {"ElapsedRaw": str(seconds), "Elapsed": _span(seconds)}

    def _tres(self, held: dict[str, int]) -> str:
        if not held:
            return ""
        named = [f"gres/gpu:{kind}={width}" for kind, width in held.items() if kind]
        total = [f"gres/gpu={sum(held.values())}"] if "" in held or self.typed != "typed" else []
        return ",".join(["billing=8", "cpu=8", *total, *named, "mem=64G", "node=1"])

    def _date(self, at: int) -> str:
        local = (self.began + timedelta(seconds=at)).astimezone(ZoneInfo(ZONE))
        return local.strftime("%Y-%m-%dT%H:%M:%S")


def _overlaps(run: Run, begin: int, end: int) -> bool:
    """Say whether sacct lists the run for a period: it was in the system then."""
    over = run.ended if run.started is not None else (None if run.state == "PENDING" else run.submitted)
    return run.submitted < end and (over is None or over >= begin)


def _span(seconds: int) -> str:
    days, rest = divmod(seconds, 24 * HOUR_S)
    clock = f"{rest // HOUR_S:02}:{rest % HOUR_S // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
