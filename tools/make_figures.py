"""Redo the tables of docs/reproduce.md, docs/fairness.md and docs/performance.md, one command after the other.

    make figures DATA=../shared/data            # in the background; out/figures/progress.log tells how far it is
    python tools/make_figures.py --data ../shared/data --only gavel-makespan

A table that is done is not made again while no program changed; of one that was interrupted the finished runs are kept.
--list names what is made, `performance` with its auctions and first calls. Not made, each with a command of its own:
`eunomia reproduce` astraea-parity, estimator, ignorance, prediction, harmony, harmony-ablations, bo, metis,
metis-rewards, symphony, symphony-samples, symphony-decisions, symphony-even, pairs, learned-order; and of
`python -m benchmarks.` auction_bound, themis, whole_run, `proportional --unlucky`, `gavel_policies --alone` and
`philly --weights philly`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from eunomia_reproduction import EXPERIMENTS

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out" / "figures"


class Table(NamedTuple):
    """A table of a page: its name, the command after `python -m`, and about how many minutes of CPU time it takes."""

    name: str
    command: str
    minutes: float


def _reproduced(name: str, words: str) -> Table:
    return Table(name, f"eunomia reproduce {name} {words} --force", EXPERIMENTS[name].minutes)


def _gavel(name: str) -> Table:
    return _reproduced(name, "--reference DATA/gavel --out OUT/gavel")


TABLES = (
    _gavel("gavel-cost"),
    _gavel("gavel-makespan"),
    _reproduced("peers", "--reference DATA/peers --out OUT/peers"),
    _gavel("gavel-parity"),
    _reproduced("deadlines", "--out OUT/deadlines"),
    _reproduced("themis-w2", "--seeds 10 --out OUT/themis"),
    _reproduced("tiresias", "--seeds 10 --reference DATA/peers/tiresias --out OUT/tiresias"),
    _reproduced("themis-w1", "--seeds 10 --out OUT/themis"),
    _reproduced("philly-tables", "--reference DATA/traces/philly --out OUT/philly"),
    Table(
        "philly-fair",
        "eunomia compare examples/philly-fair.toml --set workload.trace=DATA/traces/philly/philly_jobs.csv.gz "
        "--out OUT/philly-fair --force --policy themis --policy astraea --policy philly --policy tiresias",
        8,
    ),
    _reproduced("themis-sweep", "--seeds 10 --out OUT/themis"),
    _reproduced("themis-simulator", "--seeds 10 --out OUT/themis"),
    _gavel("gavel-fig8"),
    _gavel("gavel-ftf"),
    _gavel("gavel-fig10"),
    _gavel("gavel-fig9"),
    _gavel("gavel-cdf"),
    _gavel("gavel-ideal"),
    _gavel("gavel-priorities"),
    _reproduced("astraea", "--seeds 10 --reference DATA/traces/philly --out OUT/astraea"),
    Table("performance", "benchmarks", 14),
    Table("lengths", "benchmarks.lengths --all", 4),
    Table("philly", "benchmarks.philly", 6),
    Table("gavel-policies", "benchmarks.gavel_policies --all --draws 1", 20),
)


def main() -> None:
    """Make the tables that are missing, or say how long they would take."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of reference data")
    parser.add_argument("--only", action="append", choices=[table.name for table in TABLES], help="only this table")
    parser.add_argument("--list", action="store_true", help="say what is missing and how long it takes, and end")
    asked = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    done_file = OUT / "done.json"
    done = json.loads(done_file.read_text()) if done_file.is_file() else {}
    source = _source()
    wanted = [table for table in TABLES if not asked.only or table.name in asked.only]
    missing = [table for table in wanted if done.get(table.name, {}).get("source") != source]
    _tell(
        f"{len(missing)} of {len(wanted)} tables to make: about {sum(t.minutes for t in missing):.0f} min of CPU time"
    )
    for place, table in enumerate(missing):
        words = table.command.replace("DATA", str(asked.data.resolve())).replace("OUT", str(OUT)).split()
        if asked.list:
            print(f"{table.name:16} {table.minutes:5.1f} min  python -m {table.command}")
            continue
        began, used = time.monotonic(), os.times()
        with (OUT / f"{table.name}.log").open("w") as log:
            code = subprocess.run(
                [sys.executable, "-m", *words], cwd=ROOT, stdout=log, stderr=log, check=False
            ).returncode
        now = os.times()
        cpu = (now.children_user + now.children_system - used.children_user - used.children_system) / 60
        left = sum(other.minutes for other in missing[place + 1 :])
        _tell(
            f"{table.name}: exit code {code}, {cpu:.1f} min of CPU time (about {table.minutes:g} expected), "
            f"{(time.monotonic() - began) / 60:.1f} min; {left:.0f} min of CPU time left"
        )
        if code == 0:
            done[table.name] = {"source": source, "cpu_minutes": round(cpu, 2)}
            done_file.write_text(json.dumps(done, indent=1))


def _source() -> str:
    """Return SHA-256 of all programs that a table can depend on."""
    digest = hashlib.sha256()
    for folder in ("src", "reproduction/src", "benchmarks", "examples"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".toml", ".json"):
                digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _tell(line: str) -> None:
    print(line, flush=True)
    with (OUT / "progress.log").open("a") as log:
        print(f"{time.strftime('%F %T')} {line}", file=log)


if __name__ == "__main__":
    main()
