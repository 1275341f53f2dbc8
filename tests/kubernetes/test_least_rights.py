"""The account of the manifest can do all that a service does, on a server that checks rights; and no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("lightkube", reason="needs the extra kubernetes")
from lightkube.codecs import load_all_yaml
from lightkube.core.exceptions import ApiError
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Namespace, Pod, Secret
from tests.engines.loopback import until
from tests.kubernetes.loopback import LoopbackServer
from tests.kubernetes.test_kubernetes_contract import KubernetesDriver
from tests.kubernetes.test_schemas import MANIFEST

from eunomia.backends.kubernetes.behind import KubernetesBehind
from eunomia.backends.kubernetes.objects import PodSettings
from eunomia.testing import Work
from eunomia.testing.world_contract import all_of, seats_on

WITHIN_S = 180.0


@pytest.fixture(scope="module")
def account(server: LoopbackServer) -> Iterator[LoopbackServer]:
    """The server, with what the manifest makes."""
    server.admin.create(Namespace.from_dict({"metadata": {"name": "eunomia"}}))
    made = load_all_yaml(MANIFEST.read_text())
    for one in made:
        server.admin.create(one)
    until(lambda: server.has_account("default", "eunomia"), "pods may be made in the namespace")
    yield server
    for one in reversed(made):
        name = str(one.metadata.name)  # type: ignore[union-attr]
        server.admin.delete(type(one), name, **_space(one))  # type: ignore[call-overload]


def _space(one: object) -> dict[str, str]:
    namespace = getattr(getattr(one, "metadata", None), "namespace", None)
    return {"namespace": namespace} if namespace else {}


def test_the_account_runs_stops_and_explains_gangs_and_cordons_nodes(account: LoopbackServer, tmp_path: Path) -> None:
    works = {"a": Work(steps=400, step_s=0.1), "b": Work(steps=3, step_s=0.1)}
    world = KubernetesDriver(account, tmp_path, works, context="account")
    try:
        world.launch("a", 1, all_of(world, 0))
        world.until(lambda: world.status("a", 1) == "running" and world.starts("a") == [1], WITHIN_S)
        world.launch("b", 1, seats_on(world, 0, 2))
        world.until(lambda: "0 of 2 accelerators free" in waits(account), WITHIN_S)
        world.stop("a", 1)
        world.until(lambda: world.status("b", 1) == "finished", WITHIN_S)
        world.engine.set_node("v100-1", "fans")
        world.until(lambda: not world.in_service(1), WITHIN_S)
        world.engine.set_node("v100-1", "")
        world.until(lambda: world.in_service(1), WITHIN_S)
        world.engine.release()
    finally:
        world.close()


def waits(server: LoopbackServer) -> str:
    """Return what the Events of the namespace say of waits."""
    return "\n".join(
        str(one.message) for one in server.admin.list(Event, namespace="eunomia") if one.reason == "Waiting"
    )


def test_the_account_can_take_over_jobs_of_users(account: LoopbackServer) -> None:
    with closing(account.client("account")) as client:
        engine = KubernetesBehind(client, PodSettings(image="none"))
        assert engine.submissions("ab12", lambda: "key") == []
        assert engine.gangs() == []
        assert not engine._can_suspend(), "this server is of 1.20"
        engine.release()


def test_the_account_reads_no_secrets_and_nothing_in_other_namespaces(account: LoopbackServer) -> None:
    with closing(account.client("account")) as client:
        for ask in (
            lambda: list(client.list(Secret)),
            lambda: list(client.list(Job, namespace="default")),
            lambda: client.delete(Pod, "any", namespace="default"),
            lambda: client.delete(Pod, "any"),
        ):
            with pytest.raises(ApiError) as caught:
                ask()
            assert caught.value.status.code == 403
