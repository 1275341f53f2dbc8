"""`[world] backend = "slurm"`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eunomia.backends.engines.backend import EngineBackend
from eunomia.backends.inputs import BackendInputs
from eunomia.backends.slurm.behind import SlurmBehind
from eunomia.backends.slurm.commands import is_installed
from eunomia.backends.slurm.engine import Slurm
from eunomia.inputs.problems import InvalidInput, Problem


class SlurmBackend(EngineBackend):
    """Gangs are batch jobs of the Slurm cluster that this machine's commands speak to."""

    @staticmethod
    def engine_of(options: Mapping[str, Any]) -> Slurm:  # type: ignore[override]
        """Return the cluster, with the options of [world.slurm]."""
        return (SlurmBehind if options.get("adopt_submissions") else Slurm)(
            partition=str(options.get("partition", "")),
            account=str(options.get("account", "")),
            timeout_s=float(options.get("timeout_s", 10.0)),
        )

    @classmethod
    def check(cls, inputs: BackendInputs) -> None:
        """Raise InvalidInput for jobs that cannot run here, and without Slurm's commands."""
        super().check(inputs)
        check_installed()


def check_installed() -> None:
    """Raise InvalidInput without Slurm's commands."""
    if not is_installed():
        rule = "sbatch, squeue, scontrol and scancel are not all installed on this machine"
        raise InvalidInput([Problem(file="[world] backend", rule=rule, fix="run this on a node that can submit jobs")])
