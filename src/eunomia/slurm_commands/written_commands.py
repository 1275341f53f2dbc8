"""Writes the commands into a folder, as small files that call the environment that wrote them."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.slurm_commands.__main__ import COMMANDS

MARK = "# written by eunomia slurm-shim"
TEXT = """\
#!/bin/sh
{mark}
exec {python} -m eunomia.slurm_commands {name} "$@"
"""


def write_commands(folder: Path, *, force: bool) -> list[Path]:
    """Write each command; files that others wrote are kept.

    Raises InvalidInput where there are such files, with all of them; with `force` they are replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidInput([Problem(file=str(folder), rule="is no folder", fix="name another place")])
    problems = []
    for name in COMMANDS:
        path = folder / name
        if (path.exists() or path.is_symlink()) and not force and not _is_ours(path):
            problems.append(Problem(file=str(path), rule="exists, and slurm-shim has not written it",
                                    fix="name another folder, or add --force"))  # fmt: skip
    if problems:
        raise InvalidInput(problems)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in COMMANDS:
        path = folder / name
        text = TEXT.format(mark=MARK, python=shlex.quote(sys.executable), name=name)
        write_whole(path, text.encode())
        path.chmod(0o755)
        written.append(path)
    return written


def _is_ours(path: Path) -> bool:
    try:
        return MARK in path.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return False


def found_in_path(folder: Path) -> str:
    """Return which sbatch a shell finds now; "" where it is the one of this folder."""
    found = shutil.which("sbatch")
    return "" if found is None or Path(found).parent.resolve() == folder.resolve() else found
