"""One run on real processes of this machine: the same core, loop, record and figures as in virtual time."""

from __future__ import annotations

import time
from pathlib import Path

from eunomia.backends.door import Backend
from eunomia.backends.local import LocalWorld
from eunomia.experiment.endings import Refusals
from eunomia.experiment.measure import measured_figures, measured_jobs, measured_note
from eunomia.experiment.searching import is_told_losses, lived_in, settings_of
from eunomia.experiment.simulation import Progress, Result, Teller, timing
from eunomia.experiment.wiring import set_up
from eunomia.experiment.worlds import with_losses
from eunomia.model.problems import InvalidInput, Problem
from eunomia.record import Record, Recorder
from eunomia.run import InlineAdviser, Observer, run
from eunomia.scenario import Scenario


def run_real(scenario: Scenario, folder: Path, *, progress: Progress | None = None) -> Result:
    """Run the scenario's jobs as processes; logs and checkpoints go to `folder`/work unless the scenario says where.

    Raises InvalidInput when the scenario's world is not a real one or a job has no command.
    """
    if scenario.world.backend != "local":
        file, row = scenario.where(("world", "backend"))
        raise InvalidInput(
            [
                Problem(
                    file=file,
                    row=row,
                    column="world.backend",
                    value=scenario.world.backend,
                    rule="eunomia run starts real processes, which this backend does not",
                    mend='set backend = "local", or use eunomia simulate',
                )
            ]
        )
    wall, cpu = time.perf_counter(), time.process_time()
    setup = set_up(scenario)
    measured = measured_jobs(scenario, setup.jobs)
    adviser, metrics, refusals = InlineAdviser(setup.policy), setup.metrics(), Refusals()
    workdir = folder / "work" if scenario.world.workdir is None else scenario.resolve(scenario.world.workdir)
    path = folder / "record.jsonl.gz"
    told = setup.tuners or is_told_losses(setup.policy)
    settings = settings_of(setup.jobs, setup.tuners) if told else None
    world = LocalWorld(setup.jobs, setup.topology, workdir=workdir, cwd=scenario.base, settings=settings)
    backend: Backend = lived_in(world, setup.jobs, setup.tuners, world.loss)
    with Recorder(path, setup.record_header()) as recorder, world:
        observers: list[Observer] = [metrics, refusals, recorder]
        if progress is not None:
            observers.append(Teller(len(setup.jobs), metrics, progress))
        stalled = run(setup.scheduler(), backend, adviser, observers)
    return Result(
        scenario=scenario,
        figures=measured_figures(with_losses(metrics, None), measured),
        timing=timing(wall, cpu, adviser, setup),
        notes=setup.notes + measured_note(measured, setup.jobs),
        record=Record(path),
        refusals=refusals.why,
        given_up=stalled,
    )
