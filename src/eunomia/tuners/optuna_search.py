"""A tuner that uses Optuna: it chooses the settings of each trial from the losses of others.

Needs the package optuna (the extra `tuners`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from eunomia.inputs.install_hint import install_command
from eunomia.model.events import JobCancelled
from eunomia.tuners.tuner import NOTHING, Trials, TunerRequests


class OptunaSearch(Trials):
    """A study of Optuna with its own sampler and pruner; the jobs of the app are its trials.

    `space` has ranges and choices, as in `[apps.space]`. Raises ImportError, with the install command, without Optuna.
    """

    def __init__(self, space: Mapping[str, Any], seed: int, *, parallel: int | None = None, most: int | None = None):
        super().__init__(parallel=parallel, most=most)
        try:
            import optuna
        except ImportError as error:
            raise ImportError(
                f"the tuner optuna needs the package optuna; type: {install_command('tuners')}"
            ) from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = {name: _distribution(optuna.distributions, range_) for name, range_ in space.items()}
        sampler = optuna.samplers.TPESampler(seed=seed)
        pruner = optuna.pruners.MedianPruner(n_startup_trials=4)
        self._study = optuna.create_study(direction="minimize", sampler=sampler, pruner=pruner)
        self._failed = optuna.trial.TrialState.FAIL
        self._pruned = optuna.trial.TrialState.PRUNED
        self._trials: dict[str, Any] = {}  # Optuna's, by job
        self._reported: dict[str, int] = {}  # steps of the last report

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Return the study's settings of the trial, drawn at its first start."""
        if job_id not in self._trials:
            self._trials[job_id] = self._study.ask(self._space)
        return dict(self._trials[job_id].params)

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Report the loss; cancel the trial if the study prunes it."""
        trial = self._trials.get(job_id)
        step = int(steps)
        if trial is None or job_id not in self.alive or math.isnan(loss) or self._reported.get(job_id) == step:
            return NOTHING  # a restarted trial repeats the report of its checkpoint
        self._reported[job_id] = step
        trial.report(loss, step)
        if not trial.should_prune():
            return NOTHING
        self._study.tell(trial, state=self._pruned)
        del self._trials[job_id], self.alive[job_id]
        return TunerRequests(events=[JobCancelled(job_id, by_tuner=True), *self.finish()])

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Report the final loss, or the failure, to the study."""
        trial = self._trials.pop(job_id, None)
        if trial is not None and math.isnan(loss):
            self._study.tell(trial, state=self._failed)
        elif trial is not None:
            self._study.tell(trial, loss)
        return super().ended(job_id, loss)


def _distribution(distributions: Any, values: Any) -> Any:
    """Return Optuna's distribution of a list of choices, or of a range."""
    if isinstance(values, list | tuple):
        return distributions.CategoricalDistribution(tuple(values))
    log = values.get("log", False)
    if values.get("whole", False):
        return distributions.IntDistribution(int(values["low"]), int(values["high"]), log=log)
    return distributions.FloatDistribution(float(values["low"]), float(values["high"]), log=log)
