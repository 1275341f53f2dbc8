"""A Python function runs as a job of a service, and its result comes back."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.bench import LiveService, until

from eunomia.ray import GangFailed, gang

pytest.importorskip("uvicorn", reason="needs the extra service")
SITE = '[service]\nlisten = "127.0.0.1:0"\n[cluster]\naccelerators = { cpu = 2 }\n[policy]\nname = "las"\n'
MODULE = """\
import os
def held(factor):
    return {"factor": factor, "seats": len(os.environ["EUNOMIA_SEATS"].split(","))}
def fails():
    raise RuntimeError("no such data set")
"""


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveService]:
    (tmp_path / "site.toml").write_text(SITE)
    (tmp_path / "gang_functions.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    live = LiveService(tmp_path)
    live.start()
    monkeypatch.setenv("EUNOMIA_URL", live.operator.address.url)
    monkeypatch.setenv("EUNOMIA_TOKEN", live.operator.address.token)
    yield live
    live.kill(signal.SIGTERM)


def test_the_result_of_a_function_comes_back_and_its_error_is_given(service: LiveService, tmp_path: Path) -> None:
    import gang_functions

    assert gang(gang_functions.held, accelerators=2, folder=tmp_path, factor=0.5) == {"factor": 0.5, "seats": 2}
    with pytest.raises(GangFailed, match="no such data set"):
        gang(gang_functions.fails, accelerators=1, folder=tmp_path)
    assert not list(tmp_path.glob(".gang-*"))


def test_an_interrupted_call_cancels_its_job(
    service: LiveService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gang_functions

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eunomia.ray._wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        gang(gang_functions.held, accelerators=1, folder=tmp_path, factor=1)
    [job] = service.operator.get("/v1/jobs")["jobs"]
    until(lambda: service.operator.get(f"/v1/jobs/{job['id']}")["state"] == "cancelled")


def test_a_function_that_no_other_process_can_find_is_refused() -> None:
    with pytest.raises(ValueError, match="move it to the top of a module"):
        gang(lambda: 1, accelerators=1)
