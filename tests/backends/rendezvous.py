"""A gang of several processes that meet over a socket, without torch: `python rendezvous.py FOLDER STEPS [FAILING]`.

Rank 0 listens on MASTER_PORT. In each step all send whether they were asked to stop, and all leave after the same step;
rank 0 saves. The process of rank FAILING ends with exit code 3 in its third step.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

from eunomia.lease import Lease


def meet(rank: int, world: int) -> list[socket.socket]:
    """Connect rank 0 with all others."""
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        with socket.create_server(address) as server:
            return [server.accept()[0] for _ in range(world - 1)]
    for _ in range(200):
        try:
            return [socket.create_connection(address)]
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit("rank 0 does not listen")


def any_of(mine: bool, rank: int, others: list[socket.socket]) -> bool:
    """Return whether it holds in any process (an all-reduce of one bit)."""
    if rank:
        others[0].sendall(b"1" if mine else b"0")
        return others[0].recv(1) != b"0"
    found = [other.recv(1) for other in others]
    holds = mine or b"1" in found
    for other in others:
        other.sendall(b"1" if holds else b"0")
    return holds


def main() -> None:
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    failing = int(sys.argv[3]) if len(sys.argv) > 3 else -1
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with Lease() as lease:
        others = meet(rank, world)
        step = lease.load({"step": 0})["step"]
        (folder / f"rank-{rank}-{os.environ['EUNOMIA_EPOCH']}").write_text(f"{world} {step} {os.environ['LOCAL_RANK']}")
        while step < steps:
            if rank == failing and step == 2:
                raise SystemExit(3)
            time.sleep(0.05)
            step += 1
            stops = any_of(lease.called_back, rank, others)
            if rank == 0 and (stops or step == steps):
                lease.save({"step": step})
            if stops and step < steps:
                lease.leave()


if __name__ == "__main__":
    main()
