"""What a run and a log must be like before one is played: all errors are reported at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eunomia.inputs.problems import Problems
from eunomia_reproduction.gavel.fields import (
    OBJECT,
    SEE,
    YES_NO,
    Field,
    Wrong,
    between,
    is_text,
    whole,
    wrong_entries,
    wrong_fields,
)

ALPHA = "_alpha="  # what stands between the name of a policy and its one parameter
_JOB, _PAIR = re.compile(r"[0-9]+"), re.compile(r"\(([0-9]+), ?([0-9]+)\)")
_ABOVE = 1e-300
_SLACK = 1e-6  # of a share: what a solver may leave
_PRINTED = "give what the simulator printed"
_SECONDS = Field(between(0), "must be a number of seconds, at least 0", _PRINTED)
_SAID = Field(between(0), "must be a number, at least 0, or null", _PRINTED, optional=True)
_JCT = Field(between(0), "must be a number of seconds, or null for a dropped job", _PRINTED, optional=True)
_LEASES = Field(whole(0), "must be a whole number, or null", _PRINTED, optional=True)
_RUN = {
    "id": Field(is_text, "must be a text", "give each run a name of its own"),
    "policy": Field(is_text, "must be a text", "give the policy's name on the command line"),
    "policy_name": Field(is_text, "must be a text", "give the policy's name inside the simulator"),
    "seed": Field(whole(0), "must be a whole number, at least 0", "give the seed of the run"),
    "round_seconds": Field(between(_ABOVE), "must be a number above 0", "give the longest round, such as 360"),
    "global_queue": YES_NO,
    "makespan": _SECONDS,
    "utilization": _SAID,
    "total_cost_usd": _SAID,
    "lease_extensions": _LEASES,
    "lease_opportunities": _LEASES,
    "num_jobs_in_trace": Field(whole(0), "must be a whole number, or null", "count the lines of the trace", True),
}
_DRAWN = {
    "rate_per_hour": Field(between(_ABOVE), "must be a number above 0", SEE),
    "multi_gpu": YES_NO,
    "multi_priority": YES_NO,
    "ideal": YES_NO._replace(optional=True),
}
_COUNT = Field(whole(0, 10**6), "must be a whole number, at most a million", "count the accelerators of each type")
_SERVER = Field(whole(1, 10**6), "must be a whole number above 0", "say how many accelerators a server has")
_SHARE = Field(between(-_SLACK, 1 + _SLACK), "must be a share of time, 0 … 1", SEE)
_PRICE = Field(between(0), "must be a number, at least 0", "give US$ per accelerator-hour")


def check_run(run: Mapping[str, Any], name: str, row: int, folder: Path, problems: Problems) -> None:
    """Note all that is wrong with a run, number `row` of its file."""
    for wrong in _of_run(run, folder):
        rule = f"{wrong.rule} (run {name})"
        problems.add(rule, wrong.fix, row=row, column=wrong.column, value=wrong.shown)


def check_log(events: Any, name: str, problems: Problems) -> None:
    """Note all that is wrong with the log of a run; rows are numbers of its events."""
    if not isinstance(events, list):
        wrong = Wrong(f"logs.{name}", events, "must be a list", "give [event, …]")
        problems.add(wrong.rule, wrong.fix, column=wrong.column, value=wrong.shown)
        return
    for row, event in enumerate(events, start=1):
        for wrong in _of_event(event):
            rule = f"{wrong.rule} (log of {name})"
            problems.add(rule, wrong.fix, row=row, column=wrong.column, value=wrong.shown)


def check_prices(prices: Any, problems: Problems) -> None:
    """Note all that is wrong with the prices of a file."""
    for wrong in wrong_entries("provenance.prices_usd_per_gpu_hour", prices, _PRICE):
        problems.add(wrong.rule, wrong.fix, column=wrong.column, value=wrong.shown)


# ---- runs ------------------------------------------------------------------------------------------------------------


def _of_run(run: Mapping[str, Any], folder: Path) -> Iterator[Wrong]:
    yield from wrong_fields(run, _RUN)
    yield from _of_cluster(run.get("cluster"), run.get("gpus_per_server"))
    yield from _of_jobs(run.get("jct"), run.get("window"))
    jct = run.get("jct")
    served = isinstance(jct, dict) and any(value is not None for value in jct.values())
    yield from wrong_fields(run, {"average_jct": _SECONDS._replace(optional=not served)})
    yield from _of_workload(run.get("trace"), run.get("generated"), folder)
    yield from _of_parameter(run.get("policy"))


def _of_cluster(cluster: Any, per_server: Any) -> Iterator[Wrong]:
    wrong = [*wrong_entries("cluster", cluster, _COUNT)]
    if not isinstance(per_server, dict):
        wrong.append(OBJECT.wrong("gpus_per_server", per_server))
    if not wrong:
        used = {kind: _SERVER for kind, count in cluster.items() if count}
        wrong += wrong_fields(per_server, used, "gpus_per_server.")
        if not wrong and not any(cluster[kind] // per_server[kind] for kind in used):
            fix = "give at least one type as many accelerators as a server of it has"
            wrong.append(Wrong("cluster", cluster, "must have a server", fix))
    yield from wrong


def _of_jobs(jct: Any, window: Any) -> Iterator[Wrong]:
    wrong = [*wrong_entries("jct", jct, _JCT)]
    if isinstance(jct, dict):
        wrong += [Wrong(f"jct.{key}", key, "must be called by a job's number", SEE) for key in jct if not _is_job(key)]
    yield from wrong
    if window is None:
        return
    if not (isinstance(window, list) and len(window) == 2 and all(map(whole(0), window)) and window[0] < window[1]):
        rule = "must be two whole numbers, the first below the second"
        yield Wrong("window", window, rule, "give [first job, last job + 1], or null for all")
    elif not wrong:
        missing = next((job for job in range(*window) if str(job) not in jct), None)
        if missing is not None:
            rule = f"has job {missing} in it, of which jct says nothing"
            yield Wrong("window", window, rule, "give a window all of whose jobs ended")


def _is_job(name: str) -> bool:
    return _JOB.fullmatch(name) is not None


def _of_workload(trace: Any, drawn: Any, folder: Path) -> Iterator[Wrong]:
    if drawn is None:
        if not (isinstance(trace, str) and _is_file(folder / "traces" / trace)):
            yield Wrong("trace", trace, "must name a file in traces/", "add the file")
    elif isinstance(drawn, dict):
        yield from wrong_fields(drawn, _DRAWN, "generated.")
    else:
        yield OBJECT.wrong("generated", drawn)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def _of_parameter(policy: Any) -> Iterator[Wrong]:
    if not isinstance(policy, str) or ALPHA not in policy:
        return
    name, _, alpha = policy.partition(ALPHA)
    if name != "allox" or not _is_part(alpha):
        yield Wrong("policy", policy, "has a parameter that no policy takes", "only allox has one: allox_alpha=0 … 1")


def _is_part(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


# ---- logs ------------------------------------------------------------------------------------------------------------


def _of_event(event: Any) -> Iterator[Wrong]:
    fix = 'give {"t": …, "allocation": …} or {"t": …, "assign": …}'
    if not isinstance(event, dict):
        yield Wrong("event", event, OBJECT.rule, fix)
        return
    yield from wrong_fields(event, {"t": _SECONDS})
    if not event.keys() & {"allocation", "assign"}:
        yield Wrong("event", event, "must have an allocation or an assign", fix)
    if "allocation" in event:
        yield from _of_allocation(event["allocation"])
    if "assign" in event:
        yield from _of_assign(event["assign"])


def _of_allocation(allocation: Any) -> Iterator[Wrong]:
    yield from _of_names("allocation", allocation)
    for key, shares in allocation.items() if isinstance(allocation, dict) else ():
        yield from wrong_entries(f"allocation.{key}", shares, _SHARE)
        pair = _PAIR.fullmatch(key)
        if pair and not set(pair.groups()) <= allocation.keys():
            yield Wrong(f"allocation.{key}", key, "must pair jobs that have entries of their own", "add them")


def _of_assign(assign: Any) -> Iterator[Wrong]:
    yield from _of_names("assign", assign)
    for key, seats in assign.items() if isinstance(assign, dict) else ():
        if not (isinstance(seats, list) and seats and all(map(whole(0), seats))):
            yield Wrong(f"assign.{key}", seats, "must be a list of accelerators", "give their numbers, from 0 on")


def _of_names(column: str, said: Any) -> Iterator[Wrong]:
    if not isinstance(said, dict):
        yield OBJECT.wrong(column, said)
        return
    for key in said:
        if not _is_job(key) and not _PAIR.fullmatch(key):
            yield Wrong(f"{column}.{key}", key, 'must be called by a job or a pair, "3" or "(3, 4)"', SEE)
