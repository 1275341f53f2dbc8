"""ASTRAEA's artifact: some of its runs job by job, and what its clock does that no scheduler would want."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia_reproduction.peers import astraea
from eunomia_reproduction.peers.astraea.comparison import parity
from eunomia_reproduction.peers.astraea.inputs import ArtifactOptions, ArtifactWorkload, options, workload
from eunomia_reproduction.peers.astraea.sizing import at_once, setting
from eunomia_reproduction.peers.astraea.ticks import TickOutcome, Ticks
from eunomia_reproduction.peers.peer_sheet import PeerSheet
from eunomia_reproduction.table import Request


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


def test_jobs_that_the_artifact_drops_are_reported(peers: Path, tmp_path: Path) -> None:
    found = astraea.reproduce(some_of(peers, tmp_path, "fake500", ["jobs_fake.2das.fair.1800.csv"]), Request())
    assert all(row.within for row in found.rows)
    (note, *_) = found.notes
    assert "83 of 500 jobs are dropped there silently: 83 ask for more than their tenant's quota" in note


def test_runs_that_draw_without_a_seed_are_named_and_left_out(peers: Path, tmp_path: Path) -> None:
    folder = some_of(peers, tmp_path, "a400", ["jobs_a400.fairness.dynamic.900.csv", "jobs_a400.fifo.fair.inf.csv"])
    drawn = folder / "a400" / "jobs_a400.random.fair.900.csv"
    drawn.symlink_to(peers / "astraea" / "a400" / "jobs_a400.fifo.fair.900.csv")
    table = parity(Request(reference=folder))
    assert {row.series for row in table.rows} == {"astraea a400 fifo.fair.inf"}
    said = [note for note in table.notes if "without a seed" in note]
    assert len(said) == 2 and "the order of jobs" in said[1]


@pytest.mark.slow
def test_every_run_of_the_artifact_but_the_drawn_one_is_equal(peers: Path) -> None:
    table = parity(Request(reference=peers / "astraea"))
    assert table.outside == ()
    assert len({row.series for row in table.rows}) == 31


# ---- by hand ----------------------------------------------------------------------------------------------------


def ran(jobs: Sequence[tuple[int, int, int]], accelerators: int = 8, **said: object) -> TickOutcome:
    """Run jobs of (submitted, duration, accelerators) of one tenant on so many accelerators."""
    submitted, duration, size = np.array(jobs).T
    names = tuple(str(n) for n in range(len(jobs)))
    owner = np.zeros(len(jobs), dtype=np.int64)
    there = ArtifactWorkload(names, owner, size, submitted, duration, ("all",), np.ones(1), accelerators)
    return Ticks(there, ArtifactOptions(**({"selection": "fairness", "quota": "fair", "lease": 900.0} | said))).run()  # type: ignore[arg-type]


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


@pytest.mark.parametrize(("size", "expiries"), [(32, 1), (33, 0)])
def test_leases_of_more_than_32_accelerators_do_not_end(size: int, expiries: int) -> None:
    assert ran([(0, 1800, size)], accelerators=size).expiries.tolist() == [expiries]


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
        options(Path("a400") / name, upstream=False)


def test_a_folder_without_a_case_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no case of ASTRAEA"):
        parity(Request(reference=tmp_path))


def test_a_case_without_results_is_reported(tmp_path: Path) -> None:
    written(tmp_path / "mine", "0,ann,1,0,5")
    with pytest.raises(InvalidInput, match="mine: it has no result; put its jobs"):  # and there is no other case
        parity(Request(reference=tmp_path))


def test_a_case_without_the_order_of_its_tenants_is_a_run_that_failed(peers: Path, tmp_path: Path) -> None:
    whole = some_of(peers, tmp_path, "fake500", ["jobs_fake.fifo.fair.1800.csv"])
    shutil.copytree(whole / "fake500", whole / "nameless")
    (whole / "nameless" / "names.lst").unlink()
    failed, *rows = parity(Request(reference=whole)).rows
    assert (failed.series, failed.quantity) == ("astraea nameless", "runs that failed")
    assert "names.lst: it cannot be read: No such file" in failed.note
    assert all(row.within for row in rows)


@pytest.mark.parametrize(
    ("file", "text", "reported"),
    [
        ("names.lst", b"\xe9tienne\n", r"names\.lst: it is no UTF-8"),
        ("names.lst", b"bo\n", r"names\.lst: it names no tenant with a share"),
        ("share.csv", b"name,share\nann,0\n", r"share\.csv:2: share is '0\.0': a share is above 0"),
        (
            "trace.csv",
            b"job_id,user,num_gpu,submit_time,duration\n0,ann,1,0,1e12\n",
            r"trace\.csv:2: duration .* 100,000,000",
        ),
    ],
)
def test_what_is_wrong_with_a_case_is_named(file: str, text: bytes, reported: str, tmp_path: Path) -> None:
    case = written(tmp_path / "a400", "0,ann,1,0,5")
    (case / file).write_bytes(text)
    with pytest.raises(InvalidInput, match=reported):
        workload(case)


@pytest.mark.parametrize("word", ["zoe=1.0", "a=much", "b"])
def test_a_summary_that_tells_no_number_of_a_tenant_is_refused_with_its_line(word: str, tmp_path: Path) -> None:
    case = played(tmp_path / "mine", accelerators=16, upstream=False)
    head = "job_selection,user_quota,lease_s,variant,tenant_U_over_D_final"
    (case / "summary.csv").write_text(f"{head}\nfairness,fair,900,,a=1.0 {word}\n")
    with pytest.raises(InvalidInput, match=rf"summary\.csv:2: tenant_U_over_D_final is '{word}'"):
        parity(Request(reference=tmp_path))


# ---- the size of a cluster, which no file tells -----------------------------------------------------------------


def played(case: Path, accelerators: int, upstream: bool) -> Path:
    """Write a case of two tenants whose jobs crowd a cluster, and the result of one run on it."""
    rng = np.random.default_rng(5)
    user, size = rng.integers(0, 2, 60), 2 ** rng.integers(0, 3, 60)
    submitted, lasts = np.sort(rng.integers(0, 6000, 60)), rng.integers(200, 4000, 60)
    rows = [f"{m},{'ab'[user[m]]},{size[m]},{submitted[m]},{lasts[m]}" for m in range(60)]
    written(case, "\n".join(rows))
    (case / "share.csv").write_text("name,share\na,2\nb,1\n")
    (case / "names.lst").write_text("a\nb\n")
    path = case / "jobs_mine.fairness.fair.900.csv"
    jobs = replace(workload(case), accelerators=accelerators)
    outcome = Ticks(jobs, options(path, upstream=upstream)).run()
    lines = ["job_id,end_time,duration,fairness,lease_expiry_cnt,preempt_cnt,resume_cnt,total_pending_time"]
    for m, name in enumerate(jobs.names):
        if not np.isnan(outcome.end[m]):
            counts = (outcome.expiries[m], outcome.preemptions[m], outcome.resumes[m], outcome.waited[m])
            numbers = ",".join(str(int(count)) for count in counts)
            lines.append(f"{name},{int(outcome.end[m])},{jobs.duration[m]},{outcome.fairness[m]:.4f},{numbers}")
    path.write_text("\n".join(lines))
    return case


@pytest.mark.parametrize(("accelerators", "upstream"), [(16, False), (24, True), (40, False)])
def test_the_size_of_a_cluster_is_found_by_what_happened_on_it(
    accelerators: int, upstream: bool, tmp_path: Path
) -> None:
    case = played(tmp_path / "mine", accelerators, upstream)
    jobs = workload(case)
    found = setting(case, jobs, sorted(case.glob("jobs_*.csv")))
    assert found.fits
    assert found.accelerators == accelerators
    table = parity(Request(reference=tmp_path))
    assert table.outside == ()
    assert f"with {accelerators} accelerators" in table.notes[0]


def test_what_ran_at_once_without_a_break_is_the_least_that_there_was(tmp_path: Path) -> None:
    jobs = workload(written(tmp_path / "mine", "0,ann,3,0,10\n1,ann,4,0,10\n2,ann,8,0,10"))
    columns = {"end_time": [20.0, 25.0, 20.0], "duration": [10.0, 15.0, 5.0], "preempt_cnt": [0.0] * 3}
    sheet = PeerSheet(tmp_path, {**columns, "resume_cnt": [0.0, 0.0, 1.0]}, {"job_id": ["0", "1", "2"]})
    assert at_once(jobs, sheet) == 7
    assert at_once(jobs, PeerSheet(tmp_path, {**columns, "resume_cnt": [0.0] * 3}, sheet.texts)) == 15


def test_results_that_no_cluster_admits_are_refused(tmp_path: Path) -> None:
    case = played(tmp_path / "mine", 16, upstream=False)
    path = case / "jobs_mine.fairness.fair.900.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(InvalidInput, match=r"results of 59 jobs, and no cluster of up to 4096 accelerators admits"):
        parity(Request(reference=tmp_path))
