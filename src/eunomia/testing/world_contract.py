"""The contract of every world, as pytest tests. Subclass `WorldContract` once for each world.

The suite starts and stops gangs by hand, without a scheduler, and looks at what they really did: gangs of a world that
runs processes record it by themselves (`recording_job`). A point that a world cannot have, such as adoption in a
simulation, is skipped with the world's own reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from eunomia.testing.world_driver import NotApplicable, Work, WorldDriver

LONG = Work(steps=400, step_s=0.1)  # runs until it is stopped
SHORT = Work(steps=3, step_s=0.1)
AWKWARD = (
    "two words", "single ' quote", 'double " quote', "new\nline", "semi;colon", "$(touch substituted)", "`backquotes`",
    "-dash", "--option=x", "$HOME", "back\\slash", "*", "", "tab\there", "ünïcödé", "#comment", "a=b", "%j", "!",
)  # fmt: skip


class WorldContract:
    """Contract tests of one world: subclass it as Test…, and return a driver of the world from `driver`."""

    within_s = 120.0  # for anything to happen in this world
    settle_s = 1.0  # after which what could happen has happened

    def driver(self, folder: Path, works: Mapping[str, Work]) -> WorldDriver:
        """Return a driver of a new world for jobs of these names; `folder` is empty."""
        raise NotImplementedError

    @contextlib.contextmanager
    def world(self, folder: Path, **works: Work) -> Iterator[WorldDriver]:
        """A world that is closed at the end; what does not apply to it skips the test."""
        driver = self.driver(folder, works)
        try:
            yield driver
        except NotApplicable as reason:
            pytest.skip(str(reason))
        finally:
            driver.close()

    def until_running(self, world: WorldDriver, job_id: str, epoch: int = 1) -> None:
        """Wait until the gang runs, by the world's word and by its own."""
        world.until(lambda: world.status(job_id, epoch) == "running" and epoch in world.starts(job_id), self.within_s)

    def until_begun(self, world: WorldDriver, job_id: str) -> None:
        """Wait until the gang runs, or has run: a short one may be over before it is seen."""
        seen = ("running", *OVER)
        world.until(lambda: world.status(job_id, 1) in seen and 1 in world.starts(job_id), self.within_s)

    def until_over(self, world: WorldDriver, job_id: str, epoch: int = 1) -> str:
        """Wait until the gang has ended; return how."""
        world.until(lambda: world.status(job_id, epoch) in OVER, self.within_s)
        return world.status(job_id, epoch)

    # ---- 1. whole gangs, on their seats, once --------------------------------------------------------------

    def test_a_gang_runs_on_the_seats_that_were_named_and_finishes(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG, b=SHORT) as world:
            world.launch("a", 1, seats_on(world, node=1, count=2))
            self.until_running(world, "a")
            assert world.placement("a", 1) == {1: 2}
            world.launch("b", 1, seats_on(world, node=0, count=2))
            assert self.until_over(world, "b") == "finished"
            assert (world.starts("a"), world.starts("b")) == ([1], [1])

    def test_a_gang_over_two_nodes_starts_whole(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            one, other = two_nodes_of_one_type(world)
            world.launch("a", 1, seats_on(world, one, 2) + seats_on(world, other, 2))
            self.until_running(world, "a")
            assert world.placement("a", 1) == {one: 2, other: 2}

    def test_unequal_parts_of_a_gang_have_the_sizes_that_were_named(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            one, other = two_nodes_of_one_type(world)
            world.launch("a", 1, seats_on(world, one, 2) + seats_on(world, other, 1))
            self.until_running(world, "a")
            assert world.placement("a", 1) == {one: 2, other: 1}

    def test_a_gang_whose_seats_are_not_all_free_does_not_start_in_part(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG, b=SHORT) as world:
            one, other = two_nodes_of_one_type(world)
            world.launch("a", 1, all_of(world, other))
            self.until_running(world, "a")
            world.launch("b", 1, seats_on(world, one, 1) + seats_on(world, other, 1))
            world.let_pass(self.settle_s)
            assert world.status("b", 1) == "waiting"
            assert world.starts("b") == []
            world.stop("a", 1)
            assert self.until_over(world, "a") == "stopped"
            assert self.until_over(world, "b") == "finished"

    def test_an_order_that_comes_twice_starts_one_gang(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=Work(steps=10, step_s=0.1)) as world:
            for _ in range(2):
                world.launch("a", 1, seats_on(world, 0, 1))
            self.until_begun(world, "a")
            world.launch("a", 1, seats_on(world, 0, 1))
            assert self.until_over(world, "a") == "finished"
            world.let_pass(self.settle_s)
            assert world.starts("a") == [1]

    def test_a_second_epoch_waits_until_the_first_has_left(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            self.until_running(world, "a")
            world.stop("a", 1)
            world.launch("a", 2, seats_on(world, 1, 1))
            self.until_running(world, "a", 2)
            assert world.status("a", 1) in OVER
            assert world.starts("a") == [1, 2]
            check_one_incarnation(world, "a")

    def test_a_command_that_does_not_exist_fails_and_says_so(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=Work(command=("no-such-program",))) as world:
            world.need_processes()
            world.launch("a", 1, seats_on(world, 0, 1))
            assert self.until_over(world, "a") == "failed"
            assert "no-such-program" in world.reason("a", 1)

    def test_a_job_that_fails_by_itself_is_reported_with_its_exit_code(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=Work(steps=1, exit_code=3)) as world:
            world.need_processes()
            world.launch("a", 1, seats_on(world, 0, 1))
            assert self.until_over(world, "a") == "failed"
            assert "3" in world.reason("a", 1)

    # ---- 2. stops ------------------------------------------------------------------------------------------

    def test_a_stopped_gang_saves_and_its_seats_are_free_for_the_next(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG, b=SHORT) as world:
            seats = all_of(world, 0)
            world.launch("a", 1, seats)
            self.until_running(world, "a")
            world.let_pass(0.5)
            world.stop("a", 1)
            world.launch("b", 1, seats)
            assert self.until_over(world, "a") == "stopped"
            world.until(lambda: world.saved_steps("a") > 0, self.within_s)  # a confirmed checkpoint is recorded
            assert self.until_over(world, "b") == "finished"
            assert world.overlaps("a", "b") == []

    def test_a_gang_that_ignores_the_signal_is_killed_after_its_grace_with_all_its_processes(
        self, tmp_path: Path
    ) -> None:
        work = Work(steps=400, step_s=0.1, ignores_term=True, has_child=True, grace_s=1.0)
        with self.world(tmp_path, a=work) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            self.until_running(world, "a")
            world.until(lambda: world.processes("a") >= 2, self.within_s)
            world.stop("a", 1)
            assert self.until_over(world, "a") == "stopped"
            assert world.processes("a") == 0

    def test_a_stop_of_an_epoch_that_is_over_changes_nothing(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            self.until_running(world, "a")
            world.stop("a", 1)
            assert self.until_over(world, "a") == "stopped"
            world.launch("a", 2, seats_on(world, 0, 1))
            self.until_running(world, "a", 2)
            world.stop("a", 1)
            world.let_pass(self.settle_s)
            self.until_running(world, "a", 2)

    def test_a_gang_that_is_stopped_before_it_began_never_runs(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG, b=LONG) as world:
            world.launch("a", 1, all_of(world, 0))
            self.until_running(world, "a")
            world.launch("b", 1, all_of(world, 0))
            world.stop("b", 1)
            assert self.until_over(world, "b") == "stopped"
            world.stop("a", 1)
            assert self.until_over(world, "a") == "stopped"
            world.let_pass(self.settle_s)
            assert world.starts("b") == []

    # ---- 3. restarts of our process ------------------------------------------------------------------------

    def test_after_a_restart_the_running_gang_is_adopted_and_not_started_again(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            self.until_running(world, "a")
            world.restart()
            self.until_running(world, "a")
            world.let_pass(self.settle_s)
            assert world.starts("a") == [1]
            world.stop("a", 1)
            assert self.until_over(world, "a") == "stopped"

    def test_what_ended_while_no_service_ran_is_reported_by_the_next_one(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=Work(steps=10, step_s=0.1), b=Work(steps=10, step_s=0.1, exit_code=5)) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            world.launch("b", 1, seats_on(world, 1, 1))
            self.until_begun(world, "a")
            self.until_begun(world, "b")
            world.restart(away_s=3.0)
            assert self.until_over(world, "a") == "finished"
            assert self.until_over(world, "b") == "failed"
            assert (world.starts("a"), world.starts("b")) == ([1], [1])

    def test_what_bears_an_unknown_mark_is_listed_and_left_alone(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            self.until_running(world, "a")
            world.restart(forgets=("a",))
            world.until(lambda: world.orphans() == [("a", 1)], self.within_s)
            world.let_pass(self.settle_s)
            assert world.processes("a") > 0

    # ---- 4. the engine is away -----------------------------------------------------------------------------

    @pytest.mark.parametrize("how", ["timeout", "error", "empty"])
    def test_while_the_engine_is_away_nothing_changes_and_the_state_is_unknown(self, tmp_path: Path, how: str) -> None:
        with self.world(tmp_path, a=LONG, b=SHORT) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            self.until_running(world, "a")
            with world.away(how):
                world.until(lambda: world.status("a", 1) == "unknown", self.within_s)
                world.launch("b", 1, seats_on(world, 1, 1))
                world.let_pass(self.settle_s)
                assert world.status("a", 1) == "unknown"
                assert world.status("b", 1) not in OVER
            self.until_running(world, "a")
            assert self.until_over(world, "b") == "finished"
            assert (world.starts("a"), world.starts("b")) == ([1], [1])

    # ---- 5. nodes ------------------------------------------------------------------------------------------

    def test_a_node_that_is_taken_out_of_service_and_comes_back_is_reported(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            assert world.in_service(0)
            world.launch("a", 1, seats_on(world, 1, 1))
            world.drain(0)
            world.until(lambda: not world.in_service(0), self.within_s)
            world.resume(0)
            world.until(lambda: world.in_service(0), self.within_s)

    def test_a_gang_on_a_node_that_is_lost_ends_and_another_goes_on(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG, b=LONG) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            world.launch("b", 1, seats_on(world, 1, 1))
            self.until_running(world, "a")
            self.until_running(world, "b")
            world.lose(0)
            assert self.until_over(world, "a") == "lost"
            self.until_running(world, "b")

    def test_a_node_that_comes_back_with_fewer_accelerators_is_not_in_service(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            with world.shrunk(0):
                world.until(lambda: not world.in_service(0), self.within_s)
            world.until(lambda: world.in_service(0), self.within_s)

    # ---- 6. calls whose answer is lost ---------------------------------------------------------------------

    def test_a_start_whose_answer_was_lost_is_found_and_not_repeated(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            with world.lost_answers():
                world.launch("a", 1, seats_on(world, 0, 1))
                world.let_pass(self.settle_s)
            self.until_running(world, "a")
            world.let_pass(self.settle_s)
            assert world.starts("a") == [1]

    # ---- 7. texts ------------------------------------------------------------------------------------------

    def test_arguments_and_environment_arrive_byte_for_byte(self, tmp_path: Path) -> None:
        env = {f"CONTRACT_{n}": word for n, word in enumerate(AWKWARD)}
        with self.world(tmp_path, a=Work(steps=1, arguments=AWKWARD, env=env)) as world:
            world.need_processes()
            world.launch("a", 1, seats_on(world, 0, 1))
            assert self.until_over(world, "a") == "finished"
            [start] = world.records("a", "start")
            assert start["argv"] == list(AWKWARD)
            assert {name: value for name, value in start["env"].items() if name in env} == env

    # ---- 8. others -----------------------------------------------------------------------------------------

    def test_what_others_run_is_seen_as_occupied_and_left_alone(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=SHORT) as world:
            with world.stranger(0) as runs:
                world.until(lambda: world.taken(0) > 0, self.within_s)
                world.launch("a", 1, all_of(world, 0))
                world.let_pass(self.settle_s)
                assert world.status("a", 1) == "waiting"
                assert world.starts("a") == []
                assert runs()
            assert self.until_over(world, "a") == "finished"
            world.until(lambda: world.taken(0) == 0, self.within_s)

    def test_a_gang_that_a_person_removes_ends_once_and_the_next_start_runs(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG, b=LONG) as world:
            seats = all_of(world, 0)
            world.launch("a", 1, seats)
            world.launch("b", 1, seats_on(world, 1, 1))
            self.until_running(world, "a")
            self.until_running(world, "b")
            world.remove("a", 1)
            assert self.until_over(world, "a") in ("failed", "lost")
            world.launch("a", 2, seats)
            self.until_running(world, "a", 2)
            self.until_running(world, "b")
            assert (world.starts("a"), world.starts("b")) == ([1, 2], [1])
            check_one_incarnation(world, "a")

    def test_an_id_that_is_used_again_is_not_the_gang_and_what_has_it_is_left_alone(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=LONG) as world:
            world.launch("a", 1, seats_on(world, 0, 1))
            self.until_running(world, "a")
            with world.reused("a", 1) as runs:
                world.stop("a", 1)
                assert self.until_over(world, "a") != "finished"
                world.launch("a", 2, seats_on(world, 1, 1))
                self.until_running(world, "a", 2)
                assert runs()
                world.stop("a", 2)
                assert self.until_over(world, "a", 2) == "stopped"
                assert runs()
            assert world.starts("a") == [1, 2]
            check_one_incarnation(world, "a")

    # ---- 9. the lease inside the job -----------------------------------------------------------------------

    def test_a_job_that_is_called_back_goes_on_from_its_checkpoint(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=Work(steps=40, step_s=0.1)) as world:
            world.need_processes()
            world.launch("a", 1, seats_on(world, 0, 1))
            world.until(lambda: world.saved_steps("a") >= 1, self.within_s)
            world.stop("a", 1)
            assert self.until_over(world, "a") == "stopped"
            kept = world.saved_steps("a")
            world.launch("a", 2, seats_on(world, 1, 1))
            assert self.until_over(world, "a", 2) == "finished"
            first, second = world.records("a", "start")
            assert (first["step"], second["step"]) == (0, kept)
            assert [line["step"] for line in world.records("a", "step")] == list(range(1, 41)), "each step once"

    def test_a_gang_is_given_its_job_epoch_and_size(self, tmp_path: Path) -> None:
        with self.world(tmp_path, a=Work(steps=1)) as world:
            world.need_processes()
            seats = seats_on(world, 1, 2)
            world.launch("a", 7, seats)
            assert self.until_over(world, "a", 7) == "finished"
            [start] = world.records("a", "start")
            given = {name: start["env"]["EUNOMIA_" + name] for name in ("JOB_ID", "EPOCH", "SCALE_FACTOR", "SEATS")}
            assert given == {
                "JOB_ID": "a",
                "EPOCH": "7",
                "SCALE_FACTOR": "2",
                "SEATS": ",".join(map(str, sorted(seats))),
            }


OVER = frozenset({"finished", "failed", "stopped", "lost"})


def all_of(world: WorldDriver, node: int) -> tuple[int, ...]:
    """Return all seats of a node."""
    return tuple(np.flatnonzero(world.topology.node == node).tolist())


def seats_on(world: WorldDriver, node: int, count: int) -> tuple[int, ...]:
    """Return the first seats of a node; a contract's nodes have at least two."""
    return all_of(world, node)[:count]


def two_nodes_of_one_type(world: WorldDriver) -> tuple[int, int]:
    """Return two nodes with accelerators of one type; a contract's cluster has them."""
    types = world.topology.node_type.tolist()
    return next((n, m) for n in range(len(types)) for m in range(n + 1, len(types)) if types[n] == types[m])


def check_one_incarnation(world: WorldDriver, job_id: str) -> None:
    """Raise AssertionError if lines of two epochs of a job are mixed in time."""
    epochs = [line["epoch"] for line in sorted(world.records(job_id), key=lambda line: line["at"])]
    assert epochs == sorted(epochs), f"two incarnations of {job_id!r} ran at once: {epochs}"
