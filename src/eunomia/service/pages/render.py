"""HTML of the dashboard. Every text is escaped where it is put into a page; there is no other way to put one in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlencode

from eunomia.service.job_row import STATES, TERMINAL

PAGES = (("/", "Now"), ("/jobs", "Jobs"), ("/tenants", "Tenants"), ("/nodes", "Nodes"), ("/policy", "Policy"))


SPANS = ((1, "last day"), (7, "last 7 days"), (30, "last 30 days"), (365, "last year"))  # of the page of tenants
RATIOS = (("ltgf", "LTGF"), ("rho_mean", "mean ρ"), ("rho_max", "worst ρ"))
ON_SEATS, WAITING = ("starting", "running", "stopping"), ("pending", "preempted", "held")


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def html(value: object) -> Html:
    """Return a value as HTML; text is escaped, without control characters."""
    if isinstance(value, Html):
        return value
    text = "".join(c if c.isprintable() or c == "\n" else "�" for c in str(value))
    return Html(escape(text, quote=True))


def page(title: str, *parts: object, user: str = "", live: bool = True) -> str:
    """Return a whole page."""
    links = " ".join(
        f'<a href="{path}"{" aria-current=page" if name == title else ""}>{name}</a>' for path, name in PAGES if user
    )
    out = f'<form method="post" action="/logout"><button>Log out {html(user)}</button></form>' if user else ""
    script = '<script src="/live.js" defer></script>' if live else ""
    body = "".join(html(part) for part in parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html(title)} – Eunomia</title><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="/style.css">{script}</head>'
        f"<body><header><b>Eunomia</b><nav>{links}</nav>{out}</header>"
        f"<main><h1>{html(title)}</h1>{body}</main></body></html>"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "none") -> Html:
    """Return a table."""
    body = "".join(f"<tr>{''.join(map(_cell, heads, row))}</tr>" for row in rows)
    if not body:
        return Html(f'<p class="soft">{html(empty)}</p>')
    head = "".join(f'<th scope="col">{html(name)}</th>' for name in heads)
    return Html(f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def _cell(head: str, cell: object) -> str:
    """Return a cell, which on a narrow screen stands after its head."""
    kind = " class=n" if isinstance(cell, int | float) else ""
    return f'<td{kind} data-head="{html(head)}">{html(_number(cell))}</td>'


def _number(cell: object) -> object:
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else cell


def login_page(wrong: bool = False) -> str:
    """Return the page that turns a token into a cookie."""
    said = Html("<p><strong>This token is not known.</strong></p>") if wrong else Html("")
    form = Html(
        '<form method="post" action="/login"><label>Token <input name="token" type="password" autocomplete="off" '
        'required autofocus></label><button>Log in</button></form><p class="soft">The operator\'s token is in the '
        "state folder; it makes others: eunomia token create.</p>"
    )
    return page("Log in", said, form, live=False)


def moment(at: str | None) -> Html | str:
    """Return a time of the API, such as 2026-11-23T04:57:16.086Z, to the second."""
    if at is None:
        return "not foreseen"
    return Html(f'<time datetime="{html(at)}">{html(at[:10])} {html(at[11:19])} UTC</time>')


def job_link(job: dict[str, Any]) -> Html:
    """Return a link to a job, by its name."""
    return Html(f'<a href="/jobs/{quote(job["id"], safe="")}">{html(job["name"])}</a>')


def job_table(jobs: Iterable[dict[str, Any]]) -> Html:
    """Return a table of jobs."""
    rows = [
        (
            job_link(job),
            job["tenant"],
            job["state"],
            job["accelerators"],
            _seats(job),
            moment(job["since"]),
            job["reason"] or "",
        )
        for job in jobs
    ]
    return table(("job", "tenant", "state", "accelerators", "on", "since", "reason"), rows, "no jobs")


def _seats(job: dict[str, Any]) -> str:
    return f"{job['type']} {', '.join(map(str, job['seats']))}" if job["seats"] else ""


def now_page(
    user: str, cluster: dict[str, Any], running: list[Any], waiting: list[Any], decided: list[Any],
    throughputs: Sequence[dict[str, Any]] = (),
) -> str:  # fmt: skip
    """Return what happens now; `throughputs` are those that are learnt."""
    types = [
        (
            name,
            one["busy"],
            one["free"],
            one["taken"],
            one["total"],
            Html(f'<meter max="{one["total"]}" value="{one["busy"]}">{one["busy"]}</meter>'),
        )
        for name, one in cluster["types"].items()
    ]
    states = table(("state", "jobs"), [(state, cluster["jobs"][state]) for state in STATES if state in cluster["jobs"]])
    decisions = [
        (moment(one["at"]), _counted(one["events"]), said) for one in decided if (said := _decided(one["decisions"]))
    ]
    return page(
        "Now",
        table(("type", "busy", "free", "taken", "of", ""), types),
        Html("<h2>Running</h2>"), job_table(running), _more(cluster["jobs"], len(running), ON_SEATS),
        Html("<h2>Waiting, and why</h2>"), job_table(waiting), _more(cluster["jobs"], len(waiting), WAITING),
        Html("<h2>Jobs by state</h2>"), states,
        Html(f"<h2>Last decisions of {html(cluster['policy'])}</h2>"),
        table(("at", "after", "decided"), decisions, "none yet"),
        *_speeds(throughputs),
        user=user,
    )  # fmt: skip


def _speeds(throughputs: Sequence[dict[str, Any]]) -> list[Html]:
    """Return a table of the throughputs that were measured; nothing where none was."""
    rows = [
        (one["job_type"], one["scale_factor"], one["type"], f"{one['steps_per_s']:.4g}")
        for one in throughputs
        if one["origin"] == "measured"
    ]
    heads = ("job type", "accelerators", "on", "steps/s")
    return [Html("<h2>Speeds learnt from jobs</h2>"), table(heads, rows)] if rows else []


def _more(count: dict[str, int], shown: int, states: Sequence[str]) -> Html:
    """Return links to the jobs in these states, if more than those that are shown are in one of them."""
    there = {state: count[state] for state in states if count.get(state)}
    if sum(there.values()) <= shown:
        return Html("")
    links = ", ".join(f'<a href="/jobs?state={state}">{number:,} {state}</a>' for state, number in there.items())
    return Html(f'<p class="soft">The {shown} submitted first; in all {links}.</p>')


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
    options = "".join(
        f'<option value="{state}"{" selected" if given.get("state") == state else ""}>{state}</option>'
        for state in STATES
    )
    form = Html(
        f'<form><label>State <select name="state"><option value="">all</option>{options}</select></label>'
        f'<label>Label <input name="label" value="{html(given.get("label", ""))}" placeholder="key=value"></label>'
        "<button>Show</button></form>"
    )
    kept = {key: value for key, value in given.items() if key in ("state", "label") and value}
    more = Html("")
    if following:
        more = Html(f'<p><a href="/jobs?{html(urlencode({**kept, "cursor": following}))}">Older jobs</a></p>')
    return page("Jobs", form, job_table(jobs), more, user=user)


def job_page(
    user: str,
    job: dict[str, Any],
    why: dict[str, Any],
    log: str,
    history: list[dict[str, Any]],
    forecast: dict[str, Any] | None = None,
) -> str:
    """Return one job: its state, why it waits, when it starts, its history, the end of its log."""
    facts = [
        ("id", job["id"]), ("state", Html(f"{html(job['state'])} since {moment(job['since'])}")),
        ("of", f"{job['owner']}, {job['tenant']}"),
        ("command", " ".join(job["spec"]["command"])), ("accelerators", str(job["accelerators"])), ("on", _seats(job)),
        *([("memory of each", memory)] if (memory := memory_text(job)) else []),
        ("saved steps", f"{job['steps']:g}"), ("start number", str(job["epoch"])), ("reason", job["reason"] or "–"),
    ]  # fmt: skip
    reasons = [f"{one['text']} [{one['code']}]" for one in why["reasons"]]
    if why.get("starts_unchanged"):
        reasons.append(f"it starts at {why['starts_unchanged']} if nothing changes until then")
    reasons += [f"it would run if {text}" for text in why["would_run_if"]]
    facts += [("speed", why["speed"])] if "speed" in why else []
    facts += [("preempted", moment(why["preempted"]["at"]))] if "preempted" in why else []
    act = Html("")
    if job["state"] not in TERMINAL:
        act = Html(
            f'<form method="post" action="/jobs/{quote(job["id"], safe="")}/cancel"><button>Cancel</button></form>'
        )
    past = [(moment(one["at"]), one["kind"], one["reason"]) for one in history]
    return page(
        job["name"], table(("", ""), facts), act,
        Html("<h2>Why it does not run</h2>") if reasons else "",
        table(("reason",), [(text,) for text in reasons]) if reasons else "",
        *_forecast(forecast),
        Html("<h2>History</h2>"), table(("at", "what", "reason"), past),
        Html("<h2>End of the log</h2>"), Html(f"<pre>{html(log or 'nothing yet')}</pre>"),
        user=user,
    )  # fmt: skip


def memory_text(job: dict[str, Any]) -> str:
    """Return what a job asked for and used of each accelerator's memory; "" if neither is known."""
    asked, used = job["accelerator_memory_gib"], job["used_memory_gib"]
    parts = [] if asked is None else [f"{asked:g} GiB asked or learnt"]
    return ", ".join(parts if used is None else [*parts, f"{used:.1f} GiB used"])


def _forecast(forecast: dict[str, Any] | None) -> list[Html]:
    """Return when a job starts and finishes, with the 80 % interval; {} is one that is still computed."""
    if forecast == {}:
        return [Html('<h2>When</h2><p class="soft pending">It is being computed.</p>')]
    if forecast is None or not (forecast["start"] or forecast["finish"]):
        return []
    rows = [
        (name, *(moment(forecast[name][point]) for point in ("p50", "p10", "p90")))
        for name in ("start", "finish")
        if forecast[name] is not None
    ]
    return [
        Html("<h2>When</h2>"),
        table(("", "most likely", "in 80 % of cases from", "to"), rows),
        Html(f'<p class="soft">{html(forecast["how"])}; it assumes: {html("; ".join(forecast["assumes"]))}.</p>'),
    ]


def tenants_page(user: str, found: dict[str, Any]) -> str:
    """Return who received what of what it deserved, and how fair the finish times of its jobs were, over time."""
    width, title = found["hours_of_a_period"], dict(SPANS).get(found["days"], f"{found['days']} days")
    rows = []
    for one in found["tenants"]:
        sums, periods = one["sums"], one["periods"]
        rows.append((
            one["tenant"], f"{one['weight']:g}", "–" if one["quota"] is None else f"{one['quota']:g}", one["holds"],
            f"{sums['deserved_accelerator_s'] / 3600:,.2f}", f"{sums['received_accelerator_s'] / 3600:,.2f}",
            _bars(periods), *(_line(name, sums[key], [part[key] for part in periods]) for key, name in RATIOS),
        ))  # fmt: skip
    heads = ("tenant", "weight", "quota", "holds", "deserved, h", "received, h", "over time", *dict(RATIOS).values())
    spans = " ".join(
        f"<b>{html(name)}</b>" if days == found["days"] else f'<a href="/tenants?days={days}">{html(name)}</a>'
        for days, name in SPANS
    )
    part = "hour" if width == 1 else "day" if width == 24 else f"{width} hours"
    note = Html(
        f'<p class="soft">In the {html(title)}, a bar or a point for each {part}, the newest at the right. Bars are '
        "the accelerator-hours that the tenant received, the line what it deserved. LTGF is received ÷ deserved: "
        "below the dashed line at 1 it got less than its part. ρ is the time that a job took, from submission to its "
        "end without holds, ÷ the time that it would take alone on an equal part of the cluster, among the jobs there "
        "were: above the dashed line at 1 it did worse than that. It is of jobs that succeeded, when they ended.</p>"
    )
    return page("Tenants", Html(f"<p>{spans}</p>"), table(heads, rows, "no tenants yet"), note, user=user)


def _bars(periods: list[dict[str, Any]]) -> Html:
    """Return a small picture of what was received and deserved in each period."""
    pairs = [(part["received_accelerator_s"], part["deserved_accelerator_s"]) for part in periods]
    most = max((max(pair) for pair in pairs), default=0.0) or 1.0
    bars = "".join(
        f'<rect x="{5 * n}" y="{28 - 28 * got / most:.1f}" width="4" height="{28 * got / most:.1f}"/>'
        for n, (got, _) in enumerate(pairs)
    )
    line = " ".join(f"{5 * n + 2},{29 - 28 * due / most:.1f}" for n, (_, due) in enumerate(pairs))
    said = f"received {pairs[-1][0] / 3600:.2f}, deserved {pairs[-1][1] / 3600:.2f} accelerator-hours in the last one"
    return _picture(f'{bars}<polyline points="{line}"/>', len(pairs), said)


def _line(name: str, overall: float | None, values: list[float | None]) -> Html:
    """Return a ratio, and a small picture of it over time with a line at 1; – where it is never known."""
    known = [(n, value) for n, value in enumerate(values) if value is not None]
    if overall is None or not known:
        return Html("–")
    low, high = min(value for _, value in known), max(value for _, value in known)
    most = max(high, 2.0)
    points = [(5 * n + 2, 29 - 28 * value / most, n) for n, value in known]
    one = 29 - 28 / most
    parts = [f'<line x1="0" x2="{5 * len(values)}" y1="{one:.1f}" y2="{one:.1f}"/>']
    for _, run in groupby(enumerate(points), lambda pair: pair[1][2] - pair[0]):  # unbroken stretches
        parts.append(f'<polyline points="{" ".join(f"{x},{y:.1f}" for _, (x, y, _) in run)}"/>')
    parts += [f'<circle cx="{x}" cy="{y:.1f}" r="1.5"/>' for x, y, _ in points]
    said = f"{name} between {low:.2f} and {high:.2f}, {known[-1][1]:.2f} at the end"
    return Html(f"{overall:.2f} {_picture(''.join(parts), len(values), said)}")


def _picture(parts: str, count: int, said: str) -> Html:
    return Html(
        f'<svg class="curve" viewBox="0 0 {5 * count} 30" width="{4 * count}" height="30" role="img" '
        f'aria-label="{html(said)}"><title>{html(said)}</title>{parts}</svg>'
    )


def nodes_page(user: str, nodes: list[dict[str, Any]], is_operator: bool) -> str:
    """Return the nodes; operators may drain them, and see which jobs would move."""
    rows = []
    for one in nodes:
        action = "drain" if one["state"] == "up" else "resume"
        button = Html(
            f'<form method="post" action="/nodes/{quote(one["name"], safe="")}/{action}">'
            f"<button>{action}</button></form>"
        )
        moved = f"would move {len(one['jobs'])}: {' '.join(one['jobs'])}" if one["jobs"] else ""
        rows.append((one["name"], one["type"], one["accelerators"], one["free"], one["state"],
                     "; ".join([one["reason"] or "", *(f"{n}: {who}" for n, who in one["taken"].items()),
                                *(f"{n}: hardly used" for n in one["idle"])]).strip("; "),
                     moved,
                     button if is_operator else ""))  # fmt: skip
    return page(
        "Nodes", table(("node", "type", "accelerators", "free", "state", "reason", "jobs", ""), rows), user=user
    )


def policy_page(
    user: str,
    policy: dict[str, Any],
    latency: Sequence[float],
    forecasts: dict[str, Any] | None = None,
    what_if: dict[str, Any] | None = None,
) -> str:
    """Return the policy, its parameters, how long decisions took, how good forecasts were, and the what-if form."""
    found = sorted(latency) or [0.0]
    latency_text = f"median {found[len(found) // 2] * 1e3:.1f} ms, longest {found[-1] * 1e3:.1f} ms"
    facts = [
        ("name", policy["name"]), ("objective", policy["objective"]), ("answers", policy["door"]),
        ("parameters", ", ".join(f"{key} = {value}" for key, value in policy["parameters"].items()) or "none"),
        ("asked", f"{policy['asked']:,} times"),
        ("turns, decision and commit", latency_text),
        ("certificate", "none" if policy["certificate"] is None else str(policy["certificate"])),
    ]  # fmt: skip
    if forecasts is not None and forecasts["start_coverage"] is not None:
        held = f"{forecasts['start_coverage']:.0%} of {forecasts['jobs']:,} starts were in their 80 % interval"
        facts.append(("forecasts", held))
    form = Html(
        '<h2>What if</h2><form action="/policy">'
        '<label>Another policy <input name="try_policy" placeholder="las"></label>'
        '<label>Nodes more or fewer <input name="try_nodes" placeholder="v100=-1"></label>'
        '<label>A further job of so many accelerators <input name="try_gpus" inputmode="numeric"></label>'
        '<button>Play it</button></form><p class="soft">One of them; nothing is changed.</p>'
    )
    return page("Policy", table(("", ""), facts), form, *_what_if(what_if), user=user, live=what_if is None)


def _what_if(found: dict[str, Any] | None) -> list[Html]:
    """Return what a change would do, and for which jobs."""
    if found is None:
        return []
    rows = [
        (one["id"], one["tenant"], moment(one["before"]["finish"]), moment(one["after"]["finish"]))
        for one in found["changed"]
    ]
    parts = [Html(f"<p>{html(found['how'])}.</p>")]
    if found["until"] is not None:
        parts.append(
            Html(f"<p>Both were played up to {html(moment(found['until']))}, and are compared up to then.</p>")
        )
    if found["new_job"] is not None:
        start, finish = (html(moment(found["new_job"][name])) for name in ("start", "finish"))
        parts.append(Html(f"<p>The new job would start: {start}, and finish: {finish}.</p>"))
    parts.append(table(("job", "tenant", "finishes", "then"), rows, "no job would finish a minute sooner or later"))
    tenants = [(one["tenant"], one["sooner"], one["later"], one["unchanged"]) for one in found["tenants"]]
    return [*parts, table(("tenant", "jobs sooner", "later", "as before"), tenants)]
