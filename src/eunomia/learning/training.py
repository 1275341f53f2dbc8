"""Training: a registry of what can be trained, and one loop with checkpoints that are whole or not there.

A `Trainable` does the work of its system; the loop counts steps, judges, keeps the best so far, and writes. Its random
numbers come from the generator that it is given, whose state is in the checkpoint: a resumed run gives the same model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from eunomia import __version__
from eunomia.inputs.atomic_write import write_output
from eunomia.inputs.install_hint import COMPANIONS, install_command
from eunomia.inputs.problems import refused
from eunomia.learning.model_file import Feature, ModelFile, ModelHeader, read_model, write_model
from eunomia.model.arrays import Array
from eunomia.model.registry import Registry
from eunomia.model.spelling_suggestions import nearest
from eunomia.runs.fingerprint import scenario_hash
from eunomia.scenario import Scenario

TRAINABLES: Registry[type[Trainable]] = Registry(
    {  # by the name in `eunomia train`; the class, here or in a companion, is loaded when it is used
        "metis": "eunomia.learning.metis.training:MetisTraining",
        "symphony": "eunomia_reproduction.symphony.training:SymphonyTraining",
        "symphony-black-box": "eunomia_reproduction.symphony.training:BlackBoxTraining",
        "order": "eunomia.learning.order.training:OrderTraining",
        "pairs": "eunomia.learning.pairs.training:PairsTraining",
        "harmony": "eunomia.learning.harmony.training:HarmonyTraining",
        "reward-model": "eunomia.learning.harmony.training:RewardModelTraining",
    }
)
COMPANION = "eunomia_reproduction"  # trains what is no policy of the cluster
ENDING = ".safetensors"


class Trainable(Protocol):
    """What `eunomia train` trains. Built as `cls(scenario, steps, rng)`; raises InvalidInput for a wrong scenario."""

    default_steps: ClassVar[int]
    judge_every: ClassVar[int]  # steps between two points of the curve
    features: tuple[Feature, ...]
    architecture: Mapping[str, Any]

    def train(self, step: int) -> None:
        """Do step number `step`, counted from 0."""
        ...

    def judge(self) -> Mapping[str, float]:
        """Return the metrics of the present model; the first, higher is better, chooses the best."""
        ...

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the model."""
        ...

    def state(self) -> dict[str, Array]:
        """Return all that training needs to go on, besides the generator."""
        ...

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from such a state."""
        ...


@dataclass(slots=True)
class TrainingRun:
    """How far a training has come."""

    name: str
    scenario_sha256: str
    seed: int
    steps: int  # wanted
    done: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)  # metrics by step
    best: dict[str, Array] = field(default_factory=dict)
    best_step: int = 0
    interrupted: bool = False

    @property
    def metric(self) -> str:
        """The name of the metric that chooses the best."""
        return next(name for name in self.curve[0] if name != "step")

    @property
    def best_point(self) -> dict[str, float]:
        """The metrics of the best model."""
        return next(point for point in self.curve if point["step"] == self.best_step)


Report = Callable[[TrainingRun], None]


def trainable_class(name: str) -> type[Trainable]:
    """Return the class of a name. Raises InvalidInput for another name, or where the extra is not installed."""
    if name not in TRAINABLES:
        raise refused("command line", "NAME", name, "nothing of this name can be trained", nearest(name, TRAINABLES))
    try:
        return TRAINABLES.load(name)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "gymnasium"):
            rule, fix = f"training needs {error.name}, which is not installed", install_command("learning")
        elif error.name == COMPANION:
            rule = f"what trains it is in a package of its own, {COMPANIONS['reproduction']}"
            fix = install_command(companion="reproduction")
        else:
            raise
        raise refused("command line", "NAME", name, rule, fix) from error


def train(
    name: str,
    scenario: Scenario,
    out: Path,
    *,
    steps: int | None = None,
    seed: int | None = None,
    resume: bool = False,
    report: Report = lambda run: None,
) -> TrainingRun:
    """Train and write MODEL and MODEL.json; with `resume` go on from MODEL's checkpoint.

    Ctrl-C keeps the best so far. Raises InvalidInput for a wrong name, scenario or checkpoint, with nothing written.
    """
    cls = trainable_class(name)
    steps, seed = cls.default_steps if steps is None else steps, scenario.seed if seed is None else seed
    rng = np.random.default_rng(seed)
    work = cls(scenario, steps, rng)  # type: ignore[call-arg]
    run = TrainingRun(name, scenario_hash(scenario), seed, steps)
    if resume:
        _resume(run, work, rng, checkpoint_of(out))
    try:
        _loop(run, work, rng, out, report)
    except KeyboardInterrupt:
        if not run.best:
            raise
        run.interrupted = True
    _write(run, work, out)
    if not run.interrupted:
        checkpoint_of(out).unlink(missing_ok=True)
    return run


def _loop(run: TrainingRun, work: Trainable, rng: np.random.Generator, out: Path, report: Report) -> None:
    if not run.curve:
        _judge(run, work)
        report(run)
    while run.done < run.steps:
        work.train(run.done)
        run.done += 1
        _check_weights(run, work)
        if run.done % work.judge_every == 0 or run.done == run.steps:
            _judge(run, work)
            write_model(checkpoint_of(out), _checkpoint(run, work, rng))
            report(run)


def _check_weights(run: TrainingRun, work: Trainable) -> None:
    """Raise InvalidInput for weights that are not finite: what they decide can look like any other decision."""
    for name, array in work.arrays().items():
        if not np.isfinite(array).all():
            rule = f"after {run.done} steps the weights {name} are not finite numbers"
            raise refused(run.name, name, None, rule, "check the rewards, or train with another seed")


def _judge(run: TrainingRun, work: Trainable) -> None:
    """Add a point to the curve, and keep the model if it is the best."""
    found = {"step": run.done, **{name: float(value) for name, value in work.judge().items()}}
    if wrong := [name for name, value in found.items() if not math.isfinite(value)]:
        rule = f"after {run.done} steps {wrong[0]} is not a finite number"
        raise refused(run.name, wrong[0], found[wrong[0]], rule, "check the rewards, or train with another seed")
    best = None if not run.best else run.best_point
    run.curve.append(found)
    if best is None or found[run.metric] > best[run.metric]:
        run.best = {name: np.array(array, dtype=np.float32) for name, array in work.arrays().items()}
        run.best_step = run.done


def _header(run: TrainingRun, work: Trainable) -> ModelHeader:
    metrics = {name: value for name, value in run.best_point.items() if name != "step"}
    return ModelHeader(
        trained=run.name, architecture=work.architecture, features=work.features, metrics=metrics, seed=run.seed,
        scenario_sha256=run.scenario_sha256, steps=run.best_step, package=__version__,
    )  # fmt: skip


def _write(run: TrainingRun, work: Trainable, out: Path) -> None:
    """Write the best model, and its header with the curve as JSON."""
    header = _header(run, work)
    write_model(out, ModelFile(header=header, arrays=run.best))
    size = sum(array.size for array in run.best.values())
    about = {**asdict(header), "parameters": size, "steps_done": run.done, "curve": run.curve}
    write_output(out.with_name(f"{out.name}.json"), (json.dumps(about, indent=1) + "\n").encode(), column="--out")


# ---- checkpoints -----------------------------------------------------------------------------------------------


def checkpoint_of(out: Path) -> Path:
    """Return the path of the checkpoint of a model."""
    return out.with_name(f"{out.name}.checkpoint")


def _checkpoint(run: TrainingRun, work: Trainable, rng: np.random.Generator) -> ModelFile:
    words = {
        "curve": run.curve,
        "done": run.done,
        "steps": run.steps,
        "best": run.best_step,
        "rng": rng.bit_generator.state,
    }
    text = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
    parts = {"state": work.state(), "best": run.best}
    arrays = {f"{part}/{name}": array for part, all_ in parts.items() for name, array in all_.items()}
    return ModelFile(header=replace(_header(run, work), steps=run.done), arrays={**arrays, "run": text})


def _resume(run: TrainingRun, work: Trainable, rng: np.random.Generator, path: Path) -> None:
    """Read a checkpoint into the run. Raises InvalidInput if it is of another training."""
    file = read_model(path)
    file.check_features(work.features)
    ours = {"trained": run.name, "scenario_sha256": run.scenario_sha256, "seed": run.seed}
    for key, value in ours.items():
        found = getattr(file.header, key)
        if found != value:
            rule = f"the checkpoint is of {key} {found!r}, and this training of {value!r}"
            raise refused(str(path), key, None, rule, "leave --resume out to begin anew, or give what it began with")
    words = json.loads(file.arrays["run"].tobytes())
    if words["steps"] != run.steps:
        rule = f"the checkpoint is of a training of {words['steps']} steps, and this one is of {run.steps}"
        raise refused(str(path), "--steps", run.steps, rule, f"give --steps {words['steps']}")
    run.curve, run.done, run.best_step = words["curve"], words["done"], words["best"]
    rng.bit_generator.state = words["rng"]
    run.best = _part(file, "best")
    work.restore(_part(file, "state"))


def _part(file: ModelFile, part: str) -> dict[str, Array]:
    return {name.partition("/")[2]: array for name, array in file.arrays.items() if name.startswith(f"{part}/")}
