"""A real Slurm keeps the contract of worlds: slurmctld, three slurmd, and processes that write down what they do."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.engines.driver import ORDER, EngineDriver
from tests.engines.loopback import until
from tests.slurm.loopback import LoopbackCluster

from eunomia.backends.engines.engine import EngineAway
from eunomia.backends.processes.folder import folder_name
from eunomia.backends.slurm.commands import Said, run_command
from eunomia.backends.slurm.engine import Slurm
from eunomia.testing import Work, WorldContract, WorldDriver


class SlurmDriver(EngineDriver):
    """Drives the world of a service whose engine is the loopback cluster."""

    def __init__(self, cluster: LoopbackCluster, folder: Path, works: Mapping[str, Work]) -> None:
        self.cluster = cluster
        self._empties, self._loses = False, False
        super().__init__(Slurm(timeout_s=1.0, run=self._run), folder, works)

    def _run(self, argv: Sequence[str], timeout_s: float) -> Said:
        """Run a command, or let it answer as during a fault."""
        if self._empties and argv[0] == "squeue":
            return Said(0, "", "")
        if self._empties and argv[:3] == ("scontrol", "show", "job"):
            return Said(1, "", "slurm_load_jobs error: Invalid job id specified")
        said = run_command(argv, timeout_s)
        if self._loses and argv[0] == "sbatch":
            raise EngineAway("sbatch did not answer in time")
        return said

    def close(self) -> None:
        super().close()
        self.cluster.clear()

    def placement(self, job_id: str, epoch: int) -> dict[int, int]:
        """Return what Slurm says that the job has."""
        shown = self.cluster.do("scontrol", "show", "job", "--details", "--oneliner")
        found: Counter[int] = Counter()
        for line in shown.splitlines():
            if f":{job_id}:{epoch} " in line and "JobState=RUNNING" in line:
                for nodes, count in re.findall(r" Nodes=(\S+) .*?GRES=gpu:\w+:(\d+)", line):
                    for name in self.cluster.do("scontrol", "show", "hostnames", nodes).split():
                        found[ORDER.index(name)] += int(count)
        return dict(found)

    @contextmanager
    def away(self, how: str) -> Iterator[None]:
        match how:
            case "timeout":
                self.cluster.signal_controller(signal.SIGSTOP)
                yield
                self.cluster.signal_controller(signal.SIGCONT)
            case "error":
                self.cluster.signal_controller(signal.SIGTERM)
                yield
                self.cluster.start_controller()
            case _:
                self._empties = True
                yield
                self._empties = False

    @contextmanager
    def lost_answers(self) -> Iterator[None]:
        self._loses = True
        yield
        self._loses = False

    def remove(self, job_id: str, epoch: int) -> None:
        self.cluster.do("scancel", f"--name=eu-{folder_name(job_id)}-{epoch}")

    @contextmanager
    def reused(self, job_id: str, epoch: int) -> Iterator[Callable[[], bool]]:
        """Slurm's controller dies without its state, as when that is not yet on disk, and gives the number again."""
        name = f"eu-{folder_name(job_id)}-{epoch}"
        number = self.cluster.do("squeue", "-h", f"--name={name}", "-o", "%A")
        self.cluster.forget_jobs()
        held = ("sbatch", "--parsable", "--hold", f"--nodelist={ORDER[2]}", "--gres=gpu:1", "--output=/dev/null")
        while (other := self.cluster.do(*held, "--wrap=sleep 600")) != number:  # numbers begin at 1 again
            self.cluster.do("scancel", other)
        self.cluster.do("scontrol", "release", number)
        until(lambda: self.cluster.say("squeue", "-h", "-j", number, "-o", "%T").strip() == "RUNNING", "it runs")
        yield lambda: self.cluster.say("squeue", "-h", "-j", number, "-o", "%T").strip() == "RUNNING"
        self.cluster.do("scancel", number)

    def drain(self, node: int) -> None:
        self._update(node, "state=drain", "reason=fans")

    def resume(self, node: int) -> None:
        self._update(node, "state=resume")

    def lose(self, node: int) -> None:
        self._update(node, "state=down", "reason=lost")

    def _update(self, node: int, *values: str) -> None:
        self.cluster.do("scontrol", "update", f"nodename={ORDER[node]}", *values)

    @contextmanager
    def shrunk(self, node: int) -> Iterator[None]:
        assert node == 0
        self.cluster.set_accelerators(3)
        yield
        self.cluster.set_accelerators(4)

    @contextmanager
    def stranger(self, node: int) -> Iterator[Callable[[], bool]]:
        job = self.cluster.do("sbatch", "--parsable", f"--nodelist={ORDER[node]}", "--gres=gpu:1", "--output=/dev/null",
                              "--wrap=sleep 600")  # fmt: skip
        yield lambda: self.cluster.say("squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING"
        self.cluster.do("scancel", job)


class TestSlurmWorld(WorldContract):
    settle_s = 1.0

    @pytest.fixture(autouse=True)
    def _with_cluster(self, slurm: LoopbackCluster) -> None:
        self.cluster = slurm

    def driver(self, folder: Path, works: Mapping[str, Work]) -> WorldDriver:
        return SlurmDriver(self.cluster, folder, works)
