"""The life of a job: one table, checked, drawn, and kept to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.events import Moment, NodeLost
from eunomia.model.job_lifecycle import CAUSES, FINAL, LIFE, NEXT_STAGE, Cause, IllegalStep, Stage, diagram, step
from eunomia.policies.order.fifo import Fifo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jobs.md"


def test_every_stage_can_be_reached() -> None:
    reached = {Stage.WAITING}
    while more := {end for (start, _), end in LIFE.items() if start in reached} - reached:
        reached |= more
    assert reached == set(Stage)


def test_the_final_stages_are_the_four_ends_and_nothing_leaves_them() -> None:
    assert {Stage.FINISHED, Stage.FAILED, Stage.CANCELLED, Stage.REJECTED} == FINAL
    assert not any(start in FINAL for start, _ in LIFE)


def test_from_every_other_stage_every_end_can_still_be_reached_but_a_job_that_runs_is_not_refused() -> None:
    assert (Stage.RUNNING, Cause.REFUSED) not in LIFE
    for stage in set(Stage) - FINAL:
        assert (stage, Cause.CANCELLED) in LIFE


def test_every_cause_changes_some_stage() -> None:
    assert {cause for _, cause in LIFE} == set(Cause)


@given(st.sampled_from(list(Stage)), st.sampled_from(list(Cause)))
def test_a_step_is_in_the_table_or_is_refused_with_the_name_of_the_job(stage: Stage, cause: Cause) -> None:
    if (stage, cause) in LIFE:
        assert step(stage, cause, "j") is LIFE[stage, cause]
    else:
        with pytest.raises(IllegalStep, match=f"'j' is {stage.name.lower()}"):
            step(stage, cause, "j")


def test_the_diagram_of_the_documentation_is_drawn_from_the_table() -> None:
    """To fix: put the output of `eunomia.model.job_lifecycle.diagram()` between the markers."""
    page = PAGE.read_text(encoding="utf-8")
    drawn = page.split("```mermaid\n")[1].split("\n```")[0]
    assert drawn == diagram()


def test_compiled_steps_have_the_same_table() -> None:
    for number, cause in enumerate(CAUSES):
        for stage in Stage:
            assert NEXT_STAGE[number, stage] == LIFE.get((stage, cause), -1)


def test_a_loss_that_the_table_does_not_have_is_reported_with_the_last_events_of_the_job(sit: Any) -> None:
    desk = sit(Fifo(), (2,))
    desk.submit(0, "a")
    desk.submit(1, "b", "c")
    core = desk.scheduler
    core.state.jobs.stage[0] = Stage.PAUSED  # no step of ours does that
    reported = r"job 'a' is paused; NodeLost cannot happen to it; its last events: JobSubmitted at 0 s, Starts at 0 s"
    with pytest.raises(IllegalStep, match=reported):
        core.handle(Moment(5.0, (NodeLost(0),)))
