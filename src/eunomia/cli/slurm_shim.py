"""The command `slurm-shim`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from eunomia.cli.command import Output, command
from eunomia.cli.options import argument, flag


@command
def slurm_shim(
    output: Output,
    folder: Annotated[Path, argument("DIR", "Folder to write them into; it is made if it is not there.")],
    force: Annotated[bool, flag("Replace files that slurm-shim has not written.", "--force")] = False,
) -> None:
    """Write sbatch, srun, squeue, scancel, sacct, sinfo, scontrol and sacctmgr for scripts that were made for Slurm.

    They call this installation and find the service as eunomia does. For example: eunomia slurm-shim ~/slurm-bin
    """
    from eunomia.slurm_commands.written_commands import found_in_path, write_commands

    written = write_commands(folder, force=force)
    other = found_in_path(folder)
    lines = [f"wrote {', '.join(one.name for one in written)} into {folder}"]
    lines += [f"{other} comes first in PATH"] if other else []
    lines += [f'use them:  export PATH="{folder.resolve()}:$PATH"']
    output.show({"folder": str(folder), "commands": [one.name for one in written]}, *lines)
