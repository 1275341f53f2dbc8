"""What a proxy, a busy server or a conflict does to gangs on Kubernetes: nothing twice, known again in one list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
from tests.engines.driver import ORDER
from tests.kubernetes.loopback import LoopbackServer
from tests.kubernetes.test_kubernetes_contract import KubernetesDriver
from tests.kubernetes.transport import READS, WRITES, FaultyTransport

from eunomia.testing import Work
from eunomia.testing.world_contract import OVER, seats_on

WITHIN_S = 180.0
LONG, SHORT = Work(steps=400, step_s=0.1), Work(steps=3, step_s=0.1)
Driver = Callable[..., KubernetesDriver]


@pytest.fixture
def drive(server: LoopbackServer, tmp_path: Path) -> Iterator[Driver]:
    made: list[KubernetesDriver] = []

    def make(transport: FaultyTransport, **works: Work) -> KubernetesDriver:
        made.append(KubernetesDriver(server, tmp_path, works, transport=transport))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("fault", ["busy", "expired", "server error", "no type", "page", "dropped", "lost"])
def test_without_an_answer_to_rely_on_the_state_is_unknown_and_is_seen_in_the_next_list(
    drive: Driver, fault: str
) -> None:
    between = FaultyTransport()
    world = drive(between, a=LONG, b=SHORT)
    world.launch("a", 1, seats_on(world, 0, 1))
    world.until(lambda: world.status("a", 1) == "running" and world.starts("a") == [1], WITHIN_S)
    between.fault = fault
    world.until(lambda: world.status("a", 1) == "unknown", WITHIN_S)
    world.launch("b", 1, seats_on(world, 1, 1))
    world.let_pass(1.0)
    assert world.status("a", 1) == "unknown"
    assert world.status("b", 1) not in OVER
    before, between.fault = between.lists, ""
    world.until(lambda: between.lists > before, WITHIN_S)
    world.until(lambda: world.status("a", 1) == "running", WITHIN_S)
    assert between.lists <= before + 2, "the first list says it; a second may have begun meanwhile"
    world.until(lambda: world.status("b", 1) == "finished", WITHIN_S)
    assert (world.starts("a"), world.starts("b")) == ([1], [1])


@pytest.mark.parametrize("fault", ["conflict", "busy", "dropped", "lost"])
def test_a_start_whose_writes_fail_begins_once_when_they_are_taken_again(drive: Driver, fault: str) -> None:
    between = FaultyTransport()
    between.of = WRITES
    world = drive(between, a=SHORT)
    world.until(lambda: between.lists > 0, WITHIN_S)  # so it holds the Lease, which is a write too
    one, other = ORDER.index("v100-0"), ORDER.index("v100-1")
    between.fault = fault
    world.launch("a", 1, seats_on(world, one, 2) + seats_on(world, other, 2))
    world.let_pass(1.5)
    assert world.status("a", 1) not in OVER
    between.fault = ""
    world.until(lambda: world.status("a", 1) == "finished", WITHIN_S)
    world.let_pass(1.0)
    assert world.starts("a") == [1]


def test_a_stop_is_carried_out_though_every_answer_to_a_question_is_dropped_for_a_while(drive: Driver) -> None:
    between = FaultyTransport()
    between.of = READS
    world = drive(between, a=LONG)
    world.launch("a", 1, seats_on(world, 0, 1))
    world.until(lambda: world.status("a", 1) == "running" and world.starts("a") == [1], WITHIN_S)
    between.fault = "dropped"
    world.until(lambda: world.status("a", 1) == "unknown", WITHIN_S)
    world.stop("a", 1)
    world.let_pass(1.0)
    assert world.status("a", 1) == "unknown"
    between.fault = ""
    world.until(lambda: world.status("a", 1) == "stopped", WITHIN_S)
