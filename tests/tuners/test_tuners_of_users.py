"""Plug-in tuners: found by name, checked against the interface, and their errors reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.runs.simulation import simulate
from eunomia.tuners.tuner import InvalidTunerRequest

Scene = Callable[..., Mapping[str, Any]]
FIRST_ONLY = """\
from eunomia.tuners.tuner import Trials
from eunomia.tuners.tuner import NOTHING, TunerRequests


class FirstOnly(Trials):
    '''Gives up all but the first `kept` trials as soon as those have done so many steps.'''

    def __init__(self, seed, kept=1, steps=600.0):
        if kept < 1:
            raise ValueError("kept is 0; keep one at least")
        super().__init__()
        self.kept, self.steps = kept, steps

    def submitted(self, job):
        return TunerRequests(watch={job.job_id: self.steps})

    def measured(self, job_id, steps, loss):
        rest = list(self.jobs)[self.kept:]
        return TunerRequests(events=[*self.drop(rest), *self.finish()])


class Careless(FirstOnly):
    def ended(self, job_id, loss):
        pass


class Thief(FirstOnly):
    def measured(self, job_id, steps, loss):
        from eunomia.model.events import JobCancelled
        return TunerRequests(events=[JobCancelled("alone", by_tuner=True)])


class Greedy(FirstOnly):
    def ask(self):
        return "t0"


class Watcher(FirstOnly):
    def submitted(self, job):
        return TunerRequests(watch={job.job_id: float("nan")})


class Lister(FirstOnly):
    def submitted(self, job):
        return TunerRequests(watch=[job.job_id])


class Talker(FirstOnly):
    def measured(self, job_id, steps, loss):
        return TunerRequests(events=["stop"])


class Broken(FirstOnly):
    def measured(self, job_id, steps, loss):
        return {}["no such thing"]


class Unmade(FirstOnly):
    def __init__(self, seed):
        {}["no such thing"]


class NoTuner:
    def begin(self, app, trials):
        return NOTHING
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(FIRST_ONLY, encoding="utf-8")
    return str(path)


def cancelled(scene: Mapping[str, Any]) -> set[str]:
    jobs = simulate(scene).jobs
    return {job_id for job_id, by in zip(jobs["job_id"], jobs["cancelled_by"], strict=True) if by == "tuner"}


def test_a_class_in_a_file_owns_the_trials_and_gets_its_parameters(scene: Scene, own: str) -> None:
    trials = {f"t{m}" for m in range(9)}
    assert cancelled(scene(f"{own}:FirstOnly")) == trials - {"t0"}
    apps = {"tuner": f"{own}:FirstOnly", "parameters": {"kept": 4}}
    assert cancelled(scene("", apps=apps)) == trials - {"t0", "t1", "t2", "t3"}


@pytest.mark.parametrize(
    ("tuner", "more", "said"),
    [
        ("halvin", {}, "did you mean 'halving'?"),
        ("nowhere.py:Mine", {}, "there is no file"),
        ("{own}:FirstOnl", {}, "did you mean 'FirstOnly'?"),
        ("{own}:NoTuner", {}, "has no tuner 'NoTuner'"),
        ("{own}:FirstOnly", {"parameters": {"keep": 2}}, "it takes kept, steps"),
        ("{own}:FirstOnly", {"parameters": {"kept": 0}}, "keep one at least"),
        ("{own}:Unmade", {}, "KeyError: 'no such thing'"),
        ("{own}:FirstOnly", {"eta": 4}, "does nothing with tuner"),
        ("halving", {"parameters": {"kept": 2}}, "does nothing with tuner"),
    ],
)
def test_a_tuner_that_cannot_be_made_is_refused_by_name(
    scene: Scene, own: str, tuner: str, more: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        simulate(scene("", apps={"tuner": tuner.format(own=own), **more}))
    assert any(said in f"{problem.rule} {problem.fix}" for problem in refused.value.problems), refused.value


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Careless", "ended() returned NoneType; return TunerRequests"),
        ("Thief", "measured() names 'alone', which is no trial of its app"),
        ("Greedy", "ask() returned str; return a list of job ids"),
        ("Watcher", "submitted() watches 't0' for nan steps; give a number"),
        ("Lister", "submitted() watches what is no mapping"),
        ("Talker", "measured() wishes 'stop', which is no event of a user"),
        ("Broken", "KeyError: 'no such thing'"),
    ],
)
def test_an_invalid_request_is_the_tuners_error(scene: Scene, own: str, name: str, said: str) -> None:
    with pytest.raises(InvalidTunerRequest) as wrong:
        simulate(scene(f"{own}:{name}"))
    assert said in str(wrong.value)
