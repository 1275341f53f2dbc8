"""The commands `serve` and `store …`, and the list of the service's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eunomia.cli.check import check_policies_of_files
from eunomia.cli.command import Output, command
from eunomia.cli.errors import FAILED
from eunomia.cli.options import argument, flag, group, option
from eunomia.cli.service_access import login, token_app
from eunomia.cli.service_cluster import cluster, limits, notify_app, site_app, summary, tenants, throughputs
from eunomia.cli.service_forecasts import forecast_app, when
from eunomia.cli.service_jobs import cancel, hold, job, jobs, logs, release, resubmit, submit, why
from eunomia.cli.service_nodes import drain, maintenance, node_app, nodes, resume
from eunomia.cli.service_usage import audit, usage
from eunomia.inputs.problems import refused

store_app = group("Check, back up, restore and prune the store.")
AuditKeyOption = Annotated[
    Path | None,
    option("FILE", "The key that signed the audit log. Default: audit.key in the state folder.", "--audit-key"),
]
StateOption = Annotated[
    str, option("DIR", "The state folder of the service, or postgresql://user@host/name.", "--state")
]


def _place(state: str) -> Path | str:
    return state if state.startswith(("postgresql://", "postgres://")) else Path(state)


def _audit_key(state: str, path: Path | None) -> bytes | None:
    """Return the key that signed the parts of the audit log; None where there is none in the state folder."""
    from eunomia.service.store.audit_log import KEY_FILE, read_key

    if path is not None and not path.exists():
        raise refused(str(path), None, None, "there is no such file", f"give the file {KEY_FILE} of the state folder")
    place = _place(state)
    return read_key(path or (place / KEY_FILE if isinstance(place, Path) else Path(KEY_FILE)))


@store_app.command("check")
@command
def store_check(output: Output, state: StateOption = "state", audit_key: AuditKeyOption = None) -> None:
    """Check the store of a service that is stopped: its file, its seats, its audit log.

    For example: eunomia store check --state state
    """
    from eunomia.service.store import open_store

    key = _audit_key(state, audit_key)
    store = open_store(_place(state), Path(), must_exist=True)
    try:
        found, is_checked = store.problems(key), key is not None or not store.has_audit_parts()
    finally:
        store.close()
    unsigned = "" if is_checked else "; signatures of its audit log were not checked without its key: see --audit-key"
    text = "\n".join(found) or f"the store is sound{unsigned}"
    output.show({"problems": found, "signatures_checked": is_checked}, text)
    if found:
        raise typer.Exit(FAILED)


@store_app.command("audit")
@command
def store_audit(
    output: Output,
    files: Annotated[
        list[Path] | None, argument("FILE", "Parts that were taken out of the store; none: only the store is verified.")
    ] = None,
    state: StateOption = "state",
    audit_key: AuditKeyOption = None,
) -> None:
    """Verify the audit log, also while the service runs, list its parts, and verify parts in files against it.

    For example: eunomia store audit /archive/audit-*.jsonl.gz --state state
    """
    from eunomia.service.audit_check import audited

    found = audited(_place(state), _audit_key(state, audit_key), files or [])
    lines = [
        f"{one.first:>10,} – {one.last:<10,}  {one.day}  {'taken away' if one.is_removed else 'in the store'}"
        f"{f', in {one.file}' if one.file else ''}"
        for one in found.parts
    ]
    notes = [] if found.has_key else ["the signatures were not checked: give --audit-key FILE"] * bool(found.parts)
    output.show(found.as_json(), *lines, *notes, *(found.problems or ["the audit log is as it was written"]))
    if found.problems:
        raise typer.Exit(FAILED)


@store_app.command("new-audit-key")
@command
def store_new_audit_key(
    output: Output,
    site: Annotated[Path, argument("SITE.toml", "The site of a service that is stopped.")] = Path("site.toml"),
) -> None:
    """Sign the parts of the audit log with a new key where the old one is lost, and say so in the log.

    For example: eunomia store new-audit-key site.toml
    """
    from eunomia.service.audit_key import replace_lost_key
    from eunomia.service.site import load_site

    found = replace_lost_key(load_site(site))
    text = f"parts that key {found.key} signs from now on: {found.parts:,}, of lost keys {', '.join(found.lost)}"
    output.show(
        {"key": found.key, "lost": [*found.lost], "parts": found.parts, "removed": found.removed}, text,
        *[f"{found.removed:,} of them had been taken away: only their digests were checked"] * bool(found.removed),
    )  # fmt: skip


@store_app.command("backup")
@command
def store_backup(
    output: Output,
    target: Annotated[Path, argument("FILE", "File to write; it must not exist.")],
    state: StateOption = "state",
) -> None:
    """Copy the store into one file, also while the service runs.

    For example: eunomia store backup /backup/monday.db --state state
    """
    from eunomia.service.store.backup import back_up

    back_up(_place(state), target)
    output.show({"backup": str(target)}, f"written: {target}")


@store_app.command("restore")
@command
def store_restore(
    output: Output,
    source: Annotated[Path, argument("FILE", "A file that `store backup` wrote.")],
    state: StateOption = "state",
) -> None:
    """Put a backup in place of the store; the old file is kept beside it.

    For example: eunomia store restore /backup/monday.db --state state
    """
    from eunomia.service.store.backup import put_back, put_back_database

    place = _place(state)
    kept = put_back(source, place) if isinstance(place, Path) else put_back_database(source, place)
    text = f"restored from {source}" + (f"; the old store is {kept}" if kept else "")
    output.show({"restored": str(state), "kept": str(kept) if kept else None}, text)


@store_app.command("export")
@command
def store_export(
    output: Output,
    site: Annotated[Path, argument("SITE.toml", "The site of a service that is stopped.")],
    target: Annotated[Path, argument("FILE", "A record.jsonl.gz to write; it must not exist.")],
) -> None:
    """Write what the service decided as a record, for replay and explain.

    For example: eunomia store export site.toml day.jsonl.gz, and then eunomia replay day.jsonl.gz
    """
    from eunomia.service.site import load_site
    from eunomia.service.store.backup import export

    count = export(load_site(site), target)
    output.show({"moments": count}, f"{count:,} moments written to {target}")


@store_app.command("prune")
@command
def store_prune(
    output: Output,
    site: Annotated[Path, argument("SITE.toml", "The site, which says how long things are kept.")] = Path("site.toml"),
    dry_run: Annotated[
        bool, flag("Say what would go, and how much it is; also while the service runs.", "--dry-run")
    ] = False,
) -> None:
    """Remove what the site keeps no longer, as a running service does by itself: jobs, folders, logs, decisions.

    The service must be stopped, except for --dry-run. For example: eunomia store prune site.toml --dry-run
    """
    from eunomia.service.pruning import prunable, prune
    from eunomia.service.site import load_site

    wanted = load_site(site)
    found = prunable(wanted) if dry_run else prune(wanted)
    verb = "would be removed" if dry_run else "removed"
    lines = [f"{one.count:>12,}  {one.size / 2**20:>10,.1f} MiB  {one.what}" for one in found]
    rows = [{"what": one.what, "count": one.count, "bytes": one.size} for one in found]
    output.show({"dry_run": dry_run, "removed": rows}, f"{verb}:", *lines)


@store_app.command("orphans")
@command
def store_orphans(
    output: Output,
    state: StateOption = "state",
    jobs_folder: Annotated[
        Path | None, option("DIR", "The jobs' folder. Default: jobs in the state folder.", "--jobs")
    ] = None,
    end: Annotated[list[str] | None, option("JOB", "Stop this one; repeatable.", "--end")] = None,
    grace_s: Annotated[float, option("SECONDS", "Time to save.", "--grace", min=0.0)] = 10.0,
) -> None:
    """List gangs of this machine that the store does not know to run, as after a backup was put back; or stop them.

    For example: eunomia store orphans --state state --end 12-k3f9a
    """
    from eunomia.service.orphans import end_orphans, orphans

    place = _place(state)
    folder = jobs_folder or (place / "jobs" if isinstance(place, Path) else Path("jobs"))
    found = orphans(place, folder)
    stopped = end_orphans(found, end or [], grace_s, folder)
    rows = [{"job": one.job_id, "start": one.epoch, "seats": [*one.seats], "process": one.supervisor[0],
             "doubt": one.doubt, "stopped": one.job_id in stopped} for one in found]  # fmt: skip
    lines = [
        f"{one.job_id}  start {one.epoch}, seats {', '.join(map(str, one.seats)) or 'unknown'}"
        + f"; {one.doubt}" * bool(one.doubt)
        + "; is being stopped" * (one.job_id in stopped)
        for one in found
    ]
    output.show({"orphans": rows}, "\n".join(lines) or "every gang that runs here is known to the store")


@command
def serve(
    output: Output,
    site: Annotated[Path, argument("SITE.toml", "The site: see docs/service.md.")],
    check: Annotated[bool, flag("Check the site and print the plan; start nothing.", "--check")] = False,
    stop_jobs: Annotated[
        bool, flag("At the end, stop the jobs with a checkpoint; they go on at the next start.", "--stop-jobs")
    ] = False,
) -> None:
    """Run the scheduler of a cluster.

    Takes jobs from many users over HTTP, decides with the site's policy, and runs them on this machine. Whatever ends
    it, no accepted job is lost. For example: eunomia serve site.toml
    """
    from eunomia.service.server import check_extra
    from eunomia.service.server import serve as run
    from eunomia.service.site import load_site, plan

    wanted = load_site(site)
    if check:
        check_extra()
        output.show({"plan": plan(wanted)}, "\n".join(plan(wanted)))
        return
    if isinstance(wanted.place, Path) and not wanted.place.exists():  # a service that has run goes on
        check_policies_of_files([wanted.setup.scenario])
    code = run(wanted, announce=lambda line: print(line, flush=True), stop_jobs=stop_jobs)
    if code:
        raise typer.Exit(code)


@site_app.command("init")
@command
def site_init(
    output: Output,
    site: Annotated[Path, argument("SITE.toml", "The file to write.")] = Path("site.toml"),
    accelerators: Annotated[str, option("TYPE=N,…", "What this machine has; without it, the driver is asked.")] = "",
    force: Annotated[bool, flag("Replace a file that exists.", "--force")] = False,
) -> None:
    """Write the site file of a new site.

    Its policy suits plain scripts: what runs is not stopped, and who used little lately is first. For example: eunomia
    site init site.toml --accelerators v100=4
    """
    from eunomia.inputs.atomic_write import check_place, write_output
    from eunomia.inputs.problems import InvalidInput
    from eunomia.service.site import load_site, plan
    from eunomia.service.starter_site import starter_site

    check_place(site, force=force, endings=(".toml",))
    before = site.read_bytes() if site.exists() else None
    text = starter_site(accelerators)
    write_output(site, text.encode())
    try:
        lines = plan(load_site(site))
    except InvalidInput:
        if before is None:
            site.unlink()
        else:
            write_output(site, before)
        raise
    output.show({"file": str(site), "plan": lines}, "\n".join([*lines, f"wrote {site}: eunomia serve {site}"]))


def add_service_commands(app: typer.Typer) -> None:
    """Add the commands of the service."""
    for one in (serve, submit, resubmit, jobs, job, cancel, hold, release, logs, why, when, cluster, nodes, drain,
                    resume, maintenance, tenants, limits, summary, throughputs, login, usage, audit):  # fmt: skip
        app.command()(one)
    app.command("queue", help="List jobs, the newest first: another name of `jobs`. For example: eunomia queue")(jobs)
    app.add_typer(forecast_app, name="forecast")
    app.add_typer(node_app, name="node")
    app.add_typer(notify_app, name="notify")
    app.add_typer(token_app, name="token")
    app.add_typer(site_app, name="site")
    app.add_typer(store_app, name="store")
