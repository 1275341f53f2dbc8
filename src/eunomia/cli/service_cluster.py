"""Commands about the cluster: `cluster`, `tenants`, `summary`, `site`, and what it has learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from eunomia.cli.options import argument, flag, group, option
from eunomia.cli.service_session import ServiceSession, WatchOption, client_command, show_lines, show_table

notify_app = group("Try where the service sends mail and webhooks.")
site_app = group("Write a first site file; change the site of a running service.")
NOTHING_LEARNT = 'write kind = "measured" below [belief] of the site, and submit jobs with --job-type'


@client_command
def cluster(session: ServiceSession, watch: WatchOption = False) -> None:
    """Show what is free and busy, and how many jobs there are.

    For example: eunomia cluster --watch
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (
                name,
                str(one["total"]),
                str(one["busy"]),
                str(one["free"]),
                str(one["taken"]),
                str(one["drained"]),
                str(one["draining"]),
            )
            for name, one in found["types"].items()
        ]
        show_table(("type", "accelerators", "busy", "free", "taken", "drained", "draining"), rows, "no accelerators")
        states = ", ".join(f"{count:,} {state}" for state, count in found["jobs"].items())
        show_lines(f"policy {found['policy']}; jobs: {states or 'none'}")
        if found.get("policy_problem"):
            show_lines(f"the policy's last usable answer goes on: {found['policy_problem']}")

    session.watch(lambda: session.client.get("/v1/cluster"), show, watch)


@notify_app.command("test")
@client_command
def notify_test(
    session: ServiceSession,
    target: Annotated[str, argument("TARGET", "mail, or webhook:NAME of the site.")],
    to: Annotated[str, option("ADDRESS", "Where a mail goes.")] = "",
) -> None:
    """Send a test, and print what the receiver answers.

    For example: eunomia notify test mail --to ann@example.org
    """
    found = session.client.send("POST", "/v1/notify/test", {"target": target} | ({"address": to} if to else {}))
    session.show(found, lambda: show_lines(f"{found['target']}: {found['answer']}"))


@client_command
def limits(session: ServiceSession) -> None:
    """Show your limits and those of your tenant, and what counts now; to an operator those of all.

    For example: eunomia limits
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (f"{one['kind']} {one['name']}", one["limit"], f"{one['most']:,g}",
             "" if one["used"] is None else f"{one['used']:,}",
             "" if one["used"] is None else f"{max(one['most'] - one['used'], 0):,}")
            for one in found["limits"]
        ]  # fmt: skip
        show_table(("of", "limit", "at most", "used", "left"), rows, "no limits")

    session.show(found := session.client.get("/v1/limits"), lambda: show(found))


@client_command
def tenants(
    session: ServiceSession,
    days: Annotated[int, option("N", "LTGF and ρ of so many days, counted back from now.", min=1)] = 1,
    watch: WatchOption = False,
) -> None:
    """Show what each tenant received and holds, what it received of what it deserved, and ρ of its jobs.

    LTGF is received ÷ deserved. ρ is the time that a job took ÷ its time alone on an equal part of the cluster.

    For example: eunomia tenants --days 30
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (
                one["tenant"],
                f"{one['weight']:g}",
                "–" if one["quota"] is None else f"{one['quota']:g}",
                str(one["holds"]),
                *(f"{one['sums'][name] / 3600:.2f}" for name in ("deserved_accelerator_s", "received_accelerator_s")),
                *(
                    "–" if (value := one["sums"][name]) is None else f"{value:.2f}"
                    for name in ("ltgf", "rho_mean", "rho_max")
                ),
            )
            for one in found["tenants"]
        ]
        heads = ("tenant", "weight", "quota", "holds", "deserved, h", "received, h", "LTGF", "mean ρ", "worst ρ")
        show_table(heads, rows, "no tenants yet")

    session.watch(lambda: session.client.get(f"/v1/tenants?days={days}"), show, watch)


@client_command
def summary(session: ServiceSession, days: Annotated[int, option("N", "Days to look back.")] = 7) -> None:
    """Sum up who got what in the last days, as plain text that can be mailed.

    For example: eunomia summary --days 7 | mail -s "last week" lab@example.org
    """
    found = session.client.get("/v1/summary", days=days)
    session.show(found, lambda: show_lines(*_summary_lines(found)))


def _summary_lines(found: dict[str, Any]) -> list[str]:
    users = found["users"]
    total = sum(one["accelerator_h"] for one in users)
    span = "day" if found["days"] == 1 else f"{found['days']} days"
    lines = [f"{total:,.1f} accelerator-hours in the last {span}, of jobs that ended or still run"]
    for one in users:
        jobs = ", ".join(f"{count} {state}" for state, count in sorted(one["jobs"].items()))
        share = f"{one['accelerator_h'] / total:.0%}" if total else "–"
        wait_s = one["queueing_mean_s"]
        wait = "none has started" if wait_s is None else f"waited {wait_s / 60:.1f} min to the first start on average"
        lines.append(f"{one['user']} ({one['tenant']}): {one['accelerator_h']:,.1f} h, {share}; {jobs}; {wait}")
    return lines if users else [*lines, "no job ended or runs"]


@site_app.command("apply")
@client_command
def site_apply(
    session: ServiceSession,
    site: Annotated[Path, argument("SITE.toml", "The site file of the running service.")],
    dry_run: Annotated[bool, flag("Only print what would change.", "--dry-run")] = False,
) -> None:
    """Let a running service take its changed site file.

    Tenants and limits change at once. A changed policy or cluster lets running jobs save and go on. What may not change
    while the service runs is refused by name. For example: eunomia site apply site.toml --dry-run
    """
    path = "/v1/site" + ("?dry_run=true" if dry_run else "")
    found = session.client.send("PUT", path, {"file": str(site.resolve())})
    verb = "would change" if dry_run else "changed"
    notes = [f"note: {note}" for note in found.get("notes", ())]
    lines = [*(f"{verb}  {line}" for line in found["changes"]), str(found["effect"]), *notes]
    session.show(found, lambda: show_lines(*lines))


@client_command
def throughputs(
    session: ServiceSession,
    out: Annotated[Path | None, option("FILE.csv", "Write them as a table for [throughputs] source.")] = None,
    force: Annotated[bool, flag("Replace an existing file.", "--force")] = False,
) -> None:
    """Show how fast job types run, as the service has learnt from their jobs.

    A site learns with [belief] kind = "measured". For example: eunomia throughputs --out learnt.csv
    """
    from eunomia.inputs.atomic_write import check_place, write_output
    from eunomia.inputs.problems import refused
    from eunomia.throughputs.estimators.calibration import CalibratedRate, as_csv

    if out is not None:
        check_place(out, force=force, endings=(".csv",), column="--out")
    found = session.client.get("/v1/throughputs")
    rows = [
        CalibratedRate(
            one["type"],
            one["job_type"],
            one["scale_factor"],
            one["steps_per_s"],
            one["steps_per_s_p10"],
            one["steps_per_s_p90"],
            one["origin"] == "measured",
        )
        for one in found["throughputs"]
    ]
    if out is not None and not rows:
        rule = "the service has learnt no throughputs, and a table holds at least one"
        raise refused(str(out), "--out", None, rule, NOTHING_LEARNT)
    if out is not None:
        write_output(out, as_csv(rows).encode(), column="--out")
    session.show(found, lambda: _show(rows, out))


def _show(rows: list[Any], out: Path | None) -> None:
    shown = [
        (
            row.job_type,
            str(row.scale_factor),
            row.type,
            *(f"{each:.4g}" for each in (row.median, row.low, row.high)),
            "measured" if row.is_measured else "estimated",
        )
        for row in rows
    ]
    heads = ("job type", "accelerators", "on", "steps/s", "10 %", "90 %", "")
    show_table(heads, shown, f"nothing is learnt: {NOTHING_LEARNT}")
    if out is not None:
        show_lines(f"table: {out}")
