"""Slurm's accounting where it is odd: what each oddity does to hours and waits, worked by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eunomia.history.importing import build_import
from eunomia.inputs.problems import InvalidInput
from eunomia.traces.import_findings import History
from eunomia.traces.machine_lists.named_nodes import NamedNode
from eunomia.traces.machine_lists.slurm_nodes import read_named
from eunomia.traces.sacct_demands import WholeMachines
from eunomia.traces.slurm import read_history

Write = Callable[..., Path]
FIELDS = "JobID|Submit|Eligible|Start|End|ElapsedRaw|Suspended|State|Account|User|Partition|NNodes|NodeList|AllocTRES"


def row(
    job_id: str, start: str, end: str, elapsed: object = "", state: str = "COMPLETED", *,
    submit: str = "05-01T08:00:00", eligible: str = "Unknown", tres: str = "gres/gpu:t4=1", suspended: str = "",
    user: str = "u", hosts: str = "n1",
) -> str:  # fmt: skip
    submit, eligible, start, end = (
        f"2024-{text}" if text.startswith(("0", "1")) and len(text) == 14 else text
        for text in (submit, eligible, start, end)
    )
    cells = (job_id, submit, eligible, start, end, elapsed, suspended, state, "lab", user, "gpu", "1", hosts, tres)
    return "|".join(map(str, cells))


def read(written: Write, *rows: str, fields: str = FIELDS, **options: str) -> History:
    return read_history([written(fields, *rows)], **options)


def hours(found: History) -> dict[str, float]:
    """Return accelerator-hours by type of the jobs that were built."""
    held = found.trace.scale_factor * found.trace.duration_s / 3600
    return {kind: held[[one == kind for one in found.ran_on]].sum() for kind in dict.fromkeys(found.ran_on)}


def waits(found: History) -> list[float]:
    return (found.started_s - found.trace.may_start_s).tolist()


def said(found: History, words: str) -> int:
    return sum(one.count for one in found.findings if words in one.what)


def test_a_running_job_without_elapsed_is_cut_off_at_the_latest_time_of_its_file(written: Write) -> None:
    for elapsed in ("", "INVALID", "-1"):
        rows = (row("1", "05-01T09:00:00", "Unknown", elapsed, "RUNNING", tres="gres/gpu=8"),
                row("2", "05-01T10:00:00", "05-01T12:00:00"))  # fmt: skip
        found = read(written, *rows)
        assert hours(found) == {"": 24, "t4": 2}
        assert said(found, "have no Elapsed; they are cut off at the latest time") == 1


def test_a_line_that_says_how_a_run_ended_counts_whatever_the_order_of_files(written: Write) -> None:
    runs_on = row("1", "05-01T09:00:00", "Unknown", 3600, "RUNNING")
    ended = row("1", "05-01T09:00:00", "05-01T13:00:00", 14400)
    waits_still = row("1", "Unknown", "Unknown", 0, "PENDING", tres="")
    files = [written(FIELDS, line, name=name) for name, line in zip("abc", (runs_on, ended, waits_still), strict=True)]
    for order in (files, files[::-1], [files[1], files[2], files[0]]):
        found = read_history(order)
        assert hours(found) == {"t4": 4}
        assert found.trace.status == ("finished",)
        assert said(found, "lines repeat a run") == 2
        balance = build_import("slurm", [], found).balance
        assert balance is not None
        assert balance.source.total == 5
        assert not balance.unexplained()


def test_a_job_on_several_types_is_one_job_for_each(written: Write) -> None:
    found = read(written, row("1", "05-01T09:00:00", "05-01T19:00:00", 36000, tres="gres/gpu:t4=8,gres/gpu:h100=4"))
    assert hours(found) == {"t4": 80, "h100": 40}
    assert found.trace.job_id == ("1", "1@h100")
    imported = build_import("slurm", [], found)
    assert imported.hours.by_type() == pytest.approx({"t4": 80, "h100": 40})


def test_each_run_of_a_job_counts_with_its_own_width(written: Write) -> None:
    found = read(
        written,
        row("1", "05-01T09:00:00", "05-01T10:00:00", 3600, "PREEMPTED", tres="gres/gpu:t4=8"),
        row("1", "05-01T11:00:00", "05-01T21:00:00", 36000, submit="05-01T10:00:00", tres="gres/gpu:t4=2"),
    )
    assert hours(found) == {"t4": 28}
    assert found.trace.scale_factor.tolist() == [2]
    assert found.trace.duration_s.tolist() == [14 * 3600]


def test_a_job_waits_until_its_first_start_and_what_lies_between_runs_stands_apart(written: Write) -> None:
    found = read(
        written,
        row("1", "05-01T08:00:10", "05-01T08:30:10", 1800, "PREEMPTED"),
        row("1", "05-01T09:00:10", "05-01T10:00:10", 3600, submit="05-01T08:30:10"),
        row("2", "05-01T08:00:10", "05-01T11:00:10", 7200, suspended="01:00:00"),
    )
    assert waits(found) == [10, 10]
    assert found.trace.ended_s.tolist() == [7210, 10810]
    assert found.trace.pauses == (((1800.0, 3600.0),), ())


def test_time_before_eligible_is_not_waiting_for_the_cluster(written: Write) -> None:
    rows = (row("1", "05-01T12:06:00", "05-01T13:06:00", 3600, eligible="05-01T12:05:00"),
            row("2", "05-01T08:00:30", "05-01T09:00:00", 1770, eligible="05-01T08:00:00"))  # fmt: skip
    found = read(written, *rows)
    assert waits(found) == [60, 30]
    assert np.nan_to_num(found.trace.eligible_s).tolist() == [4 * 3600 + 300, 0]
    assert said(found, "became eligible to start after their submission") == 1


def test_an_id_that_another_user_is_given_is_another_job(written: Write) -> None:
    first = row("1", "05-01T09:00:00", "05-01T10:00:00", 3600)
    second = row("1", "05-01T12:00:00", "05-01T13:00:00", 3600, submit="05-01T11:00:00", user="v")
    assert read(written, first, second).trace.job_id == ("1", "1#2")


@pytest.mark.parametrize("never", ["0", "-1", "None", "NONE", "1970-01-01T00:00:00", ""])
def test_words_and_numbers_for_never_are_no_times(written: Write, never: str) -> None:
    found = read(
        written, row("1", never, never, 0, "PENDING", tres=""), row("2", "05-01T09:00:00", "05-01T10:00:00", 3600)
    )
    assert found.trace.job_id == ("2",)
    assert said(found, "cannot be read") == 0


def test_slices_count_as_whole_ones_with_their_hours_named_and_have_the_speed_of_their_part(written: Write) -> None:
    slices = [row(str(k), "05-01T08:00:00", "05-01T15:00:00", 25200, tres="gres/gpu:a100_1g.5gb=1") for k in range(7)]
    found = read(
        written, *slices, row("8", "05-01T08:00:00", "05-01T15:00:00", 25200, tres="gres/gpu:a100=1", hosts="n2")
    )
    one = next(one for one in found.findings if "slices of accelerators (MIG)" in one.what)
    assert one.hours is not None
    assert (one.count, one.hours.total) == (7, pytest.approx(49))
    assert "7.00 accelerator-hours of whole ones" in one.what
    imported = build_import("slurm", [], found)
    assert imported.speeds["a100_1g.5gb"] == pytest.approx(imported.speeds["a100-40gb"] / 7, rel=0.01)
    assert {node.type: node.accelerators for node in imported.nodes} == {"a100-40gb": 1, "a100_1g.5gb": 7}


# ---- clocks that change --------------------------------------------------------------------------------------

AUTUMN = (row("1", "10-27T01:10:00", "10-27T04:10:00", 14400, submit="10-27T01:00:00"),
          row("2", "10-27T02:10:00", "10-27T03:10:00", 3600, submit="10-27T02:50:00"),
          row("3", "10-27T03:30:00", "10-27T04:30:00", 3600, submit="10-27T01:30:00"))  # fmt: skip
SPRING = (row("1", "03-31T03:10:00", "03-31T04:10:00", 3600, submit="03-31T01:50:00"),
          row("2", "03-31T01:30:00", "03-31T03:30:00", 3600, submit="03-31T01:00:00"))  # fmt: skip


def test_with_a_time_zone_waits_are_right_in_nights_in_which_clocks_are_changed(written: Write) -> None:
    autumn, spring = (read(written, *rows, timezone="Europe/Berlin") for rows in (AUTUMN, SPRING))
    assert dict(zip(autumn.trace.job_id, waits(autumn), strict=True)) == {"1": 600, "2": 1200, "3": 3 * 3600}
    assert dict(zip(spring.trace.job_id, waits(spring), strict=True)) == {"1": 1200, "2": 1800}
    assert str(autumn.trace.began) == "2024-10-27 01:00:00"
    assert said(autumn, "another time between Start and End") == said(spring, "another time between Start and End") == 0


def test_without_a_time_zone_the_lines_themselves_show_that_clocks_were_changed(written: Write) -> None:
    autumn, spring = (read(written, *rows) for rows in (AUTUMN, SPRING))
    assert dict(zip(autumn.trace.job_id, waits(autumn), strict=True)) == {"1": 600, "2": 1200, "3": 3 * 3600}
    assert dict(zip(spring.trace.job_id, waits(spring), strict=True)) == {"1": 1200, "2": 1800}
    assert said(autumn, "read as those of Europe/Berlin") == 2
    assert said(spring, "read as those of Europe/Berlin") == 1
    america = read(written, row("1", "11-03T01:10:00", "11-03T02:30:00", 4800, submit="11-03T01:50:00"))
    assert waits(america) == [1200]
    assert said(america, "read as those of America/New_York") == 1


def test_a_start_before_its_submission_on_another_day_is_said_and_counts_as_no_wait(written: Write) -> None:
    plain = read(written, row("1", "07-03T02:10:00", "07-03T03:10:00", 3600, submit="07-03T02:50:00"))
    assert said(plain, "runs start before they were submitted; their wait counts as 0 s") == 1


def test_a_time_zone_that_there_is_not_is_refused(written: Write) -> None:
    with pytest.raises(InvalidInput, match="time zone is not known"):
        read(written, *AUTUMN, timezone="Mars/Base")


# ---- separators in values ------------------------------------------------------------------------------------

SHORT = "JobID|{}Submit|Start|End|ElapsedRaw|State|{}Account|AllocTRES"
TIMES = "2024-05-01T08:00:00|2024-05-01T09:00:00|2024-05-01T10:00:00|3600|COMPLETED"


@pytest.mark.parametrize("name", ["lr=1|wd=0", "a||b", "|", "two\nlines", "2024-05-01T08:00:00|x"])
def test_a_separator_or_line_break_in_a_name_leaves_the_fields_around_it_certain(written: Write, name: str) -> None:
    found = read(written, f"1|{name}|{TIMES}|bio|gres/gpu=8", fields=SHORT.format("JobName|", ""))
    assert hours(found) == {"": 8}
    assert found.trace.tenant == ("bio",)
    assert said(found, "in a field that is not read (JobName)") == 1


def test_between_two_free_fields_a_line_is_read_if_only_one_way_to_cut_it_fits(written: Write) -> None:
    fields = SHORT.format("JobName|", "Comment|")
    found = read(written, f"1|a|b|{TIMES}|c|d|bio|gres/gpu=8", fields=fields)
    assert found.trace.tenant == ("bio",)
    between = "JobID|JobName|Account|Comment|Submit|Start|End|ElapsedRaw|State|AllocTRES"
    names = ("a|bio|c", "a|phy|c", "a|x|bio|c", "a|bio|bio|c", "a|phy|bio|c")
    lines = [f"{k}|{name}|{TIMES}|gres/gpu=1" for k, name in enumerate(names)]
    found = read(written, *lines, fields=between)
    assert dict(zip(found.trace.job_id, found.trace.tenant, strict=True)) == {
        "0": "bio",
        "1": "phy",
        "2": "bio",  # other lines have no account x
        "3": "bio",  # whichever way the line is cut
    }
    assert said(found, "what they held is not known") == 1


# ---- sites that account no accelerators ------------------------------------------------------------------------


def test_resources_that_have_only_numbers_are_read_by_number_and_the_message_names_it(written: Write) -> None:
    line = row("1", "05-01T09:00:00", "05-01T10:00:00", 3600, tres="1=8,2=65536,4=1,1001=2")
    with pytest.raises(InvalidInput, match=r"resource number 1001.*--gres 1001"):
        read(written, line, gres_option="--gres NAME")
    found = read(written, line, gres="1001")
    assert hours(found) == {"": 2}
    assert (found.trace.cpus.tolist(), found.trace.memory_gib.tolist()) == ([8], [64])


def test_where_no_resource_is_accounted_the_message_says_why_and_what_is_left(written: Write) -> None:
    line = row("1", "05-01T09:00:00", "05-01T11:00:00", 7200, tres="billing=8,cpu=36,mem=180G,node=1")
    fields = f"{FIELDS}|ReqTRES"
    with pytest.raises(InvalidInput, match=r"AccountingStorageTRES.*--exclusive PARTITION.*--nodes.*--gres NAME"):
        read(written, f"{line}|cpu=1", fields=fields, gres_option="--gres NAME")
    nodes = [NamedNode(name="n1", type="a100", accelerators=8)]
    whole = WholeMachines.of(["gpu"], nodes)
    found = read_history([written(fields, f"{line}|cpu=1")], whole_machines=whole)
    assert hours(found) == {"a100": 16}
    with pytest.raises(InvalidInput, match="did you mean 'gpu'"):
        read_history([written(fields, f"{line}|cpu=1")], whole_machines=WholeMachines.of(["gp"], nodes))
    with pytest.raises(InvalidInput, match="name their list with --nodes"):
        WholeMachines.of(["gpu"], [])


# ---- the check itself ----------------------------------------------------------------------------------------


def test_hours_that_a_reader_loses_without_a_word_are_found(written: Write) -> None:
    found = read(written, *(row(str(k), "05-01T09:00:00", "05-01T10:00:00", 3600) for k in range(3)))
    balance = build_import("slurm", [], found.take(np.array([0, 2]))).balance
    assert balance is not None
    assert balance.unexplained().by_owner == {("t4", "lab"): pytest.approx(-1)}


def test_the_quality_report_has_both_sums_and_each_difference(written: Write, tmp_path: Path) -> None:
    found = read(
        written,
        row("1", "05-01T09:00:00", "05-01T13:00:00", 14400),
        row("1", "05-01T09:00:00", "Unknown", 3600, "RUNNING"),
        row("2", "05-01T09:00:00", "05-01T10:00:00", 3600, tres="gres/gpu:t4=99"),
    )
    nodes = (NamedNode(name="n1", type="t4", accelerators=8),)
    build_import("slurm", [], found, nodes=nodes).write(tmp_path)
    check = json.loads((tmp_path / "quality.json").read_text())["accelerator_hours_check"]
    assert (check["source"], check["written"]) == (104, 4)
    assert [(each["what"].split(";")[0], each["accelerator_hours"]) for each in check["differences"]] == [
        ("lines repeat a run that another line has too", -1),
        ("jobs are wider than every accelerator type of the cluster", -99),
    ]
    assert check["by_tenant"] == {"lab": {"source": 104, "written": 4}}
    assert check["unexplained"] == []


def test_a_machine_of_several_types_holds_each_of_them(written: Write) -> None:
    nodes = written(
        "NodeName=n1 CPUTot=64 RealMemory=512000 Gres=gpu:t4:8,gpu:h100:4(S:0) State=IDLE", name="nodes.txt"
    )
    found = read(written, row("1", "05-01T09:00:00", "05-01T19:00:00", 36000, tres="gres/gpu:t4=8,gres/gpu:h100=4"))
    imported = build_import("slurm", [], found, nodes=read_named(nodes))
    assert {node.type: (node.accelerators, node.cpus) for node in imported.nodes} == {"t4": (8, 64), "h100": (4, 0)}
    assert imported.hours.by_type() == pytest.approx({"t4": 80, "h100": 40})
