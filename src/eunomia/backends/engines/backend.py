"""`[world] backend` names an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from eunomia.backends.engines.engine import Engine, EngineAway, EngineRefused
from eunomia.backends.engines.gangs import EngineGangs
from eunomia.backends.inputs import BackendInputs
from eunomia.backends.process_backend import ProcessBackend
from eunomia.backends.processes.environment_filter import check_commands
from eunomia.backends.world import ProcessWorld, WorldInputs
from eunomia.inputs.problems import InvalidInput, Problem


class EngineBackend(ProcessBackend):
    """Gangs run on an engine; a subclass names it."""

    engine_of: ClassVar[Callable[[Mapping[str, Any]], Engine]]  # from the engine's table of the scenario

    @classmethod
    def check(cls, inputs: BackendInputs) -> None:
        """Raise InvalidInput for jobs that cannot run here."""
        check_commands(inputs.jobs)

    @classmethod
    def open_world(cls, inputs: WorldInputs) -> ProcessWorld:
        """Return the world of the engine."""
        return EngineGangs(cls.engine_of(inputs.options), inputs)

    @classmethod
    def discovered(cls, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the engine's nodes as those of a cluster. Raises InvalidInput if it does not answer."""
        engine = cls.engine_of(options)
        try:
            nodes = engine.nodes()
        except (EngineAway, EngineRefused) as error:
            fix = "declare the nodes instead, as in accelerators = { v100 = 4 }"
            raise InvalidInput([Problem(file="[cluster] discover", rule=str(error), fix=fix)]) from error
        finally:
            engine.close()
        return [
            {"type": kind, "accelerators": count, "cpus": node.cpus, "memory_gib": node.memory_gib}
            for node in nodes
            for kind, count in node.accelerators.items()
        ]
