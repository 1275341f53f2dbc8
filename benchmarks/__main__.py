"""Measure every case, print the table and write bench.json: `make bench`, or `python -m benchmarks [CASE …]`.

`python -m benchmarks growth` measures how time grows with the number of jobs (`benchmarks.growth`), which takes long;
`python -m benchmarks service` what a short job costs a service after many have ended, `python -m benchmarks service
decisions` what a decision costs while many wait (`benchmarks.service`), and `python -m benchmarks service year` what a
service keeps and takes that runs for days (`benchmarks.service_year`).
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path

from benchmarks import growth, service, service_year
from benchmarks.side_by_side import Comparison, on_one_thread
from eunomia import policies

CASES = (
    "start_up",
    "placing",
    "level",
    "rounds",
    "simulator",
    "lengths",
    "gavel_policies",
    "auction",
    "quincy_flow",
    "first_call",
    "first_runs",
    "environment",
    "border",
)
POLICIES = [policy for family in growth.FAMILIES for policy in family.policies]
HEAD = f"{'case':<52} {'n':>9} {'ours':>11} {'other':>11} {'ratio':>8}  other"


def _ms(seconds: float) -> str:
    """Return milliseconds with three digits or all that are whole."""
    ms = seconds * 1000
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def _line(found: Comparison) -> str:
    ours, other = _ms(found.ours_s), _ms(found.other_s)
    return f"{found.name:<52} {found.n:>9,} {ours:>11} {other:>11} {found.ratio:>7.2f}×  {found.other}"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("case", nargs="*", metavar="CASE", help=f"which to measure: {', '.join(CASES)}; all if none")
    parser.add_argument("--out", type=Path, help="file to write; bench.json, growth.json or service.json")
    of_growth = parser.add_argument_group("growth and service alone")
    of_growth.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="measure the version of this folder as well"
    )
    of_growth.add_argument("--policy", nargs="+", default=[], help="these alone, of growth and decisions")
    of_growth.add_argument(
        "--jobs", type=int, help="n; by family if left out, 100,000 of service, 20,000 a day of a year"
    )
    of_year = parser.add_argument_group("service year alone")
    of_year.add_argument("--days", type=int, default=20, help="that pass; 20 if left out")
    of_year.add_argument("--history", type=float, default=7.0, help="days for which ended jobs are kept; 7 if left out")
    asked = parser.parse_args()
    known = POLICIES if asked.case == ["growth"] else list(policies.POLICIES)
    if wrong := [name for name in asked.policy if name not in known]:
        parser.error(f"there is no policy {wrong[0]} here; there are {', '.join(known)}")
    if asked.case == ["growth"]:
        growth.main(asked.policy, asked.jobs, asked.against, asked.out or Path("growth.json"))
        return
    if asked.case == ["service", "year"]:
        out = asked.out or Path("year.json")
        sys.exit("\n".join(service_year.main(asked.days, asked.jobs or 20_000, asked.history, out)) or None)
    if asked.case == ["service"]:
        service.main(asked.jobs, asked.against, asked.out or Path("service.json"))
        return
    if asked.case == ["service", "decisions"]:
        service.decisions(asked.policy, asked.jobs, asked.against, asked.out or Path("decisions.json"))
        return
    unknown = sorted(set(asked.case) - set(CASES))
    if unknown:
        parser.error(f"there is no case {', '.join(unknown)}; there are {', '.join(CASES)}, or growth or service alone")
    print("CPU time, median of 3 runs or more after a warm-up; compilation by numba is not counted but in first runs,")
    print("which are once and by the clock.")
    print("ratio = other / ours: above 1 ours is faster, below 1 slower.\n")
    print(HEAD, flush=True)
    found: list[Comparison] = []
    for case in asked.case or CASES:
        for comparison in import_module(f"benchmarks.{case}").cases():
            print(_line(comparison), flush=True)
            found.append(comparison)
    (asked.out or Path("bench.json")).write_text(
        json.dumps([one.as_dict() for one in found], indent=2) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    on_one_thread()
    main()
