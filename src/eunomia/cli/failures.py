"""`eunomia failures`: why a job failed, by what its log says."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eunomia.cli.errors import answering_errors
from eunomia.inputs.problems import InvalidInput, Problem

if TYPE_CHECKING:
    from eunomia.failures import Classification

app = typer.Typer(
    help="Say why a job failed, by what its log says.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON to stdout, errors included.")]
STDIN = "-"


@app.command()
def classify(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Logs of failed jobs, also packed as .gz; - reads stdin.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Say why the jobs of these logs failed.

    Prints reason, category, the signature that matched, and the line. Of a log above 9 MiB the first one and the last 8
    are read. With several files --json prints a list.
    """
    with answering_errors(as_json):
        verdicts = _verdicts(files)
        if as_json:
            found = [_as_dict(name, verdict) for name, verdict in verdicts]
            print(json.dumps(found if len(found) > 1 else found[0]))
            return
        for name, verdict in verdicts:
            place = "" if verdict.line is None else f":{verdict.line}"
            category = f" ({verdict.category})" if verdict.category else ""
            print(f"{name}{place}: {verdict.reason}{category}")
            if verdict.text is not None:
                print(f"    {verdict.signature}: {verdict.text}")


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List the signatures in the order in which a line is compared with them."""
    from eunomia.failures.classifier import CATEGORY
    from eunomia.failures.signatures import SIGNATURES

    rows = [
        {
            "reason": one.reason,
            "category": CATEGORY[one.reason],
            "signature": one.name,
            "tier": one.tier,
            "pattern": one.pattern.pattern,
        }
        for one in SIGNATURES
    ]
    if as_json:
        print(json.dumps(rows))
        return
    for one in SIGNATURES:
        print(f"{one.reason:22} {CATEGORY[one.reason]:8} {one.tier}  {one.name}")


def _verdicts(files: list[str]) -> list[tuple[str, Classification]]:
    """Return the verdict on each file. Raises InvalidInput that names every file that cannot be read."""
    from eunomia.failures.classifier import classify_lines
    from eunomia.failures.logs import open_log, read_ends

    found, problems = [], []
    for name in files:
        try:
            if name == STDIN:
                found.append((name, classify_lines(read_ends(sys.stdin.buffer))))
            else:
                with open_log(Path(name)) as file:
                    found.append((name, classify_lines(read_ends(file))))
        except (OSError, EOFError, zlib.error, ValueError) as error:  # ValueError: a name that no file can have
            rule = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
            problems.append(Problem(file=name, rule=rule, fix="give a text file that you may read, or - for stdin"))
    if problems:
        raise InvalidInput(problems)
    return found


def _as_dict(name: str, verdict: Classification) -> dict[str, object]:
    return {
        "file": name,
        "reason": verdict.reason,
        "category": verdict.category,
        "signature": verdict.signature,
        "line": verdict.line,
        "text": verdict.text,
    }
