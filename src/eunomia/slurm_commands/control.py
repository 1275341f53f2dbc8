"""`scancel` and `scontrol`."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Callable, Sequence
from typing import Any

from eunomia.inputs.slurm_values import expand_hosts
from eunomia.model.spelling_suggestions import nearest
from eunomia.service.client import ServiceRefusal
from eunomia.slurm_commands.command_line import Given, HelpWanted, WrongUsage, help_text, say, typed
from eunomia.slurm_commands.job_runner import job_number
from eunomia.slurm_commands.job_view import FIELDS, SlurmJob, local_time, span
from eunomia.slurm_commands.queue_client import LIVE, NoSuchJob, QueueClient, inside_job, is_chosen
from eunomia.slurm_commands.submission import ARRAY_LABEL, NAME_LABEL, limit_s, plain_name, seconds_until, signal_number
from eunomia.slurm_commands.tables import SCANCEL, SCONTROL

ENDS = {2, 9, 15}  # INT, KILL, TERM
FILTERS = ("user", "name", "jobname", "state", "partition", "me")


def scancel(words: Sequence[str]) -> int:
    """Cancel jobs by number, or those that were asked for."""
    given = typed("scancel", "[OPTIONS] [job_id[_array_id]...]", SCANCEL, words)
    given.say_ignored()
    if not given.words and not any(one in given for one in FILTERS):
        raise WrongUsage("No job identification provided")
    if "signal" in given and signal_number(given.get("signal")) not in ENDS:
        raise WrongUsage(f"--signal={given.get('signal')}: only TERM, KILL and INT reach a job here, and end it")
    queue = QueueClient()
    me = queue.me if any(one in given for one in FILTERS) else ""
    jobs, code = list[SlurmJob](), 0
    for word in given.words:
        try:
            jobs += queue.jobs_of(word)
        except NoSuchJob as error:
            say("scancel", f"error: Kill job error on job id {word}: {error}")  # which Slurm has no exit code for
    if not given.words:
        jobs = [job for job in queue.listed(states=LIVE) if job.found["owner"] == me or "user" in given]
    for job in jobs:
        if is_chosen(job, given, me) and not _cancelled(queue, job, given):
            code = 1
    return code


def _cancelled(queue: QueueClient, job: SlurmJob, given: Given) -> bool:
    """Cancel one job; one that is over stays as it is, which is no error."""
    if not job.is_live:
        return True
    try:
        queue.act(job, "DELETE")
    except ServiceRefusal as error:
        if error.status == 409:
            return True
        if "quiet" not in given:
            say("scancel", f"error: Kill job error on job id {job.shown_id}: {_refused(error)}")
        return False
    return True


def _refused(error: ServiceRefusal) -> str:
    if error.status in (401, 403):
        return "Access/permission denied"
    return "; ".join([str(error), *(f"{one['field']}: {one['rule']}; {one['fix']}" for one in error.problems)])


# ---- scontrol --------------------------------------------------------------------------------------------------------


def scontrol(words: Sequence[str]) -> int:
    """Show and change jobs and nodes."""
    notes = [f"Commands: {', '.join(COMMANDS)}"]
    given = typed("scontrol", "[OPTIONS] COMMAND …", SCONTROL, words, notes)
    if not given.words:
        raise HelpWanted(help_text("scontrol", "[OPTIONS] COMMAND …", SCONTROL, notes))
    given.say_ignored()
    verb = given.words[0].lower()
    if verb not in COMMANDS:
        raise WrongUsage(f"invalid keyword: {given.words[0]}; {nearest(verb, COMMANDS)}")
    return COMMANDS[verb](given, given.words[1:])


def _show(given: Given, words: list[str]) -> int:
    kind = words[0].lower() if words else ""
    names = {"job": _show_jobs, "jobs": _show_jobs, "jobid": _show_jobs, "node": _show_nodes, "nodes": _show_nodes,
             "config": _show_config, "hostnames": _show_hosts, "partition": _show_partitions,
             "partitions": _show_partitions}  # fmt: skip
    key, _, value = kind.partition("=")
    if key not in names:
        raise WrongUsage(f"invalid entity: {kind or 'none'} for keyword: show; {nearest(key, names)}")
    return names[key](given, [value, *words[1:]] if value else words[1:])


def _show_jobs(given: Given, words: list[str]) -> int:
    queue = QueueClient()
    jobs = [job for word in words for one in word.split(",") for job in queue.jobs_of(one)] if words else list(
        queue.listed(states=LIVE))  # fmt: skip
    if "json" in given:
        from eunomia.slurm_commands.listing import as_json

        print(json.dumps({"jobs": [as_json(queue.with_reason(job)) for job in jobs]}, indent=1))
        return 0
    if not jobs:
        print("No jobs in the system")
    for job in jobs:
        _print_record(_job_record(queue.with_reason(job)), given)
    return 0


def _print_record(lines: list[list[str]], given: Given) -> None:
    between = " " if "oneliner" in given else "\n   "
    print(between.join(" ".join(line) for line in lines) + ("" if "oneliner" in given else "\n"))


def _job_record(job: SlurmJob) -> list[list[str]]:
    """Return the lines of `scontrol show job`."""
    out, errors = job.files
    restarts, limit = max(job.found["epoch"] - 1, 0), job.found["spec"].get("max_run_s")
    submitted = local_time(job.found["submitted_at"])
    owner = f"{job.found['owner']}({FIELDS['uid'](job)})"
    array = [f"ArrayJobId={job.array}", f"ArrayTaskId={job.found['array_index']}"] if job.array is not None else []
    return [
        [f"JobId={job.number}", *array, f"JobName={job.name}"],
        [f"UserId={owner}", f"GroupId={owner}", "MCS_label=N/A"],
        [f"Priority={job.found['spec'].get('priority', 0)}", "Nice=0", f"Account={job.found['tenant']}", "QOS=normal"],
        [f"JobState={job.state}", f"Reason={job.reason}", f"Dependency={job.dependency or '(null)'}"],
        [f"Requeue={int(job.found['interruptible'])}", f"Restarts={restarts}", "BatchFlag=1", "Reboot=0",
         f"ExitCode={job.exit_code}"],
        [f"RunTime={span(job.elapsed_s, hours=True)}", f"TimeLimit={'UNLIMITED' if limit is None else job.limit}",
         "TimeMin=N/A"],
        [f"SubmitTime={submitted}", f"EligibleTime={submitted}"],
        [f"StartTime={local_time(job.found['started_at'])}", f"EndTime={job.end('Unknown')}", "Deadline=N/A"],
        [f"Partition={job.partition}", f"AllocNode:Sid={job.settings.get('submit_host', 'localhost')}:0"],
        [f"NodeList={job.node_list or '(null)'}"],
        [f"NumNodes={FIELDS['numnodes'](job)}", f"NumCPUs={job.cpus}", f"NumTasks={job.tasks}",
         f"CPUs/Task={job.settings.get('cpus') or 1}"],
        [f"ReqTRES={FIELDS['reqtres'](job)}"],
        [f"AllocTRES={FIELDS['alloctres'](job) or '(null)'}"],
        [f"Comment={job.comment}"] if job.comment else ["Features=(null)", "DelayBoot=00:00:00"],
        [f"Command={job.settings.get('path') or '(null)'}"],
        [f"WorkDir={job.found['spec'].get('cwd', '')}"],
        [f"StdErr={errors}"],
        ["StdIn=/dev/null"],
        [f"StdOut={out}"],
        [f"TresPerNode=gres/gpu:{job.found['accelerators']}"],
        [f"EunomiaId={job.found['id']}"],
    ]  # fmt: skip


def _show_nodes(given: Given, words: list[str]) -> int:
    from eunomia.slurm_commands.cluster_view import node_record

    found = [node for node in QueueClient().nodes if not words or node["name"] in words]
    if not found:
        raise WrongUsage(f"Node {' '.join(words)} not found")
    for node in found:
        _print_record(node_record(node), given)
    return 0


def _show_partitions(given: Given, words: list[str]) -> int:
    from eunomia.slurm_commands.cluster_view import partitions

    for shown, nodes in partitions(QueueClient().nodes).items():
        name, is_default = shown.rstrip("*"), "YES" if shown.endswith("*") else "NO"
        if not words or name in words:
            lines = [[f"PartitionName={name}"], [f"Default={is_default}", "State=UP", "MaxTime=UNLIMITED"]]
            _print_record([*lines, [f"Nodes={','.join(one['name'] for one in nodes)}"]], given)
    return 0


def _show_config(given: Given, words: list[str]) -> int:
    found = QueueClient().client.get("/v1/cluster")
    lines = {"ClusterName": "eunomia", "SLURM_VERSION": f"eunomia {found['version']}", "SchedulerType": found["policy"],
             "GresTypes": "gpu", "SelectType": "eunomia"}  # fmt: skip
    for name, value in lines.items():
        print(f"{name:<23} = {value}")
    return 0


def _show_hosts(given: Given, words: list[str]) -> int:
    for name in expand_hosts(words[0] if words else os.environ.get("SLURM_JOB_NODELIST", "")):
        print(name)
    return 0


def _each(method: str, suffix: str, waiting_only: bool = False) -> Callable[[Given, list[str]], int]:
    def act(given: Given, words: list[str]) -> int:
        queue, code = QueueClient(), 0
        for job in [job for word in words for one in word.split(",") for job in queue.jobs_of(one)]:
            if waiting_only and job.state != "PENDING":
                say("scontrol", f"error: Job {job.shown_id} is no longer pending execution")
                code = 1
                continue
            try:
                queue.act(job, method, suffix)
            except ServiceRefusal as error:
                say("scontrol", f"error: job {job.shown_id}: {_refused(error)}")
                code = 1
        return code

    return act


def _requeue(given: Given, words: list[str]) -> int:
    """Let running jobs save, stop and wait again; those that are over are submitted again."""
    queue, code = QueueClient(), 0
    words = words or [inside_job()]
    for job in [job for word in words for one in word.split(",") for job in queue.jobs_of(one)]:
        try:
            if job.is_live:
                queue.act(job, "POST", "/hold")
                queue.act(job, "POST", "/release")
            else:
                made = queue.act(job, "POST", "/resubmit", _alone(job))
                number = job_number((made.get("ids") or [made["id"]])[0])
                say("scontrol", f"job {job.shown_id} is over: submitted again as {number}")
        except ServiceRefusal as error:
            say("scontrol", f"error: job {job.shown_id}: {_refused(error)}")
            code = 1
    return code


def _alone(job: SlurmJob) -> dict[str, Any]:
    """Return what changes in an element of an array that is submitted again: it is an array of its own."""
    if job.array is None or not job.settings:
        return {}
    index = job.found["array_index"]
    own = {"from": index, "before": 0, "count": 1, "min": index, "max": index, "step": 1}
    command = [*job.found["spec"]["command"]]
    command[3] = json.dumps({**job.settings, "array": own})
    return {"command": command, "labels": {**job.found["labels"], ARRAY_LABEL: secrets.token_hex(8)}}


_CHANGES: dict[str, Callable[[str], dict[str, Any]]] = {
    "timelimit": lambda text: {"max_run_s": limit_s(text)},
    "jobname": lambda text: {"name": plain_name(text)},
    "name": lambda text: {"name": plain_name(text)},
    "priority": lambda text: {"priority": max(min(int(text), 1000), -1000)},
    "nice": lambda text: {"priority": max(min(-int(text or "100"), 1000), -1000)},
    "deadline": lambda text: {"deadline_s": seconds_until(text, "Deadline")},
}


def _update(given: Given, words: list[str]) -> int:
    pairs = dict(_pair(word) for word in words)
    if "nodename" in pairs:
        return _update_node(pairs)
    number = pairs.pop("jobid", "")
    if not number:
        raise WrongUsage("No valid entity in update command: write JobId=60 TimeLimit=1:00:00")
    if wrong := [key for key in pairs if key not in _CHANGES]:
        raise WrongUsage(f"Update of this parameter is not supported: {wrong[0]}; {nearest(wrong[0], _CHANGES)}")
    body: dict[str, Any] = {}
    for key, value in pairs.items():
        if key in ("priority", "nice") and not re.fullmatch(r"-?\d{1,10}", value or "100"):
            raise WrongUsage(f"Invalid {key}: {value}")
        body |= _CHANGES[key](value)
    queue, code = QueueClient(), 0
    for one in number.split(","):
        for job in queue.jobs_of(one):
            more = {"labels": {**job.found["labels"], NAME_LABEL: pairs.get("jobname", pairs.get("name", ""))[:200]}
                    } if "name" in body else {}  # fmt: skip
            try:
                queue.act(job, "PATCH", "", {**body, **more})
            except ServiceRefusal as error:
                say("scontrol", f"error: job {job.shown_id}: {_refused(error)}")
                code = 1
    return code


def _pair(word: str) -> tuple[str, str]:
    key, sign, value = word.partition("=")
    if not sign:
        raise WrongUsage(f"Invalid input: {word}: write NAME=VALUE")
    return key.lower(), value


def _update_node(pairs: dict[str, str]) -> int:
    """Drain or resume nodes."""
    from urllib.parse import quote

    actions = {"drain": "drain", "resume": "resume", "undrain": "resume", "idle": "resume"}
    action = actions.get(pairs.get("state", "").lower())
    if action is None:
        raise WrongUsage(f"Invalid input: State={pairs.get('state', '')}; {nearest(pairs.get('state', ''), actions)}")
    body = {"action": action} | ({"reason": pairs["reason"].strip('"')} if "reason" in pairs else {})
    queue = QueueClient()
    for name in expand_hosts(pairs["nodename"]):
        queue.client.send("PUT", f"/v1/nodes/{quote(name, safe='')}", body)
    return 0


def _ping(given: Given, words: list[str]) -> int:
    QueueClient().client.get("/v1/cluster")
    print("Slurmctld(primary) at eunomia is UP")
    return 0


def _write(given: Given, words: list[str]) -> int:
    """Write the script of a job, as `scontrol write batch_script ID [FILE]`."""
    if not words or words[0] != "batch_script" or len(words) < 2:
        raise WrongUsage("write batch_script ID [FILE]")
    job = QueueClient().jobs_of(words[1])[0]
    script = "".join(job.found["spec"]["command"][4 : 4 + job.settings.get("parts", 0)])
    if len(words) < 3 or words[2] == "-":
        sys.stdout.write(script)
        return 0
    with open(words[2], "x", encoding="utf-8") as file:
        file.write(script)
    return 0


COMMANDS: dict[str, Callable[[Given, list[str]], int]] = {
    "show": _show,
    "hold": _each("POST", "/hold", waiting_only=True),
    "uhold": _each("POST", "/hold", waiting_only=True),
    "release": _each("POST", "/release"),
    "requeue": _requeue,
    "update": _update,
    "ping": _ping,
    "write": _write,
}
