"""What happens to a world whose engine answers in a way that was not expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.backends.fake_slurm import FakeSlurm, soon
from tests.backends.test_slurm_commands import CLUSTER, World

from eunomia.backends.engines.backend import EngineBackend
from eunomia.backends.engines.engine import EngineAway
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


class Broken(EngineBackend):
    """A world whose engine fails in a way that was not expected."""

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


class Late(EngineBackend):
    """A world whose engine does not answer at first."""

    lists = 0  # that were asked for
    away = 3  # of these, without an answer

    @staticmethod
    def engine_of(options: Mapping[str, Any]) -> Slurm:  # type: ignore[override]
        slurm = FakeSlurm()

        def run(argv: Sequence[str], timeout_s: float) -> Said:
            Late.lists += argv[0] == "squeue"
            if argv[0] == "squeue" and Late.lists <= Late.away:
                raise EngineAway("squeue did not answer")
            return slurm(argv, timeout_s)

        return Slurm(run=run)


def inputs_of(folder: Path, **options: Any) -> BackendInputs:
    """Return the inputs of a run of one job."""
    unused = cast(Any, None)
    job = Job(job_id="a", job_type="x", total_steps=1.0, command=("true",))
    return BackendInputs(
        jobs=[job], topology=CLUSTER, speeds=unused, overheads=unused, faults=unused, neighbours=None,
        divides_time=False, checkpoint_every_s=1.0, replay_status=False, seed=0, workdir=folder, folder=folder,
        options=options,
    )  # fmt: skip


def test_a_run_begins_when_its_engine_has_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Late, "lists", 0)
    with Late.build(inputs_of(tmp_path, poll_s=0.05)) as world:
        next(world.moments())
        assert Late.lists > Late.away


def test_a_run_whose_engine_is_away_for_long_begins_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Late, "lists", 0)
    monkeypatch.setattr(Late, "away", 10**9)
    monkeypatch.setattr("eunomia.backends.process_backend.REACH_S", 0.2)
    with Late.build(inputs_of(tmp_path, poll_s=0.05)) as world:
        assert next(world.moments()).events


def test_a_run_whose_engine_fails_unexpectedly_ends_with_that_error(tmp_path: Path) -> None:
    with Broken.build(inputs_of(tmp_path)) as world:
        world.carry_out(SetTimer(60.0))
        with pytest.raises(RuntimeError, match="no more orders") as caught:
            list(world.moments())
    assert isinstance(caught.value.__cause__, KeyError)
