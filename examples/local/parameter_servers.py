"""Stands for training with parameter servers: with more workers each has less work, and a server more traffic."""

from __future__ import annotations

import argparse
import time

from eunomia.lease import Lease

COMPUTE_S, PUSH_S = 0.08, 0.02  # of a step: work that the workers share, and one worker's traffic at one server


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--workers", type=int, default=1)
    words.add_argument("--servers", type=int, default=1)
    given = words.parse_args()
    if given.servers > given.workers:
        raise SystemExit("more servers than workers: no model is cut into so many parts here")
    with Lease() as lease:
        state = lease.load({"step": 0})
        for step in lease.steps(start=state["step"]):
            time.sleep(COMPUTE_S / given.workers + PUSH_S * given.workers / given.servers)
            state = {"step": step + 1}
            lease.progress(step + 1)
        lease.save(state)


if __name__ == "__main__":
    main()
