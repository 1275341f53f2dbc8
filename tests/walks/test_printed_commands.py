"""Every command that the program prints works as printed: they are collected from its output and typed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.walks.test_help import leaves
from typer.main import get_command

from eunomia.cli.app import app

if TYPE_CHECKING:
    from conftest import Desk

PRINTED = re.compile(r"(?:^|next: |type: |with: |  )(eunomia (?:[a-z]+ )+.*)$", re.MULTILINE)
DAYS = [f"2024-05-0{1 + k % 3}" for k in range(6)]
CSV = "job id,submit,start,end,GPUs,user\n" + "".join(
    f"j{k},{day} 10:0{k}:00,{day} 10:1{k}:00,{day} 12:00:00,1,u{k % 2}\n" for k, day in enumerate(DAYS)
)
WITHOUT_STARTS = "job name,submit time,GPUs,runtime,user\n" + "".join(f"j{k},{60 * k},1,600,u{k}\n" for k in range(6))
SACCT_FIELDS = {
    "JobID": "{k}", "Submit": "{day}T10:0{k}:00", "Start": "{day}T10:1{k}:00", "End": "{day}T11:1{k}:00",
    "ElapsedRaw": "3600", "State": "COMPLETED", "Account": "lab", "User": "u{k}", "Partition": "gpu", "NNodes": "1",
    "NodeList": "n1", "AllocTRES": "gres/gpu=1", "ReqTRES": "gres/gpu=1", "Suspended": "00:00:00",
}  # fmt: skip
SACCT_LINES = ["|".join(SACCT_FIELDS.values()).format(k=k, day=day) for k, day in enumerate(DAYS)]
SACCT = "\n".join(["|".join(SACCT_FIELDS), *SACCT_LINES, ""])
ENDED = {"terminated": {"startedAt": "2024-05-01T10:01:00Z", "finishedAt": "2024-05-01T11:00:00Z"}}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "namespace": "lab", "uid": "u", "creationTimestamp": "2024-05-01T10:00:00Z"},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    "status": {
        "phase": "Succeeded",
        "startTime": "2024-05-01T10:01:00Z",
        "containerStatuses": [{"name": "c", "state": ENDED}],
    },
}
PODS = {"kind": "List", "apiVersion": "v1", "items": [POD]}
EXAMPLE = re.compile(r"(?:Example|For example): +(eunomia [^()]*?)(?:,? (?:or|and then) |\(|  |$| \| )")
IMPORTS = {
    "csv": (("csv",), "my jobs.csv", CSV, ()),
    "csv of two types": (("csv",), "my jobs.csv", CSV, ("--accelerators", "v100=4", "--accelerators", "a100=4")),
    "csv without starts": (("csv",), "my jobs.csv", WITHOUT_STARTS, ("--accelerators", "v100=8")),
    "slurm": (("slurm",), "my sacct.txt", SACCT, ()),
    "kubernetes": (("kubernetes",), "my list.json", json.dumps(PODS), ()),
}


def printed(text: str) -> list[list[str]]:
    """Return the commands in an output, each as its words without `eunomia`."""
    return [shlex.split(line)[1:] for line in PRINTED.findall(text)]


@pytest.mark.parametrize("kind", IMPORTS)
def test_the_command_that_an_import_prints_works_as_printed(desk: Desk, kind: str) -> None:
    words, name, content, more = IMPORTS[kind]
    desk.write(name, content)
    assert desk.type("import", *words, name, *more, "--out", "my history") == 0, desk.stderr
    commands = printed(desk.stdout)
    assert len(commands) == 1
    assert desk.type(*commands[0], "--out", "out") == 0, desk.stderr
    assert "report: out/report.html" in desk.stdout


def test_the_command_that_a_refused_table_is_answered_with_works_as_printed(desk: Desk) -> None:
    desk.write("my jobs.csv", WITHOUT_STARTS)
    desk.write("s.toml", '[cluster]\naccelerators = { v100 = 8 }\n[workload]\ntrace = "my jobs.csv"\n')
    assert desk.type("simulate", "s.toml") == 2
    [words] = [shlex.split(found)[1:] for found in re.findall(r"with: (eunomia import .*)", desk.stderr)]
    assert desk.type(*words) == 0, desk.stderr
    assert desk.type("trace", "describe", "my jobs.csv") == 2
    [words] = [shlex.split(found)[1:] for found in re.findall(r"layout: (eunomia import .*)", desk.stderr)]
    assert desk.type(*words, "--force") == 0, desk.stderr


def test_the_commands_of_the_help_are_read_by_the_program() -> None:
    command = get_command(app)
    examples = 0
    for _, one in leaves(command, ()):
        texts = re.sub(r"\s+", " ", f"{one.help or ''} {one.epilog or ''}")
        for found in re.findall(
            r"(?:Example|For example): +(eunomia [^()]*?)(?:,? (?:or|and then) |\(|  |$| \| )", texts
        ):
            words = shlex.split(found.strip(" .,"))[1:]
            check_readable(command, words)
            examples += 1
    assert examples > 30


def check_readable(command: Any, words: list[str]) -> None:
    """Assert that each word of a command line is a command, an option of it, or an argument that it takes."""
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    own = words[: words.index("--")] if "--" in words else words
    unknown = [word for word in own if re.fullmatch(r"--?[a-zA-Z][\w-]*", word) and word not in options]
    assert not unknown, f"{command.name}: {unknown} in {' '.join(words)}"


def test_the_command_that_resumes_a_run_names_its_files_with_spaces(desk: Desk) -> None:
    from eunomia.cli.run import _resume_command

    words = shlex.split(_resume_command(Path("my run.toml"), Path("out dir"), ["policy.name=las"]))
    assert words == ["eunomia", "run", "my run.toml", "--set", "policy.name=las", "--out", "out dir", "--resume"]
