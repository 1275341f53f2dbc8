"""A real Slurm on this machine: slurmctld and three slurmd on loopback, with fake typed accelerators.

Everything is in one folder, on free ports; the daemons are children of this process and end with `close`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.engines.loopback import NODES, end_all, free_ports, until

CONF = """\
ClusterName=loop
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=10000,batch_sched_delay=0,{scheduling}
PriorityType=priority/basic
JobRequeue=1
KillWait=5
MessageTimeout=10
SlurmdTimeout=60
MinJobAge={min_job_age}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
GresTypes=gpu
NodeName=v100-0 NodeHostname=localhost NodeAddr=127.0.0.1 Port={v100-0} CPUs=8 RealMemory=4000 Gres=gpu:v100:4 \
Feature=v100
NodeName=v100-1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={v100-1} CPUs=8 RealMemory=4000 Gres=gpu:v100:4 \
Feature=v100
NodeName=k80-0 NodeHostname=localhost NodeAddr=127.0.0.1 Port={k80-0} CPUs=8 RealMemory=4000 Gres=gpu:k80:8 Feature=k80
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
GRES = """\
NodeName=v100-0 Name=gpu Type=v100 File={folder}/gpu[0-{last}]
NodeName=v100-1 Name=gpu Type=v100 File={folder}/gpu[0-3]
NodeName=k80-0 Name=gpu Type=k80 File={folder}/gpu[0-7]
"""
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")


def why_not() -> str:
    """Return why a cluster cannot be started here; "" if it can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing:
        return f"{', '.join(missing)} not installed; as root on Debian, make test-slurm installs Slurm"
    return "" if os.geteuid() == 0 else "slurmd with fake accelerators needs root"


class LoopbackCluster:
    """The running cluster."""

    def __init__(self, folder: Path, *, min_job_age: int = 300, scheduling: str = "default_queue_depth=1000") -> None:
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        ports = dict(zip(["port", *NODES], free_ports(1 + len(NODES)), strict=True))
        for name in ("state", "spool", *(f"spool/{node}" for node in NODES)):
            (folder / name).mkdir(mode=0o755)
        fields = {"folder": folder, "min_job_age": min_job_age, "scheduling": scheduling, **ports}
        self.conf.write_text(CONF.format(**fields))
        self._write_gres(4)
        (folder / "jobcomp.txt").touch()
        for number in range(8):  # a device that acts like /dev/null
            os.mknod(folder / f"gpu{number}", 0o666 | 0o020000, os.makedev(1, 3))
        (folder / "munge.key").write_bytes(os.urandom(64))
        (folder / "munge.key").chmod(0o600)
        os.environ["SLURM_CONF"] = str(self.conf)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        folder = self.folder
        self._daemon(
            "munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key",
            f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed",
        )  # fmt: skip
        until((folder / "munge.socket").exists, "munged is up")
        self.start_controller()
        for node in NODES:
            self._daemon("slurmd", "-D", "-N", node, name=node)
        until(lambda: self.say("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split().__len__() == len(NODES),
               "all nodes are idle")  # fmt: skip

    def _daemon(self, *argv: str, name: str = "") -> None:
        path = f"/usr/sbin:/sbin:{os.environ['PATH']}"
        with open(self.folder / f"{name or argv[0]}.out", "ab") as out:
            self._daemons[name or argv[0]] = subprocess.Popen(
                [shutil.which(argv[0], path=path) or argv[0], *argv[1:]],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def start_controller(self) -> None:
        """Start slurmctld, and wait until it answers."""
        self._daemon("slurmctld", "-D")
        until(lambda: "UP" in self.say("scontrol", "ping"), "slurmctld answers")

    def _write_gres(self, count: int) -> None:
        (self.folder / "gres.conf").write_text(GRES.format(folder=self.folder, last=count - 1))

    def set_accelerators(self, count: int) -> None:
        """Start the slurmd of node v100-0 again, with so many accelerators."""
        self._write_gres(count)
        self._daemons["v100-0"].terminate()
        self._daemons["v100-0"].wait()
        self._daemon("slurmd", "-D", "-N", "v100-0", name="v100-0")
        expected = "idle" if count == NODES["v100-0"][1] else "inval"
        until(lambda: self._state("v100-0") == expected, "slurmd has registered again")

    def _state(self, node: str) -> str:
        """Return the state of a node, after an attempt to resume it if it registered as it should."""
        state = self.say("sinfo", "-h", "-n", node, "-o", "%t").strip().rstrip("*")
        if state in ("drain", "down"):
            self.say("scontrol", "update", f"nodename={node}", "state=resume")
        return state

    def signal_controller(self, number: int) -> None:
        """Send a signal to slurmctld; after one that ends it, wait for that."""
        self._daemons["slurmctld"].send_signal(number)
        if number in (signal.SIGTERM, signal.SIGKILL):
            self._daemons["slurmctld"].wait()

    def forget_jobs(self) -> None:
        """Kill slurmctld and start it without what it had written about jobs."""
        self.signal_controller(signal.SIGKILL)
        for path in (self.folder / "state").glob("job_state*"):
            path.unlink()
        self.start_controller()

    def say(self, *argv: str) -> str:
        """Return what a command prints; "" if it fails."""
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
        return done.stdout if done.returncode == 0 else ""

    def do(self, *argv: str) -> str:
        """Run a command that must succeed; return what it prints."""
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return done.stdout.strip()

    def clear(self) -> None:
        """Cancel all jobs, resume all nodes, and wait until nothing is left."""
        self.say("scancel", "--user=root")
        for node in NODES:
            if "idle" not in self.say("sinfo", "-h", "-n", node, "-o", "%t"):
                self.say("scontrol", "update", f"nodename={node}", "state=resume")
        until(lambda: not self.say("squeue", "-h"), "no job is left")
        until(lambda: self.say("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split().__len__() == len(NODES),
               "all nodes are idle again")  # fmt: skip

    def close(self) -> None:
        """End the daemons."""
        end_all(reversed(self._daemons.values()))
        os.environ.pop("SLURM_CONF", None)
