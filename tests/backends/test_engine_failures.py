"""What happens to a world on an engine when the engine's answers are not what anybody expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.backends.fake_slurm import FakeSlurm, soon
from tests.backends.test_slurm_commands import CLUSTER, World

from eunomia.backends.engines.engine import EngineAway
from eunomia.backends.engines.world import EngineWorld
from eunomia.backends.inputs import BackendInputs
from eunomia.backends.orders import Halt
from eunomia.backends.reports import Launched
from eunomia.backends.slurm.commands import Said
from eunomia.backends.slurm.engine import Slurm
from eunomia.model.decisions import SetTimer
from eunomia.model.job import Job


class HiddenNodes(FakeSlurm):
    """A cluster whose nodes cannot be listed while `hides`."""

    hides = False

    def __call__(self, argv: Sequence[str], timeout_s: float) -> Said:
        if self.hides and tuple(argv[:3]) == ("scontrol", "show", "node"):
            raise EngineAway("scontrol did not answer")
        return super().__call__(argv, timeout_s)


class Broken(EngineWorld):
    """A world whose engine fails as nobody expects."""

    @staticmethod
    def engine_of(options: Mapping[str, Any]) -> Slurm:  # type: ignore[override]
        def run(argv: Sequence[str], timeout_s: float) -> Said:
            raise KeyError("JobId")

        return Slurm(run=run)


def test_an_adopted_gang_that_is_called_back_while_nodes_cannot_be_listed_is_called_back_later(tmp_path: Path) -> None:
    slurm = HiddenNodes()
    first = World(tmp_path, slurm)
    first.launch()
    first.wait(Launched("a", 1))
    first.gangs.close()
    slurm.hides = True
    world = World(tmp_path, slurm)
    try:
        world.launch(adopt_only=True)
        world.wait(Launched("a", 1))
        world.gangs.carry_out([Halt(2, "a", 1, save=True)])
        polls = len(slurm.argv)
        soon(lambda: len(slurm.argv) > polls + 5)
        assert world.gangs.failure is None
        assert not any(argv[0] == "scancel" for argv in slurm.argv)
        slurm.hides = False
        soon(lambda: any(argv[0] == "scancel" for argv in slurm.argv))
    finally:
        world.gangs.close()


def test_a_run_whose_engine_fails_unexpectedly_ends_with_that_error(tmp_path: Path) -> None:
    job = Job(job_id="a", job_type="x", total_steps=1.0, command=("true",))
    unused = cast(Any, None)
    inputs = BackendInputs(
        jobs=[job], topology=CLUSTER, speeds=unused, overheads=unused, faults=unused, neighbours=None,
        divides_time=False, checkpoint_every_s=1.0, replay_status=False, seed=0, workdir=tmp_path, folder=tmp_path,
    )  # fmt: skip
    with Broken(inputs) as world:
        world.carry_out(SetTimer(60.0))
        with pytest.raises(RuntimeError, match="no more orders") as caught:
            list(world.moments())
    assert isinstance(caught.value.__cause__, KeyError)
