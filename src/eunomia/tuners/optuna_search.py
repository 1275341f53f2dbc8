"""Optuna drives an app: it says what each trial is run with, and hears how good it was.

Needs the package optuna (`pip install 'eunomia[tuners]'`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from eunomia.model.events import JobCancelled
from eunomia.tuners.trials import Trials
from eunomia.tuners.tuner import NOTHING, TunerRequests

INSTALL = "pip install 'eunomia[tuners]'"


class OptunaSearch(Trials):
    """A study of Optuna with its own sampler and pruner; the jobs of the app are its trials.

    `space` names ranges and choices, as in `[apps.space]`. Raises ImportError, with what to type, without Optuna.
    """

    def __init__(self, space: Mapping[str, Any], seed: int, *, parallel: int | None = None, most: int | None = None):
        super().__init__(parallel=parallel, most=most)
        try:
            import optuna
        except ImportError as error:
            raise ImportError(f"the tuner optuna needs the package optuna; type: {INSTALL}") from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = {name: _distribution(optuna.distributions, said) for name, said in space.items()}
        sampler = optuna.samplers.TPESampler(seed=seed)
        pruner = optuna.pruners.MedianPruner(n_startup_trials=4)
        self._study = optuna.create_study(direction="minimize", sampler=sampler, pruner=pruner)
        self._failed = optuna.trial.TrialState.FAIL
        self._pruned = optuna.trial.TrialState.PRUNED
        self._asked: dict[str, Any] = {}
        self._told: dict[str, int] = {}  # steps at which a loss was reported last

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Ask the study what the trial is run with, when it first starts."""
        if job_id not in self._asked:
            self._asked[job_id] = self._study.ask(self._space)
        return dict(self._asked[job_id].params)

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Let the study prune the trial."""
        trial = self._asked.get(job_id)
        told = int(steps)
        if trial is None or job_id not in self.alive or math.isnan(loss) or self._told.get(job_id) == told:
            return NOTHING  # a trial that goes on from its checkpoint says again what that holds
        self._told[job_id] = told
        trial.report(loss, told)
        if not trial.should_prune():
            return NOTHING
        self._study.tell(trial, state=self._pruned)
        del self._asked[job_id], self.alive[job_id]
        return TunerRequests(events=[JobCancelled(job_id, by_tuner=True), *self.finish()])

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Tell the study how good the trial was."""
        trial = self._asked.pop(job_id, None)
        if trial is not None and math.isnan(loss):
            self._study.tell(trial, state=self._failed)
        elif trial is not None:
            self._study.tell(trial, loss)
        return super().ended(job_id, loss)


def _distribution(kinds: Any, said: Any) -> Any:
    if isinstance(said, list | tuple):
        return kinds.CategoricalDistribution(tuple(said))
    log = said.get("log", False)
    if said.get("whole", False):
        return kinds.IntDistribution(int(said["low"]), int(said["high"]), log=log)
    return kinds.FloatDistribution(float(said["low"]), float(said["high"]), log=log)
