"""What scripts parse is the same from Slurm's own commands and from those that `slurm-shim` writes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra service")
from tests.service.bench import LiveService, until
from tests.slurm.loopback import LoopbackCluster

from eunomia.slurm_commands.written_commands import write_commands

SITE = """\
[service]
listen = "127.0.0.1:0"
socket = "lab.sock"
[cluster]
accelerators = { cpu = 4 }
[policy]
name = "fifo"
"""
# Each line's first row, of titles, and a row of a held job, with the number and the user as they are.
LINES = [
    "squeue | head -1",
    "squeue -l | sed -n 2p",
    "squeue --start | head -1",
    "squeue -O JobID:10,State,TimeUsed,ReasonList,UserName,TimeLimit | head -1",
    "squeue -o '%i|%t|%T|%M|%l|%D|%j|%u|%r|%R|%A|%F|%K' | head -1",
    "squeue -h -j NUMBER -o '%.8i|%.2t|%10T|%.10M|%9l|%.6D|%8j|%.5u|%r|%R'",
    "squeue -h -j NUMBER -o '%8j %.2t'",
    "squeue -h -j NUMBER -r -o %t",
    "sinfo | head -1",
    "sinfo -s | head -1",
    "sinfo -o '%P|%a|%l|%D|%t|%T|%N|%G' | head -1",
    "sinfo -h -o '%a %l' | sort -u",
    "scontrol show hostnames 'a[1-2,7],b'",
    "squeue -h -j 999; echo $?",
    "sbatch nofile; echo $?",
    "echo ls | sbatch; echo $?",
    "scancel; echo $?",
    "srun; echo $?",
]


def said(line: str, folder: Path, variables: dict[str, str]) -> str:
    """Return what a line prints, standard error included."""
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return re.sub(r"\n+$", "\n", done.stdout + done.stderr)


@pytest.mark.slow
def test_scripts_read_the_same_from_both(slurm: LoopbackCluster, tmp_path: Path) -> None:
    write_commands(tmp_path / "bin", force=False)
    service = LiveService(tmp_path, SITE)
    service.start()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EUNOMIA_")}
    here = {**kept, "PATH": f"{tmp_path / 'bin'}:{kept['PATH']}", "EUNOMIA_URL": f"unix:{tmp_path}/lab.sock"}
    try:
        held = "sbatch --parsable -H -t 1:00:00 -J held --wrap 'sleep 1'"
        numbers = [said(f"{held} 2> /dev/null", tmp_path, one).strip() for one in (kept, here)]
        assert all(number.isdigit() for number in numbers), numbers
        until(lambda: "JobHeldUser" in said("squeue -h -o %r", tmp_path, here))
        differ = {}
        for line in LINES:
            theirs, ours = (
                re.sub(rf"(?m)^ *{number}(?=\|)", "N", said(line.replace("NUMBER", number), tmp_path, one))
                for number, one in zip(numbers, (kept, here), strict=True)
            )
            if theirs != ours:
                differ[line] = (theirs, ours)
        assert not differ, "".join(f"\n{line}\n{theirs!r}\n{ours!r}" for line, (theirs, ours) in differ.items())
    finally:
        slurm.clear()
        service.kill(signal.SIGTERM)
        service.stop_jobs()
