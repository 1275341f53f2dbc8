"""Runs Slurm's commands, and reads their output in formats that are the same in all versions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eunomia.backends.engines.engine import EngineAway, EngineRefused
from eunomia.backends.processes.environment import INHERITED, INHERITED_PREFIXES

SEPARATOR = "\x1f"  # between fields: no text of a user has it, as Slurm refuses control characters
PASSED_ON = ("SLURM_CONF", "SLURM_JWT")
# What Slurm's tools say when they could not reach the controller, or it could not answer.
UNREACHABLE = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection refused|slurm_receive_msg"
    r"|Communication connection failure|Slurm backup controller in standby mode|Slurm temporarily unable|"
    r"Protocol authentication error|Unexpected message received|Connection timed out|Zero Bytes were transmitted"
    r"|in the process of configuring",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and its exit status."""

    code: int
    out: str
    err: str


Runner = Callable[[Sequence[str], float], Said]


def run_command(argv: Sequence[str], timeout_s: float) -> Said:
    """Run a command. Raises EngineAway if it does not end in time or is not installed."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False, env=environment()
        )
    except subprocess.TimeoutExpired as error:
        raise EngineAway(f"{argv[0]} did not answer within {timeout_s:g} s") from error
    except FileNotFoundError as error:
        raise EngineAway(f"{argv[0]} is not installed here") from error
    return Said(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def environment() -> dict[str, str]:
    """Return the variables of Slurm's commands, which Slurm hands to the jobs: no token of ours is among them."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name in PASSED_ON or name.startswith(INHERITED_PREFIXES)
    }


def is_installed() -> bool:
    """Whether the commands are there."""
    return all(shutil.which(name) for name in ("sbatch", "squeue", "scontrol", "scancel"))


def checked(said: Said, command: str) -> str:
    """Return the output. Raises EngineAway if the controller was not reached, EngineRefused if it refused."""
    if said.code == 0 and not UNREACHABLE.search(said.err):
        return said.out
    text = " ".join(line.partition("error: ")[2] or line for line in said.err.splitlines() if line.strip())[:300]
    if UNREACHABLE.search(said.err) or not text:
        raise EngineAway(f"{command}: {text or f'exit status {said.code}'}")
    raise EngineRefused(text)


def rows(text: str, names: Sequence[str]) -> list[dict[str, str]]:
    """Return lines of separated fields as dictionaries. Raises EngineAway for a truncated line."""
    found = []
    for line in text.splitlines():
        fields = line.split(SEPARATOR)
        if len(fields) != len(names):
            raise EngineAway(f"a line of the answer is incomplete: {line[:80]!r}")
        found.append(dict(zip(names, fields, strict=True)))
    return found


# Keys whose values are texts of users: each takes the rest of its line.
FREE_TEXT = frozenset({"JobName", "Comment", "AdminComment", "SystemComment", "Command", "WorkDir", "StdErr", "StdIn",
                       "StdOut", "OS", "Extra"})  # fmt: skip
KEY = r"[A-Za-z][A-Za-z0-9:/_]*"


def records(text: str) -> list[dict[str, str]]:
    """Return the `Key=Value` blocks of `scontrol show`, of which an empty line ends each.

    The first value of a key counts, so that a text of a user cannot change what Slurm said before it.
    """
    found = []
    for block in re.split(r"\n\s*\n", text.strip()):
        record: dict[str, str] = {}
        for line in block.splitlines():
            for key, value in _pairs(line.strip()):
                record.setdefault(key, value)
        if record:
            found.append(record)
    return found


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    is_first = True
    while match := re.match(rf"({KEY})=", line):
        rest, following = line[match.end() :], None
        if match[1] not in FREE_TEXT and not (
            match[1] == "Reason" and is_first
        ):  # that of a node has a line of its own
            following = re.search(rf"(?:^|\s+)(?={KEY}=)", rest)
        value, line = (rest, "") if following is None else (rest[: following.start()], rest[following.end() :])
        is_first = False
        yield match[1], value.strip()


def setting(config: Mapping[str, str], name: str) -> str:
    """Return a setting of `scontrol show config`; "" if it is none."""
    value = config.get(name, "")
    return "" if value in ("(null)", "N/A") else value
