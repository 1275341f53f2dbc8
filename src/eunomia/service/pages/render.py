"""The pages of the dashboard, from templates, which escape every value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any
from urllib.parse import quote

from eunomia.inputs.html import Templates
from eunomia.service.job_row import STATES, TERMINAL
from eunomia.service.node_texts import describe_node, describe_state

PAGES = (("/", "Now"), ("/jobs", "Jobs"), ("/tenants", "Tenants"), ("/nodes", "Nodes"), ("/policy", "Policy"))
SPANS = ((1, "last day"), (7, "last 7 days"), (30, "last 30 days"), (365, "last year"))  # of the page of tenants
RATIOS = (("ltgf", "LTGF"), ("rho_mean", "mean ρ"), ("rho_max", "worst ρ"))
ON_SEATS, WAITING = ("starting", "running", "stopping"), ("pending", "preempted", "held")
# Kinds of events that pages show; those without such a list show all.
SITE = "PolicyChanged SiteChanged TenantChanged"
SEATS = "starting preempted pending succeeded failed cancelled held NodeLost NodeJoined NodeRemoved"
NODES = (
    f"{SEATS} SiteChanged seat_taken seat_quarantined seat_free seat_idle NodeDraining NodeDrained NodeResumed "
    "AcceleratorDraining AcceleratorDrained AcceleratorResumed MaintenancePlanned MaintenanceCancelled"
)
QUEUE = f"{SEATS} {SITE}"  # what may change the place in the queue
_TEMPLATES = Templates("eunomia.service.pages", path_part=partial(quote, safe=""))


def _page(
    template: str, title: str, user: str = "", *, live: bool = True, follows: Mapping[str, str] | None = None,
    **values: object,
) -> str:  # fmt: skip
    """Return a page; `follows` says to `live.js` which `kinds` of events, or which `job`, the page shows."""
    return _TEMPLATES.render(template, title=title, user=user, live=live, follows=follows or {}, pages=PAGES, **values)


def login_page(wrong: bool = False) -> str:
    """Return the page that turns a token into a cookie."""
    return _page("login.html", "Log in", live=False, wrong=wrong)


def refused_page(user: str, text: str) -> str:
    """Return the page that says why another is not shown."""
    return _page("refused.html", "Refused", user, live=False, text=text)


def now_page(
    user: str, cluster: dict[str, Any], running: list[Any], waiting: list[Any], decided: list[Any],
    throughputs: Sequence[dict[str, Any]] = (),
) -> str:  # fmt: skip
    """Return what happens now; `throughputs` are those that are learnt."""
    count = cluster["jobs"]
    return _page(
        "now.html", "Now", user, cluster=cluster, running=running, waiting=waiting,
        more_running=_more(count, len(running), ON_SEATS), more_waiting=_more(count, len(waiting), WAITING),
        states=[(state, count[state]) for state in STATES if state in count],
        decided=[(one["at"], _counted(one["events"]), said) for one in decided if (said := _decided(one["decisions"]))],
        speeds=[
            (one["job_type"], one["scale_factor"], one["type"], f"{one['steps_per_s']:.4g}")
            for one in throughputs if one["origin"] == "measured"
        ],
    )  # fmt: skip


def _more(count: dict[str, int], shown: int, states: Sequence[str]) -> dict[str, int]:
    """Return how many jobs are in each of these states, if more than those that are shown are in one of them."""
    there = {state: count[state] for state in states if count.get(state)}
    return there if sum(there.values()) > shown else {}


def _counted(kinds: Iterable[str]) -> str:
    """Return kinds of events, with how many of each followed each other."""
    runs = ((kind, len(list(events))) for kind, events in groupby(kinds))
    return ", ".join(f"{count:,} {kind}" if count > 1 else kind for kind, count in runs)


def _decided(decisions: list[dict[str, Any]]) -> str:
    return ", ".join(
        f"{one['is']} {one.get('job_id') or ' '.join(one.get('job_ids', ()))}".strip()
        for one in decisions
        if one["is"] != "WakeAt"  # changes nothing for anybody
    )


def jobs_page(user: str, jobs: list[Any], following: str | None, given: dict[str, str]) -> str:
    """Return a page of jobs, with the filters of the address."""
    kept = {key: value for key, value in given.items() if key in ("state", "label") and value}
    older = {**kept, "cursor": following} if following else {}
    return _page("jobs.html", "Jobs", user, jobs=jobs, states=STATES, given=given, older=older)


def job_page(
    user: str,
    job: dict[str, Any],
    why: dict[str, Any],
    log: str,
    history: list[dict[str, Any]],
    forecast: dict[str, Any] | None = None,
) -> str:
    """Return one job: its state, why it waits, when it starts, its history, the end of its log.

    The forecast {} is one that is still computed.
    """
    reasons = [f"{one['text']} [{one['code']}]" for one in why["reasons"]]
    if why.get("starts_unchanged"):
        reasons.append(f"it starts at {why['starts_unchanged']} if nothing changes until then")
    reasons += [f"it would run if {text}" for text in why["would_run_if"]]
    return _page(
        "job.html", job["name"], user, job=job, why=why, reasons=[(text,) for text in reasons], log=log,
        history=history, forecast=forecast, memory=memory_text(job), is_live=job["state"] not in TERMINAL,
        follows={"job": job["id"], "kinds": QUEUE if job["state"] in WAITING else ""},
    )  # fmt: skip


def memory_text(job: dict[str, Any]) -> str:
    """Return what a job asked for and used of each accelerator's memory; "" if neither is known."""
    asked, used = job["accelerator_memory_gib"], job["used_memory_gib"]
    parts = [] if asked is None else [f"{asked:g} GiB asked or learnt"]
    return ", ".join(parts if used is None else [*parts, f"{used:.1f} GiB used"])


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A small picture of values over periods, 5 wide each and 30 high, and what it shows in words."""

    count: int  # periods
    said: str
    bars: list[tuple[int, str, str]] | tuple[()] = ()  # x, y, height
    one: str = ""  # y of a line at 1; "" = none
    lines: list[list[tuple[int, str]]]
    points: list[tuple[int, str]] | tuple[()] = ()


def tenants_page(user: str, found: dict[str, Any]) -> str:
    """Return who received what of what it deserved, and how fair the finish times of its jobs were, over time."""
    width, days = found["hours_of_a_period"], found["days"]
    return _page(
        "tenants.html", "Tenants", user, found=found, spans=SPANS, ratios=RATIOS, bars_of=_bars, line_of=_line,
        title_of_span=dict(SPANS).get(days, f"{days} days"),
        part="hour" if width == 1 else "day" if width == 24 else f"{width} hours",
    )  # fmt: skip


def _bars(periods: list[dict[str, Any]]) -> Picture:
    """Return a picture of what was received and deserved in each period."""
    pairs = [(part["received_accelerator_s"], part["deserved_accelerator_s"]) for part in periods]
    most = max((max(pair) for pair in pairs), default=0.0) or 1.0
    last_got, last_due = (seconds / 3600 for seconds in pairs[-1])
    return Picture(
        count=len(pairs),
        said=f"received {last_got:.2f}, deserved {last_due:.2f} accelerator-hours in the last one",
        bars=[(5 * n, f"{28 - 28 * got / most:.1f}", f"{28 * got / most:.1f}") for n, (got, _) in enumerate(pairs)],
        lines=[[(5 * n + 2, f"{29 - 28 * due / most:.1f}") for n, (_, due) in enumerate(pairs)]],
    )


def _line(name: str, tenant: dict[str, Any], key: str) -> Picture | None:
    """Return a picture of a ratio over time, with a line at 1; None where it is never known."""
    values = [part[key] for part in tenant["periods"]]
    known = [(n, value) for n, value in enumerate(values) if value is not None]
    if tenant["sums"][key] is None or not known:
        return None
    low, high = min(value for _, value in known), max(value for _, value in known)
    most = max(high, 2.0)
    points = [(5 * n + 2, f"{29 - 28 * value / most:.1f}") for n, value in known]
    unbroken = groupby(enumerate(known), lambda pair: pair[1][0] - pair[0])
    return Picture(
        count=len(values),
        said=f"{name} between {low:.2f} and {high:.2f}, {known[-1][1]:.2f} at the end",
        one=f"{29 - 28 / most:.1f}",
        lines=[[points[at] for at, _ in run] for _, run in unbroken],
        points=points,
    )


def _minute(text: str) -> str:
    """Return a moment of an answer in UTC, to the minute."""
    return f"{text[:10]} {text[11:16]} UTC"


def nodes_page(user: str, nodes: list[dict[str, Any]], is_operator: bool, following: str | None = None) -> str:
    """Return a page of nodes; operators may drain them, and see which jobs would move."""
    rows = []
    for one in nodes:
        rows.append((one, describe_state(one, _minute), "; ".join(describe_node(one, _minute))))
    further = {"cursor": following} if following else {}
    return _page(
        "nodes.html", "Nodes", user, follows={"kinds": NODES}, nodes=rows, is_operator=is_operator, further=further
    )


def policy_page(
    user: str,
    policy: dict[str, Any],
    latency: Sequence[float],
    forecasts: dict[str, Any] | None = None,
    what_if: dict[str, Any] | None = None,
) -> str:
    """Return the policy, its parameters, how long decisions took, how good forecasts were, and the what-if form."""
    found = [seconds * 1e3 for seconds in sorted(latency)] or [0.0]
    facts = [
        ("name", policy["name"]), ("objective", policy["objective"]), ("answers", policy["door"]),
        ("parameters", ", ".join(f"{key} = {value}" for key, value in policy["parameters"].items()) or "none"),
        ("asked", f"{policy['asked']:,} times"),
        ("turns, decision and commit", f"median {found[len(found) // 2]:.1f} ms, longest {found[-1]:.1f} ms"),
        ("certificate", "none" if policy["certificate"] is None else str(policy["certificate"])),
    ]  # fmt: skip
    if forecasts is not None and forecasts["start_coverage"] is not None:
        held = f"{forecasts['start_coverage']:.0%} of {forecasts['jobs']:,} starts were in their 80 % interval"
        facts.append(("forecasts", held))
    return _page(
        "policy.html", "Policy", user, live=what_if is None, follows={"kinds": SITE}, facts=facts, what_if=what_if
    )
