"""ASTRAEA's artifact: some of its runs job by job, and what its clock does that no scheduler would want."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from eunomia.model.problems import InvalidInput
from eunomia.reproduction.peers import astraea
from eunomia.reproduction.peers.astraea.comparison import parity
from eunomia.reproduction.peers.astraea.inputs import Options, Workload, options, workload
from eunomia.reproduction.peers.astraea.ticks import Outcome, Ticks
from eunomia.reproduction.table import Request


def some_of(peers: Path, folder: Path, case: str, runs: Sequence[str]) -> Path:
    """Return a folder with a case that has only these of its runs."""
    there, here = peers / "astraea" / case, folder / case
    here.mkdir()
    for name in ("trace.csv", "share.csv", "names.lst", "summary.csv", *runs):
        (here / name).symlink_to(there / name)
    return folder


def test_runs_of_the_artifact_are_equal_in_every_end_count_and_digit(peers: Path, tmp_path: Path) -> None:
    runs = [f"jobs_a400h.{order}.fair.900.csv" for order in ("fairness", "themis")]
    found = astraea.reproduce(some_of(peers, tmp_path, "a400h", runs), Request())
    assert [f"{row.series} {row.quantity} {row.measured} {row.note}" for row in found.rows if not row.within] == []
    assert len(found.rows) == 2 * 7
    assert {row.published for row in found.rows if row.quantity in ("jobs_equal", "fairness_equal")} == {400}


def test_jobs_that_the_artifact_drops_are_told(peers: Path, tmp_path: Path) -> None:
    found = astraea.reproduce(some_of(peers, tmp_path, "fake500", ["jobs_fake.2das.fair.1800.csv"]), Request())
    assert all(row.within for row in found.rows)
    (note,) = found.notes
    assert "83 of 500 jobs are dropped there without a word: 83 ask for more than their tenant's quota" in note


@pytest.mark.slow
def test_every_run_of_the_artifact_but_the_drawn_one_is_equal(peers: Path) -> None:
    table = parity(Request(reference=peers / "astraea"))
    assert table.outside == ()
    assert len({row.series for row in table.rows}) == 31


# ---- by hand ----------------------------------------------------------------------------------------------------


def ran(jobs: Sequence[tuple[int, int, int]], **said: object) -> Outcome:
    """Run jobs of (submitted, duration, accelerators) of one tenant on 8 accelerators."""
    submitted, duration, size = np.array(jobs).T
    names = tuple(str(n) for n in range(len(jobs)))
    owner = np.zeros(len(jobs), dtype=np.int64)
    there = Workload(names, owner, size, submitted, duration, ("all",), np.ones(1), 8)
    return Ticks(there, Options(**({"selection": "fairness", "quota": "fair", "lease": 900.0} | said))).run()  # type: ignore[arg-type]


def test_a_job_is_seen_at_the_next_tick_and_ends_to_the_second() -> None:
    assert ran([(3, 24, 1)]).end.tolist() == [34]  # begins at 10


def test_accelerators_are_held_to_the_tick_after_the_end() -> None:
    assert ran([(0, 21, 8), (0, 10, 8)]).end.tolist() == [21, 40]


def test_who_stands_behind_one_that_leaves_is_looked_at_a_tick_later() -> None:
    # Both are done at 10. The second is not looked at then, so what the third needs is free at 20 only.
    assert ran([(0, 10, 4), (0, 10, 4), (0, 10, 8)]).end.tolist() == [10, 10, 30]


def test_a_lease_that_ends_is_given_to_who_got_less() -> None:
    outcome = ran([(0, 1800, 8), (0, 1800, 8)])
    assert outcome.end.tolist() == [2700, 3600]
    assert outcome.expiries.tolist() == [1, 1]  # the second lease of each ends with the job
    assert outcome.fairness.tolist() == pytest.approx([14400 / (2700 * 4), 14400 / (2700 * 4 + 900 * 8)])


def test_a_new_job_ends_a_fresh_lease_whose_work_is_lost() -> None:
    outcome = ran([(0, 900, 8), (100, 100, 8)], delay=300.0)
    assert outcome.preemptions.tolist() == [1, 0]
    assert outcome.end.tolist() == [220 + 900, 220]  # after 120 s it is fresh enough; it begins again


def test_who_asks_for_more_than_the_quota_vanishes() -> None:
    assert np.isnan(ran([(0, 10, 9), (0, 10, 8)]).end).tolist() == [True, False]


# ---- what is wrong with a folder --------------------------------------------------------------------------------


def written(case: Path, trace: str) -> Path:
    case.mkdir()
    (case / "trace.csv").write_text(f"job_id,user,num_gpu,submit_time,duration\n{trace}\n")
    (case / "share.csv").write_text("name,share\nann,1\n")
    (case / "names.lst").write_text("ann\n")
    return case


def test_a_trace_with_parts_of_a_second_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"trace\.csv:3: submit_time is '2\.5'.*whole number"):
        workload(written(tmp_path / "a400", "0,ann,1,0,5\n1,ann,1,2.5,5"))


@pytest.mark.parametrize("name", ["jobs_a.csv", "jobs_a.fastest.fair.900.csv", "jobs_a.fifo.fair.soon.csv"])
def test_a_result_whose_name_says_no_run_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"jobs_<case>\.<selection>\.<quota>\.<lease>\.csv"):
        options(Path("a400") / name)


def test_a_folder_without_a_case_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no case of ASTRAEA"):
        parity(Request(reference=tmp_path))


def test_a_case_of_unknown_size_is_left_out_and_told(tmp_path: Path) -> None:
    written(tmp_path / "mine", "0,ann,1,0,5")
    assert "nobody tells how large" in parity(Request(reference=tmp_path)).notes[0]
