"""What `sbatch` and `srun` are given becomes job documents of the service."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eunomia.inputs.slurm_values import gres_counts, parse_memory_gib, seconds
from eunomia.slurm_commands.command_line import Given, Option, WrongUsage, read_words

PART = 4000  # characters of a script in one word of a command
MOST_VALUE, MOST_VARIABLES = 4096, 1000  # of a job document's env
MOST_ELEMENTS = 10_000
DEFAULT_PARTITION = "main"
DEPENDENCIES = ("afterok", "afterany", "afternotok")
OWN = ("EUNOMIA_", "SLURM_", "SBATCH_")  # variables that do not travel with a job
ARRAY_LABEL, NAME_LABEL, COMMENT_LABEL = "slurm.array", "slurm.name", "slurm.comment"


@dataclass(frozen=True, slots=True)
class Batch:
    """A script with its options."""

    given: Given
    script: str
    words: tuple[str, ...] = ()
    path: str = ""  # where the script was read

    @property
    def name(self) -> str:
        """What the job is called."""
        return self.given.get("job-name") or (os.path.basename(self.path) if self.path else "wrap")


def batch_options(script: str) -> list[str]:
    """Return the words of the #SBATCH lines before the first command."""
    found: list[str] = []
    for line in script.splitlines():
        if line.startswith("#SBATCH") and line[7:8] in (" ", "\t"):
            found += shlex.split(line[7:], comments=True)
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found


def read_batch(given: Given, options: Sequence[Option], stdin: Callable[[], str]) -> Batch:
    """Return the script that was given, with its own options behind those of the command and the environment.

    Raises WrongUsage for a script that cannot be read or run, as sbatch does.
    """
    words, path = given.words, ""
    if "wrap" in given:
        if words:
            raise WrongUsage("Script arguments not permitted with --wrap option")
        return Batch(given, f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{given.get('wrap')}\n")
    if words:
        path, words = words[0], words[1:]
        try:
            script = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            more = "" if isinstance(error, FileNotFoundError) else f": {reason}"
            raise WrongUsage(f"Unable to open file {path}{more}") from None
    else:
        script = stdin()
    if not script.startswith("#!"):
        raise WrongUsage("This does not look like a batch script.  The first\n"
                         "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
                         "sbatch: error: For instance: #!/bin/sh")  # fmt: skip
    if "\r\n" in script:
        raise WrongUsage("Batch script contains DOS line breaks (\\r\\n)\n"
                         "sbatch: error: instead of expected UNIX line breaks (\\n).")  # fmt: skip
    read_words(given.command, options, batch_options(script), into=given)
    return Batch(given, script, tuple(words), path)


def from_environment(given: Given, options: Iterable[Option], environ: dict[str, str], prefix: str) -> None:
    """Take what variables such as SBATCH_PARTITION or SLURM_PARTITION say, where the command says nothing."""
    for one in options:
        name = one.env if prefix == "SBATCH" or not one.env.startswith("SBATCH") else f"{prefix}{one.env[6:]}"
        if name and one.long not in given and environ.get(name):
            given.values[one.long] = environ[name]
            given.all_values[one.long] = [environ[name]]


@dataclass(slots=True)
class Asked:
    """How much a job asks for."""

    accelerators: int = 1
    types: tuple[str, ...] = ()
    tasks: int = 1
    nodes: int = 1
    cpus: int = 0  # of a task; 0 = not said
    mem_mib: int = 0  # of a node
    notes: list[str] = field(default_factory=list)


def whole(text: str, option: str, least: int = 1) -> int:
    """Return a whole number. Raises WrongUsage."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least):
        raise WrongUsage(f'Invalid numeric value "{text}" for {option}.')
    return int(text)


def limit_s(text: str) -> float | None:
    """Return the seconds of a time limit: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS. Raises WrongUsage."""
    if text.upper() in ("UNLIMITED", "INFINITE", "0", "-1"):
        return None
    found = int(text) * 60.0 if text.isascii() and text.isdigit() and len(text) < 10 else seconds(text)
    if not found or not math.isfinite(found):
        raise WrongUsage("Invalid --time specification")
    return found


def mebibytes(text: str, option: str) -> float:
    """Return MiB of a size such as 16G; without a unit it is MiB. Raises WrongUsage."""
    size = text.strip().upper()
    found = parse_memory_gib(f"{size}M" if size.isdigit() else size) * 1024
    if not found and size.rstrip("KMGTP") != "0":
        raise WrongUsage(f"Invalid {option} specification")
    return found


def accelerators_of(text: str, option: str) -> tuple[int, str]:
    """Return count and type of `4`, `a100:4`, `gpu:4` or `gpu:a100:4`. Raises WrongUsage for another gres."""
    if option == "--gres":
        items, wrong = text, [one for one in text.split(",") if not re.match(r"(gres[/:])?gpu\b|none$", one)]
        if wrong:
            rule = f"Invalid generic resource (gres) specification: {wrong[0]}"
            raise WrongUsage(f"{rule}; there are gpu:N and gpu:TYPE:N")
    else:
        items = ",".join(f"gpu:{one}" for one in text.split(",") if one)
    counts = gres_counts(items)
    if not items or not (counts or re.search(r"[:=]0\b|^none$", items)):
        raise WrongUsage(f"Invalid {option} specification: {text}")
    if len(counts) > 1:
        raise WrongUsage(f"{option}={text}: a job here has accelerators of one type; submit one for each")
    kind, count = next(iter(counts.items()), ("", 0))
    return count, kind


def asked_of(given: Given) -> Asked:
    """Return how much is asked for. Raises WrongUsage."""
    found = Asked(nodes=whole(given.get("nodes", "1").split("-")[-1], "--nodes"))
    per_node = whole(given.get("ntasks-per-node", "1"), "--ntasks-per-node")
    found.tasks = whole(given.get("ntasks", str(per_node * found.nodes)), "--ntasks")
    found.cpus = whole(given.get("cpus-per-task", "0"), "--cpus-per-task", 0)
    kinds: dict[str, None] = {}
    counts = {}
    for option, times in (("gpus", 1), ("gres", found.nodes), ("gpus-per-node", found.nodes),
                          ("gpus-per-task", found.tasks)):  # fmt: skip
        if option in given:
            count, kind = accelerators_of(given.get(option), f"--{option}")
            counts[option] = count * times
            kinds |= {kind: None} if kind else {}
    if len(set(counts.values())) > 1:
        raise WrongUsage(f"{', '.join(f'--{name} is {count}' for name, count in counts.items())} in all: give one")
    wanted = next(iter(counts.values()), 0)
    if not wanted:
        found.notes.append("no GPU was asked for: a job holds at least one accelerator here")
    found.accelerators = max(wanted, 1)
    parts = [one for one in given.get("partition").split(",") if one and one != DEFAULT_PARTITION]
    features = [one for one in re.split(r"[|&,\[\]]+", given.get("constraint")) if one]
    found.types = tuple(kinds or dict.fromkeys(parts or features))
    if len(kinds) > 1:
        raise WrongUsage(f"{', '.join(kinds)}: a job here has accelerators of one type")
    memory = [mebibytes(given.get("mem"), "--mem")] if "mem" in given else []
    memory += [mebibytes(given.get("mem-per-cpu"), "--mem-per-cpu") * found.tasks * max(found.cpus, 1) / found.nodes
               ] if "mem-per-cpu" in given else []  # fmt: skip
    memory += [mebibytes(given.get("mem-per-gpu"), "--mem-per-gpu") * found.accelerators / found.nodes
               ] if "mem-per-gpu" in given else []  # fmt: skip
    found.mem_mib = math.ceil(max(memory, default=0.0))
    return found


@dataclass(frozen=True, slots=True)
class Elements:
    """The indices of an array, in pieces without gaps, and how many may run at once; 0 = all."""

    pieces: tuple[tuple[int, int], ...]
    step: int
    at_once: int = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(last - first + 1 for first, last in self.pieces)


def elements_of(text: str) -> Elements:
    """Return the elements of `0-99`, `0-99%4`, `1,3,7-9` or `0-10:2`. Raises WrongUsage."""
    ranges, _, most = text.strip("[]").partition("%")
    indices, step = set[int](), 1
    for one in ranges.split(","):
        found = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", one.strip())
        if found is None:
            raise WrongUsage(f"Invalid job array specification: {text}")
        first, last, by = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or not by or (last - first) // by >= MOST_ELEMENTS:
            raise WrongUsage(f"Invalid job array specification: {text}; it has 1 to {MOST_ELEMENTS:,} elements")
        indices.update(range(first, last + 1, by))
        step = max(step, by)
    pieces: list[tuple[int, int]] = []
    for index in sorted(indices):
        pieces[-1:] = (
            [(pieces[-1][0], index)] if pieces and pieces[-1][1] == index - 1 else [*pieces[-1:], (index, index)]
        )
    at_once = whole(most, "--array=…%") if most else 0
    if at_once and len(pieces) > 1:
        raise WrongUsage(
            f"--array={text}: at most {at_once} at once holds for one range without gaps; write it as A-B%{at_once}"
        )
    return Elements(tuple(pieces), step, at_once)


def dependencies(text: str, ids: Callable[[str], Sequence[str]]) -> list[str]:
    """Return what `after` of a document says of --dependency; `ids` are those of a number. Raises WrongUsage."""
    if "?" in text:
        raise WrongUsage("--dependency: '?' (any of them) is not known here; with ',' all of them count")
    found = []
    for one in filter(None, text.split(",")):
        kind, _, rest = one.partition(":")
        if kind == "singleton":
            found.append("singleton")
        elif kind in DEPENDENCIES and rest:
            plain = "" if kind == "afterok" else f"{kind}:"
            found += [f"{plain}{job}" for number in rest.split(":") for job in ids(number.partition("+")[0])]
        else:
            known = ", ".join(f"{name}:ID" for name in DEPENDENCIES)
            raise WrongUsage(f"Job dependency problem: {one!r} is none of {known}, singleton")
    return found


def warning_of(text: str) -> dict[str, Any] | None:
    """Return the signal, its time before the limit, and whether the script gets it, of [B:]SIGNAL[@S]."""
    if not text:
        return None
    found = re.fullmatch(r"(?:([BR]+):)?(?:SIG)?(\w+)(?:@(\d{1,6}))?", text)
    number = None if found is None else signal_number(found[2])
    if found is None or number is None:
        raise WrongUsage(f"Invalid signal specification: {text}; write [B:]USR1@90")
    return {"script": "B" in (found[1] or ""), "number": number, "before_s": int(found[3] or 60)}


def signal_number(name: str) -> int | None:
    """Return the number of a signal of that name, or number; None for others."""
    if name.isascii() and name.isdigit():
        return int(name) if 0 < int(name[:3]) < signal.NSIG else None
    found = getattr(signal, f"SIG{name.upper().removeprefix('SIG')}", None)
    return int(found) if isinstance(found, signal.Signals) else None


def variables_of(given: Given, environ: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables that travel with a job, and notes on those that cannot."""
    wanted = [one for one in given.get("export", "ALL").split(",") if one]
    if wanted[:1] in (["NONE"], ["NIL"]):
        found = {name: environ[name] for name in ("PATH",) if name in environ}
    else:
        found = dict(environ) if "ALL" in wanted or not wanted else {}
    found |= {name: environ[name] for name in wanted if "=" not in name and name in environ}
    found |= dict(one.split("=", 1) for one in wanted if "=" in one)
    named = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
    found = {name: value for name, value in found.items() if named(name) and not name.startswith(OWN)}
    long = [name for name, value in found.items() if len(value) > MOST_VALUE or "\0" in value]
    found = {name: value for name, value in found.items() if name not in long}
    notes = [f"too long for the environment of a job, left out: {', '.join(long)}"] if long else []
    if len(found) > MOST_VARIABLES:
        raise WrongUsage(f"a job has at most {MOST_VARIABLES} variables: give --export=NAME,…")
    return {name: value.encode(errors="replace").decode(errors="replace") for name, value in found.items()}, notes


def documents(
    batch: Batch, ids: Callable[[str], Sequence[str]], submit_dir: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the documents of a script, one for each piece of its array, and notes on them. Raises WrongUsage."""
    given = batch.given
    asked, limit = asked_of(given), limit_s(given.get("time", "0"))
    variables, notes = variables_of(given, dict(os.environ))
    folder = os.path.abspath(os.path.join(submit_dir, given.get("chdir")))
    array = elements_of(given.get("array")) if "array" in given else None
    default = "" if given.command == "srun" else "slurm-%A_%a.out" if array is not None else "slurm-%j.out"
    parts = [batch.script[at : at + PART] for at in range(0, len(batch.script), PART)]
    settings: dict[str, Any] = {
        "parts": len(parts), "name": batch.name, "submit_dir": submit_dir, "submit_host": socket.gethostname(),
        "ntasks": asked.tasks, "cpus": asked.cpus, "nodes": asked.nodes, "mem_mib": asked.mem_mib, "limit_s": limit,
        "output": given.get("output", default), "error": given.get("error"), "input": given.get("input"),
        "mode": given.get("open-mode"), "signal": warning_of(given.get("signal")),
        "path": shlex.join([os.path.abspath(batch.path), *batch.words])[:1000] if batch.path else "",
        "env": service_variables(),
    }  # fmt: skip
    if settings["signal"] and not limit:
        notes.append("--signal: it is sent before the time limit, and there is none: give --time")
    document: dict[str, Any] = {
        "name": plain_name(batch.name), "accelerators": asked.accelerators, "types": list(asked.types),
        "cwd": folder, "env": variables, "max_run_s": limit, "cpus": float(asked.cpus * asked.tasks),
        "memory_gib": asked.mem_mib * asked.nodes / 1024, "after": dependencies(given.get("dependency"), ids),
        "labels": {NAME_LABEL: batch.name[:200]},
    }  # fmt: skip
    if given.get("comment"):
        document["labels"][COMMENT_LABEL] = given.get("comment")[:200]
    if "requeue" in given or "no-requeue" in given:
        document["interruptible"] = "requeue" in given
    document |= _further(given)
    made = []
    for piece in _pieces(array):
        more = dict[str, Any]()
        if piece is not None and array is not None:
            settings["array"] = piece
            document["labels"] = {**document["labels"], ARRAY_LABEL: piece.pop("token")}
            more["array"] = f"{piece['from']}-{piece.pop('to')}" + (f"%{array.at_once}" if array.at_once else "")
        argv = [sys.executable, "-m", "eunomia.slurm_commands.job_runner", json.dumps(settings), *parts, *batch.words]
        if len(argv[3]) > MOST_VALUE or any(len(word) > MOST_VALUE for word in batch.words) or len(argv) > 4096:
            raise WrongUsage(
                "the script, or a word of its arguments or options, is too long: call it from a short script"
            )
        kept = {key: value for key, value in document.items() if value or key == "interruptible"}
        made.append({"command": argv, **kept, **more})
    return made, asked.notes + notes


def _pieces(array: Elements | None) -> Iterator[dict[str, Any] | None]:
    """Yield what each piece of an array says of itself; None for a job that is no array."""
    if array is None:
        yield None
        return
    ends = [one for piece in array.pieces for one in piece]
    token, before = secrets.token_hex(8), 0
    for first, last in array.pieces:
        yield {"from": first, "to": last, "before": before, "token": token, "count": array.count,
               "min": min(ends), "max": max(ends), "step": array.step}  # fmt: skip
        before += last - first + 1


def _further(given: Given) -> dict[str, Any]:
    """Return keys of a document that few jobs have."""
    found: dict[str, Any] = {}
    if "nice" in given or "priority" in given:
        text = given.get("priority") or str(-int(given.get("nice") or "100"))
        if not re.fullmatch(r"-?\d{1,10}", text):
            raise WrongUsage(f"Invalid priority: {text}")
        found["priority"] = max(min(int(text), 1000), -1000)
    if "deadline" in given:
        text = given.get("deadline").removeprefix("now+")
        found["deadline_s"] = seconds_until(text, "--deadline")
    if "begin" in given and given.get("begin") != "now":
        raise WrongUsage("--begin: a later start is not known here; submit it with --hold and scontrol release it then")
    kinds = {"BEGIN": "started", "END": "ended", "FAIL": "failed", "ALL": "ended", "TIME_LIMIT": "failed"}
    wanted = dict.fromkeys(kinds[one.upper()] for one in given.listed("mail-type") if one.upper() in kinds)
    if wanted:
        found["notify"] = [f"mail@{kind}" for kind in wanted]
    return found


def seconds_until(text: str, option: str) -> float:
    """Return the seconds of a span, or from now until a date and time. Raises WrongUsage."""
    from datetime import UTC, datetime

    from eunomia.inputs.spans import seconds_of

    found = seconds_of(text)
    if found is None:
        try:
            found = (datetime.fromisoformat(text).astimezone() - datetime.now(UTC)).total_seconds()
        except ValueError:
            raise WrongUsage(f"Invalid {option} specification: {text}; write 2026-11-23T16:00") from None
    if found <= 0:
        raise WrongUsage(f"Invalid {option} specification: {text} is over")
    return found


def plain_name(name: str) -> str:
    """Return a name as the service takes it."""
    return (re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".-") or "job")[:63]


def service_variables() -> dict[str, str]:
    """Return where a job's own calls of these commands find the service, without secrets: those stay where they are."""
    from eunomia.service.client import Unreachable, find_service

    try:
        address = find_service()
    except Unreachable:
        return {}
    if address.url.startswith("unix:"):
        return {"EUNOMIA_URL": f"unix:{os.path.abspath(address.url.removeprefix('unix:'))}"}
    return {}
