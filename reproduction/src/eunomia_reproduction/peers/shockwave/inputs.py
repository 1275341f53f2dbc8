"""Shockwave's trace, and the steps/s of its jobs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia_reproduction.peers.shockwave.regimes import SAMPLES
from eunomia_reproduction.peers.shockwave.training import BatchScalingJob, Rates

TYPE = "v100"  # the name that the table gives to whatever the machines have
FIELDS = 12  # of a line of the trace
MODES = ("static", "gns", "accordion")  # how a batch grows


def read_rates(path: Path) -> Rates:
    """Return steps/s by model, batch size and accelerators. Raises InvalidInput for a file that says none."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))[TYPE]
        named = {
            re.fullmatch(r"\('(.+) \(batch size (\d+)\)', (\d+)\)", key): float(rate) for key, rate in table.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        rule = f"it holds no steps/s by job type on {TYPE!r}: {error!r}"
        raise InvalidInput([Problem(file=str(path), rule=rule, fix="give the file as it was")]) from error
    return {(m[1], int(m[2]), int(m[3])): rate for m, rate in named.items() if m is not None}


def read_trace(path: Path, rates: Rates) -> list[BatchScalingJob]:
    """Return the jobs of a trace, in order of submission. Raises InvalidInput with every line that says no job."""
    jobs: list[BatchScalingJob] = []
    problems: list[Problem] = []
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            jobs.append(_job(len(jobs), text.split("\t"), rates))
        except (ValueError, LookupError) as error:
            rule, fix = f"it says no job of Shockwave's format: {error}", f"give {FIELDS} fields parted by tabs"
            problems.append(Problem(file=str(path), row=line, rule=rule, fix=fix))
    if problems:
        raise InvalidInput(problems)
    return jobs


def _job(number: int, fields: list[str], rates: Rates) -> BatchScalingJob:
    if len(fields) != FIELDS:
        raise ValueError(f"it has {len(fields)} fields")
    kind = re.fullmatch(r"(.+) \(batch size (\d+)\)", fields[0])
    if kind is None or kind[1] not in SAMPLES:
        raise ValueError(f"job type {fields[0]!r} is not known")
    if (kind[1], int(kind[2]), int(fields[6])) not in rates:
        raise ValueError(f"{fields[0]!r} on {fields[6]} accelerators has no throughput")
    if fields[7] not in MODES:
        raise ValueError(f"mode {fields[7]!r} is none of {', '.join(MODES)}")
    if not float(fields[8]) > 0:
        raise ValueError(f"its weight is {fields[8]}, and a weight is above 0")
    return BatchScalingJob(
        name=str(number),
        model=kind[1],
        mode=fields[7],
        accelerators=int(fields[6]),
        submitted=float(fields[11]),
        batch=int(kind[2]),
        total=int(fields[5]),
        weight=float(fields[8]),
        rates=rates,
    )
