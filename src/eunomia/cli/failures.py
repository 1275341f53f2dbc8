"""`eunomia failures`: classifies why jobs failed from their logs."""

from __future__ import annotations

import sys
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, group
from eunomia.inputs.problems import InvalidInput, Problem

if TYPE_CHECKING:
    from eunomia.failures import Classification

app = group("Say why a job failed, by what its log says.")
STDIN = "-"


@app.command(epilog="Example:  eunomia failures classify out/local/work/*/log.txt")
@command
def classify(
    output: Output,
    files: Annotated[list[str], argument("FILE...", "Logs of failed jobs, also packed as .gz; - reads stdin.")],
) -> None:
    """Say why the jobs of these logs failed.

    Prints reason, category, the signature that matched, and the line. Of a log above 9 MiB the first one and the last 8
    are read. With several files --json prints a list.
    """
    classified = _classify_files(files)
    results, lines = [{"file": name, **asdict(result)} for name, result in classified], []
    for name, result in classified:
        place = "" if result.line is None else f":{result.line}"
        category = f" ({result.category})" if result.category else ""
        lines.append(f"{name}{place}: {result.reason}{category}")
        if result.text is not None:
            lines.append(f"    {result.signature}: {result.text}")
    output.show(results if len(results) > 1 else results[0], *lines)


@app.command("list", epilog="Example:  eunomia failures list")
@command
def list_(output: Output) -> None:
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
    output.show(rows, *(f"{one.reason:22} {CATEGORY[one.reason]:8} {one.tier}  {one.name}" for one in SIGNATURES))


def _classify_files(files: list[str]) -> list[tuple[str, Classification]]:
    """Return the classification of each file. Raises InvalidInput naming every file that cannot be read."""
    from eunomia.failures.classifier import classify_lines
    from eunomia.failures.logs import open_log, read_ends

    results, problems = [], []
    for name in files:
        try:
            if name == STDIN:
                results.append((name, classify_lines(read_ends(sys.stdin.buffer))))
            else:
                with open_log(Path(name)) as file:
                    results.append((name, classify_lines(read_ends(file))))
        except (OSError, EOFError, zlib.error, ValueError) as error:  # ValueError: an invalid file name
            rule = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
            problems.append(Problem(file=name, rule=rule, fix="give a text file that you may read, or - for stdin"))
    if problems:
        raise InvalidInput(problems)
    return results
