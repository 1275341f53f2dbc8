"""A full disk is a state of the service: what runs goes on, and it goes on by itself when there is room again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.bench import SITE, Bench, LiveService, until

from eunomia.backends.processes.folder import JobFolder
from eunomia.service.client import Client, ServiceRefusal
from eunomia.service.store.disk_room import RESERVE_BYTES, SPARE_BYTES, DiskFull, DiskRoom

SIZE_MIB = 40


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder on a small disk of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs root and the right to mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Use all room of a disk."""
    path = folder / f"filler-{len(list(folder.glob('filler-*')))}"
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 2**20)
    with open(path, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 512)
    return path


def health(service: LiveService) -> str:
    with urllib.request.urlopen(f"{service.url}/healthz", timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def refusal_of(client: Client, method: str, path: str, body: object) -> int:
    try:
        client.send(method, path, body)
    except ServiceRefusal as error:
        return error.status
    return 200


def renewals(service: LiveService) -> float:
    text, _ = service.operator.text("/metrics")
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("eunomia_lease_renewals_total"))


def test_a_full_disk_refuses_new_jobs_lets_others_run_and_is_left_by_itself(small: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(small, SITE.replace("supervisor_lease_s = 30", "supervisor_lease_s = 6"))
    service.start()
    ann = service.client("ann", "vision")
    running = ann.submit({"command": ["sleep", "600"], "accelerators": 2})["id"]
    waits = ann.submit([{"command": ["true"], "labels": {"n": str(n)}} for n in range(20)])["ids"]
    until(lambda: ann.get(f"/v1/jobs/{running}")["state"] == "running")
    assert health(service) == "ok\n"
    assert until((small / "state" / "store.reserve").exists)
    fillers = [fill(small)]
    until(lambda: health(service) != "ok\n")
    assert refusal_of(ann, "POST", "/v1/jobs", {"command": ["true"]}) == 507
    ann.send("DELETE", f"/v1/jobs/{waits[0]}")  # by what the store's log has, or by the reserve
    assert ann.get(f"/v1/jobs/{waits[0]}")["state"] == "cancelled"
    texts = 0
    while (code := refusal_of(ann, "PATCH", f"/v1/jobs/{waits[1]}", {"labels": {"n": "x" * (texts % 200)}})) == 200:
        texts += 1
        if not (small / "state" / "store.reserve").exists():
            fillers.append(fill(small))  # what was given up as well
    assert code == 507
    assert health(service).startswith("disk full")
    before = renewals(service)
    until(lambda: renewals(service) >= before + 4)  # longer than a lease
    assert ann.get(f"/v1/jobs/{running}")["state"] == "running"
    for filler in fillers:
        filler.unlink()
    until(lambda: health(service) == "ok\n")
    ann.send("DELETE", f"/v1/jobs/{running}")
    last = ann.submit({"command": ["true"]})["id"]
    ids = [*waits[1:], last]
    until(lambda: all(ann.get(f"/v1/jobs/{job}")["state"] == "succeeded" for job in ids))
    until((small / "state" / "store.reserve").exists)
    assert service.kill(15) == 0
    service.stop_jobs()


def test_a_start_on_a_full_disk_uses_the_reserve_and_without_one_says_what_to_do(small: Path) -> None:
    bench = Bench(small)
    job = bench.submit(labels={"a": "b"}).body["id"]
    room = DiskRoom(bench.site.state)
    room.hold()
    assert room.is_held
    bench.store.close()
    fill(small)
    again = DiskRoom(bench.site.state)
    again.begin()
    assert not again.is_held
    bench.restart()
    assert bench.state(job) == "starting"
    bench.store.close()
    fill(small)
    with pytest.raises(DiskFull, match="disk is full"):
        again.begin()


def test_a_reserve_is_made_only_where_new_jobs_have_room_beside_it(small: Path) -> None:
    room = DiskRoom(small)
    with open(small / "other", "wb") as file:
        file.write(bytes(SIZE_MIB * 2**20 - RESERVE_BYTES - SPARE_BYTES + 4096))
    room.hold()
    assert not room.is_held
    (small / "other").unlink()
    room.hold()
    assert room.is_held
    assert room.free_bytes() <= SIZE_MIB * 2**20 - RESERVE_BYTES
    assert room.wait()
    assert not room.is_held


def test_a_lease_is_renewed_without_further_room(small: Path) -> None:
    folder = JobFolder(small, small / "checkpoint")
    folder.write_lease(1234567.25, 3.0)
    fill(small)
    folder.write_lease(99.5)
    assert folder.lease.read_text().strip() == '{"end_s": 99.5}'
