"""Dead workers are replaced, and a worker that dies while idle is removed."""

from __future__ import annotations

from eunomia.sweeps.pool import Answer, Pool, Task


def test_a_worker_that_died_idle_is_no_longer_listened_to() -> None:
    answers: list[Answer] = []

    def on_answer(task: Task, answer: Answer) -> None:
        answers.append(answer)

    with Pool(1) as pool:
        idle = pool._start_worker()
        running = idle.process.start()
        running.kill()
        running.wait()
        pool.run([{"scenario": None}], on_answer)
        watched = [key.data for key in pool._selector.get_map().values()]
        assert idle not in watched
    assert len(answers) == 1
    assert "error" in answers[0]
