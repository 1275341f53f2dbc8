"""Commands of the service: `serve`, and its clients, from `submit` to `token`."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eunomia.cli.errors import FAILED, MISUSED, handle_errors
from eunomia.cli.options import JsonOption

if TYPE_CHECKING:
    from eunomia.service.client import Client

UNREACHABLE = 3
MOST_CELL = 60  # characters
WATCH_S = 2.0
UrlOption = Annotated[str | None, typer.Option("--url", metavar="URL", help="Where the service is.")]
TokenFileOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="File that holds the token.")
]
WatchOption = Annotated[bool, typer.Option("--watch", help="Show it again every 2 s until Ctrl-C.")]
JobArgument = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
JobsArgument = Annotated[list[str], typer.Argument(metavar="ID…", help="Ids of jobs.")]

token_app = typer.Typer(help="Create, list and revoke tokens.", no_args_is_help=True, rich_markup_mode=None)
store_app = typer.Typer(help="Check, back up and restore the store.", no_args_is_help=True, rich_markup_mode=None)


@contextmanager
def service_errors(as_json: bool) -> Iterator[None]:
    """Print refusals of the service with every problem, and exit with 1; with 3 if it cannot be reached."""
    from eunomia.service.client import ServiceRefusal, Unreachable

    with handle_errors(as_json):
        try:
            yield
        except ServiceRefusal as error:
            if as_json:
                print(json.dumps({"error": {"count": len(error.problems), **error.problem}}))
            else:
                print(f"error: {error}", file=sys.stderr)
                for one in error.problems[:20]:
                    value = "" if one.get("value") is None else f" is {one['value']!r}:"
                    print(f"  {one['field']}{value} {one['rule']}; {one['fix']}", file=sys.stderr)
            raise typer.Exit(MISUSED if error.status in (400, 422) else FAILED) from None
        except Unreachable as error:
            if as_json:
                print(json.dumps({"error": {"count": 0, "title": str(error), "problems": []}}))
            else:
                print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(UNREACHABLE) from None


def _client(url: str | None, token_file: Path | None) -> Client:
    from eunomia.service.client import Client, find_service

    return Client(find_service(url, token_file))


# ---- serve -----------------------------------------------------------------------------------------------------------


def serve(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site: see docs/service.md.")],
    check: Annotated[bool, typer.Option("--check", help="Check the site and print the plan; start nothing.")] = False,
    stop_jobs: Annotated[
        bool,
        typer.Option("--stop-jobs", help="At the end, stop the jobs with a checkpoint; they go on at the next start."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the scheduler of a cluster.

    Takes jobs from many users over HTTP, decides with the site's policy, and runs them on this machine. Whatever ends
    it, no accepted job is lost. For example: eunomia serve site.toml
    """
    with handle_errors(as_json):
        from eunomia.service.server import check_extra
        from eunomia.service.server import serve as run
        from eunomia.service.site import load_site, plan

        wanted = load_site(site)
        if check:
            check_extra()
            print(json.dumps({"plan": plan(wanted)}) if as_json else "\n".join(plan(wanted)))
            return
        code = run(wanted, announce=lambda line: print(line, flush=True), stop_jobs=stop_jobs)
        if code:
            raise typer.Exit(code)


# ---- jobs ------------------------------------------------------------------------------------------------------------


def submit(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND…", help="Program and arguments, after two dashes.")
    ] = None,
    gpus: Annotated[int, typer.Option("--gpus", metavar="N", help="Accelerators of the gang.")] = 1,
    type_: Annotated[str, typer.Option("--type", metavar="A,B", help="Accelerator types, any of which will do.")] = "",
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name for display.")] = None,
    job_type: Annotated[str, typer.Option("--job-type", metavar="TYPE", help="What it trains: its throughputs.")] = "",
    steps: Annotated[float | None, typer.Option(metavar="N", help="Steps that it trains, if known.")] = None,
    duration: Annotated[float | None, typer.Option(metavar="S", help="Seconds that it takes, if known.")] = None,
    retries: Annotated[int, typer.Option(metavar="N", help="Further attempts after a failure.")] = 0,
    max_run: Annotated[float | None, typer.Option("--max-run", metavar="S", help="Longest time on its seats.")] = None,
    weight: Annotated[float, typer.Option(metavar="W", help="Share among its tenant's jobs.")] = 1.0,
    after: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A job that must succeed first. May be repeated.")
    ] = None,
    array: Annotated[str | None, typer.Option(metavar="A-B", help="One job for each index, as in 0-99.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable to set. May be repeated.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label. May be repeated.")] = None,
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder to start in; default: this one.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="JSONL", help="Many jobs, one JSON document a line.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Idempotency key; one is made if left out.")
    ] = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a job.

    Prints its id once it is stored durably. For example: eunomia submit --gpus 4 --name cifar -- python train.py
    """
    with service_errors(as_json):
        jobs: Any
        if file is not None:
            jobs = _lines(file)
        else:
            given = {
                "name": name, "job_type": job_type, "total_steps": steps, "duration_s": duration,
                "retries": retries or None, "max_run_s": max_run, "weight": weight if weight != 1.0 else None,
                "after": after, "array": array,
                "types": [one for one in type_.split(",") if one], "env": _pairs(env, "--env"),
                "labels": _pairs(label, "--label"), "cwd": str((cwd or Path.cwd()).resolve()),
            }  # fmt: skip
            jobs = {"command": command or [], "accelerators": gpus} | {k: v for k, v in given.items() if v}
        answer = _client(url, token_file).submit(jobs, key)
        if as_json:
            print(json.dumps(answer))
            return
        ids = answer.get("ids") or [answer["id"]]
        print("\n".join(ids))


def _lines(file: Path) -> list[Any]:
    from eunomia.inputs.problems import Problems

    found, problems = [], Problems(str(file))
    for row, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except ValueError as error:
                problems.add(f"this is not JSON ({error})", "write one document a line", row=row)
    problems.raise_if_any()
    return found


def _pairs(words: list[str] | None, option: str) -> dict[str, str]:
    from eunomia.inputs.problems import Problems

    problems = Problems("command line")
    for word in words or ():
        if "=" not in word:
            problems.add("has no =", "write NAME=VALUE", column=option, value=word)
    problems.raise_if_any()
    return dict(word.split("=", 1) for word in words or ())


def jobs(
    state: Annotated[str, typer.Option(metavar="A,B", help="Only jobs in these states, such as pending,running.")] = "",
    label: Annotated[str, typer.Option(metavar="KEY=VALUE", help="Only jobs with this label.")] = "",
    tenant: Annotated[str, typer.Option(metavar="NAME", help="Only jobs of this tenant; for operators.")] = "",
    limit: Annotated[int, typer.Option(metavar="N", help="At most so many, the newest first.")] = 50,
    watch: WatchOption = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, the newest first.

    For example: eunomia jobs --state pending,running
    """
    with service_errors(as_json):
        client = _client(url, token_file)
        _shown(
            lambda: client.get("/v1/jobs", state=state, label=label, tenant=tenant, limit=limit),
            lambda found: _table(
                ("id", "name", "tenant", "state", "gpus", "on", "since", "reason"),
                [
                    (
                        one["id"], one["name"], one["tenant"], one["state"], str(one["accelerators"]), _seats(one),
                        _ago(one["since"]), one["reason"] or "",
                    )
                    for one in found["jobs"]
                ],
                "no jobs",
            ),
            as_json, watch,
        )  # fmt: skip


def job(
    job_id: JobArgument, url: UrlOption = None, token_file: TokenFileOption = None, as_json: JsonOption = False
) -> None:
    """Show a job and its history.

    For example: eunomia job 17-k3f9a
    """
    with service_errors(as_json):
        client = _client(url, token_file)
        found = client.get(client.job_path(job_id))
        if as_json:
            print(json.dumps(found))
            return
        _print(f"job {found['id']} ({found['name']}) of {found['owner']}, tenant {found['tenant']}: {found['state']}")
        for line in (
            f"command    {shlex.join(found['spec']['command'])}",
            f"asks for   {found['accelerators']} accelerators",
            f"submitted  {found['submitted_at']}",
            f"started    {found['started_at'] or 'never'}, ended {found['ended_at'] or 'not yet'}",
            f"progress   {found['steps']:g} of {_steps(found)} steps in a checkpoint, start number {found['epoch']}",
            f"reason     {found['reason'] or '–'}",
        ):
            _print(f"  {line}")
        for one in found["history"]:
            _print(f"  {one['at']}  {one['kind']}  {one['reason']}")


def _steps(found: dict[str, Any]) -> str:
    if found["total_steps"] is not None:
        return f"{found['total_steps']:g}"
    return f"about {found['estimated_total_steps']:g} (estimated)"


def cancel(
    job_ids: JobsArgument, url: UrlOption = None, token_file: TokenFileOption = None, as_json: JsonOption = False
) -> None:
    """Cancel jobs; once it is answered they never start again.

    For example: eunomia cancel 17-k3f9a
    """
    _each(job_ids, "DELETE", "", url, token_file, as_json)


def hold(
    job_ids: JobsArgument, url: UrlOption = None, token_file: TokenFileOption = None, as_json: JsonOption = False
) -> None:
    """Hold jobs: running ones save and stop.

    For example: eunomia hold 17-k3f9a
    """
    _each(job_ids, "POST", "/hold", url, token_file, as_json)


def release(
    job_ids: JobsArgument, url: UrlOption = None, token_file: TokenFileOption = None, as_json: JsonOption = False
) -> None:
    """Release held jobs.

    For example: eunomia release 17-k3f9a
    """
    _each(job_ids, "POST", "/release", url, token_file, as_json)


def _each(
    job_ids: list[str], method: str, suffix: str, url: str | None, token_file: Path | None, as_json: bool
) -> None:
    with service_errors(as_json):
        client = _client(url, token_file)
        found = [client.send(method, client.job_path(job_id) + suffix) for job_id in job_ids]
        if as_json:
            print(json.dumps({"jobs": found}))
        else:
            for one in found:
                _print(f"{one['id']}: {one['state']}")


def logs(
    job_id: JobArgument,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the job is over.")] = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the output of a job.

    For example: eunomia logs 17-k3f9a -f
    """
    with service_errors(as_json):
        client = _client(url, token_file)
        path = f"{client.job_path(job_id)}/log"
        if follow:
            for _, kind, data in client.events(f"{path}?follow=1"):
                if kind == "log":
                    sys.stdout.write(data["text"])
                    sys.stdout.flush()
            return
        start, parts = 0, list[str]()
        while True:
            text, headers = client.text(path, **({"from": start} if start else {}))
            start = int(headers["x-next-offset"])
            parts.append(text)
            if not as_json:
                sys.stdout.write(text)
            if not text or start >= int(headers["x-size"]):
                break
        if as_json:
            print(json.dumps({"id": job_id, "log": "".join(parts)}))


def why(
    job_id: JobArgument,
    watch: WatchOption = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a job does not run.

    For example: eunomia why 17-k3f9a
    """
    with service_errors(as_json):
        client = _client(url, token_file)
        _shown(lambda: client.get(f"{client.job_path(job_id)}/why"), _show_why, as_json, watch)


def _show_why(found: dict[str, Any]) -> None:
    _print(f"job {found['id']} is {found['state']} since {_ago(found['since'])}")
    for one in found["reasons"]:
        until = f" (until {one['until']})" if one["until"] else ""
        _print(f"  {one['text']}{until} [{one['code']}]")
    for text in found["would_run_if"]:
        _print(f"  it would run if {text}")
    for key in ("note", "outcome"):
        if found.get(key):
            _print(f"  {found[key]}")


# ---- cluster ---------------------------------------------------------------------------------------------------------


def cluster(
    watch: WatchOption = False, url: UrlOption = None, token_file: TokenFileOption = None, as_json: JsonOption = False
) -> None:
    """Show what is free and busy, and how many jobs there are.

    For example: eunomia cluster --watch
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (name, str(one["total"]), str(one["busy"]), str(one["free"]), str(one["total"] - one["in_service"]))
            for name, one in found["types"].items()
        ]
        _table(("type", "accelerators", "busy", "free", "drained"), rows, "no accelerators")
        states = ", ".join(f"{count:,} {state}" for state, count in found["jobs"].items())
        _print(f"policy {found['policy']}; jobs: {states or 'none'}")

    with service_errors(as_json):
        client = _client(url, token_file)
        _shown(lambda: client.get("/v1/cluster"), show, as_json, watch)


def nodes(
    watch: WatchOption = False, url: UrlOption = None, token_file: TokenFileOption = None, as_json: JsonOption = False
) -> None:
    """List the nodes.

    For example: eunomia nodes
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (one["name"], one["type"], str(one["accelerators"]), str(one["free"]), one["state"], " ".join(one["jobs"]),
             one["reason"] or "")
            for one in found["nodes"]
        ]  # fmt: skip
        _table(("node", "type", "accelerators", "free", "state", "jobs", "reason"), rows, "no nodes")

    with service_errors(as_json):
        client = _client(url, token_file)
        _shown(lambda: client.get("/v1/nodes"), show, as_json, watch)


def drain(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node, as `eunomia nodes` lists it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for other users.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the jobs that would move.")] = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a node out of service: its jobs save and go on elsewhere.

    For example: eunomia drain v100-0 --reason "new fans" --dry-run
    """
    _change_node(node, {"action": "drain", "reason": reason}, dry_run, url, token_file, as_json)


def resume(
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node, as `eunomia nodes` lists it.")],
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a drained node back into service.

    For example: eunomia resume v100-0
    """
    _change_node(node, {"action": "resume"}, False, url, token_file, as_json)


def _change_node(
    node: str, body: dict[str, str], dry_run: bool, url: str | None, token_file: Path | None, as_json: bool
) -> None:
    from urllib.parse import quote

    with service_errors(as_json):
        client = _client(url, token_file)
        path = f"/v1/nodes/{quote(node, safe='')}" + ("?dry_run=true" if dry_run else "")
        found = client.send("PUT", path, body)
        if as_json:
            print(json.dumps(found))
        elif dry_run:
            _print(f"{node}: would move {', '.join(found['would_move']) or 'no job'}")
        else:
            state = "drained" if found["drained"] else "in service"
            _print(f"{node}: {state}; moved {', '.join(found['moved']) or 'no job'}")


def tenants(
    watch: WatchOption = False, url: UrlOption = None, token_file: TokenFileOption = None, as_json: JsonOption = False
) -> None:
    """Show what each tenant received and holds.

    For example: eunomia tenants --json
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (one["tenant"], f"{one['weight']:g}", "–" if one["quota"] is None else f"{one['quota']:g}",
             str(one["holds"]), f"{one['received_accelerator_s'] / 3600:.2f}")
            for one in found["tenants"]
        ]  # fmt: skip
        _table(("tenant", "weight", "quota", "holds", "received, h"), rows, "no tenants yet")

    with service_errors(as_json):
        client = _client(url, token_file)
        _shown(lambda: client.get("/v1/tenants"), show, as_json, watch)


# ---- tokens and settings ---------------------------------------------------------------------------------------------


@token_app.command("create")
def token_create(
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Whose token it is.")] = None,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Tenant of the user.")] = None,
    role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="One of viewer, submitter, tenant-admin, operator.")
    ] = None,
    days: Annotated[float | None, typer.Option(metavar="N", help="Days until it expires.")] = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token and print it, which happens once.

    For example: eunomia token create --user ann --tenant vision --role submitter
    """
    with service_errors(as_json):
        given = {"user": user, "tenant": tenant, "role": role, "expires_days": days}
        body = {key: value for key, value in given.items() if value is not None}
        found = _client(url, token_file).send("POST", "/v1/tokens", body)
        print(json.dumps(found) if as_json else found["token"])


@token_app.command("list")
def token_list(url: UrlOption = None, token_file: TokenFileOption = None, as_json: JsonOption = False) -> None:
    """List tokens without their secrets.

    For example: eunomia token list
    """

    def show(found: dict[str, Any]) -> None:
        rows = [
            (
                one["id"],
                one["user"],
                one["tenant"],
                one["role"],
                one["expires_at"] or "never",
                "revoked" * one["revoked"],
            )
            for one in found["tokens"]
        ]
        _table(("id", "user", "tenant", "role", "expires", ""), rows, "no tokens")

    with service_errors(as_json):
        client = _client(url, token_file)
        _shown(lambda: client.get("/v1/tokens"), show, as_json, False)


@token_app.command("revoke")
def token_revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the token, as `eunomia token list` shows it.")],
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token at once.

    For example: eunomia token revoke 3f21c0aa91d2
    """
    with service_errors(as_json):
        found = _client(url, token_file).send("DELETE", f"/v1/tokens/{token_id}")
        print(json.dumps(found) if as_json else f"{token_id}: revoked")


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the service is, such as http://127.0.0.1:8642.")],
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remember a service and its token for later commands.

    The token is read from the file, or from standard input. For example: eunomia login http://127.0.0.1:8642
    """
    with service_errors(as_json):
        from eunomia.service.client import Address, Client, write_settings

        if token_file is None and sys.stdin.isatty():
            import getpass

            text = getpass.getpass("token: ")
        else:
            text = sys.stdin.readline() if token_file is None else token_file.read_text()
        address = Address(url.rstrip("/"), text.strip())
        Client(address).get("/v1/cluster")
        path = write_settings(address.url, address.token)
        print(json.dumps({"settings": str(path)}) if as_json else f"remembered in {path}")


# ---- the store -------------------------------------------------------------------------------------------------------

StateOption = Annotated[Path, typer.Option("--state", metavar="DIR", help="The state folder of the service.")]


@store_app.command("check")
def store_check(state: StateOption = Path("state"), as_json: JsonOption = False) -> None:
    """Check the store of a service that is stopped: its file, its seats, its audit log.

    For example: eunomia store check --state state
    """
    with handle_errors(as_json):
        from eunomia.service.store import SqliteStore

        store = SqliteStore.open(state, must_exist=True)
        try:
            found = store.problems()
        finally:
            store.close()
        if as_json:
            print(json.dumps({"problems": found}))
        else:
            print("\n".join(found) or "the store is sound")
        if found:
            raise typer.Exit(FAILED)


@store_app.command("backup")
def store_backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; it must not exist.")],
    state: StateOption = Path("state"),
    as_json: JsonOption = False,
) -> None:
    """Copy the store into one file, also while the service runs.

    For example: eunomia store backup /backup/monday.db --state state
    """
    with handle_errors(as_json):
        from eunomia.service.store.backup import back_up

        back_up(state, target)
        print(json.dumps({"backup": str(target)}) if as_json else f"written: {target}")


@store_app.command("restore")
def store_restore(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `store backup` wrote.")],
    state: StateOption = Path("state"),
    as_json: JsonOption = False,
) -> None:
    """Put a backup in place of the store; the old file is kept beside it.

    For example: eunomia store restore /backup/monday.db --state state
    """
    with handle_errors(as_json):
        from eunomia.service.store.backup import put_back

        kept = put_back(source, state)
        text = f"restored from {source}" + (f"; the old store is {kept}" if kept else "")
        print(json.dumps({"restored": str(state), "kept": str(kept) if kept else None}) if as_json else text)


@store_app.command("export")
def store_export(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site of a service that is stopped.")],
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A record.jsonl.gz to write; it must not exist.")],
    as_json: JsonOption = False,
) -> None:
    """Write what the service decided as a record, for replay and explain.

    For example: eunomia store export site.toml day.jsonl.gz, and then eunomia replay day.jsonl.gz
    """
    with handle_errors(as_json):
        from eunomia.service.site import load_site
        from eunomia.service.store.backup import export

        count = export(load_site(site), target)
        print(json.dumps({"moments": count}) if as_json else f"{count:,} moments written to {target}")


# ---- showing ---------------------------------------------------------------------------------------------------------


def _shown(
    read: Callable[[], dict[str, Any]], show: Callable[[dict[str, Any]], None], as_json: bool, watch: bool
) -> None:
    while True:
        found = read()
        if watch and not as_json and sys.stdout.isatty():
            sys.stdout.write("\x1b[2J\x1b[H")
        if as_json:
            print(json.dumps(found), flush=True)
        else:
            show(found)
        if not watch:
            return
        time.sleep(WATCH_S)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], empty: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        print(empty)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_plain(cell)) for cell in row))
    Console(highlight=False).print(table)


def _print(text: str) -> None:
    print(_plain(text))


def _plain(text: str) -> str:
    """Return text without control characters, as names and reasons come from others."""
    from eunomia.cli.live import printable

    shown = printable(text)
    return shown if len(shown) <= 10 * MOST_CELL else f"{shown[: 10 * MOST_CELL]}…"


def _seats(one: dict[str, Any]) -> str:
    return f"{one['type']} {','.join(map(str, one['seats']))}" if one["seats"] else ""


def _ago(text: str) -> str:
    from datetime import UTC, datetime

    seconds = (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit} ago"
    return f"{max(seconds, 0):.0f} s ago"


def add_service_commands(app: typer.Typer) -> None:
    """Add the commands of the service."""
    for command in (serve, submit, jobs, job, cancel, hold, release, logs, why, cluster, nodes, drain, resume, tenants,
                    login):  # fmt: skip
        app.command()(command)
    app.command("queue", help="List jobs, the newest first: another name of `jobs`. For example: eunomia queue")(jobs)
    app.add_typer(token_app, name="token")
    app.add_typer(store_app, name="store")
