"""Workers that die are replaced, and one that dies with nothing to do is forgotten."""

from __future__ import annotations

from eunomia.sweeps.pool import Answer, Pool, Task


def test_a_worker_that_died_idle_is_no_longer_listened_to() -> None:
    heard: list[Answer] = []

    def hear(task: Task, answer: Answer) -> None:
        heard.append(answer)

    with Pool(1) as pool:
        idle = pool._hire()
        idle._process.kill()
        idle._process.wait()
        pool.run([{"scenario": None}], hear)
        watched = [key.data for key in pool._selector.get_map().values()]
        assert idle not in watched
    assert len(heard) == 1
    assert "error" in heard[0]
