"""Slurm's accounting: what becomes of each field and state, and what is said of every irregularity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.inputs.slurm_values import Resources, expand_hosts, parse_gres, parse_tres
from eunomia.traces import read, slurm
from eunomia.traces.import_findings import History

Write = Callable[..., Path]
FIELDS = (
    "JobID", "User", "Account", "State", "Submit", "Start", "End", "ElapsedRaw", "NNodes", "NodeList", "AllocTRES",
    "ReqTRES",
)  # fmt: skip
JOB = {
    "JobID": "7",
    "User": "ann",
    "Account": "vision",
    "State": "COMPLETED",
    "Submit": "2024-01-01T00:00:00",
    "Start": "2024-01-01T00:10:00",
    "End": "2024-01-01T01:10:00",
    "ElapsedRaw": "3600",
    "NNodes": "1",
    "NodeList": "gpu01",
    "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1",
    "ReqTRES": "cpu=8,gres/gpu=2,mem=64G,node=1",
}


def line(**cells: str) -> str:
    return "|".join((JOB | cells)[name] for name in (*FIELDS, *(name for name in cells if name not in FIELDS)))


def lines(*rows: dict[str, str]) -> tuple[str, ...]:
    """Return a header and a line for each row; fields that JOB lacks are last."""
    extra = tuple(dict.fromkeys(name for row in rows for name in row if name not in FIELDS))
    return "|".join((*FIELDS, *extra)), *(line(**dict.fromkeys(extra, "") | row) for row in rows)


def history(path: Path, **options: str) -> History:
    return slurm.read_history([path], **options)


def said(found: History) -> dict[str, tuple[str, int, int | None]]:
    """Return kind, count and line of the example of each finding, by its first words."""
    return {finding.what: (finding.kind, finding.count, finding.line) for finding in found.findings}


def finding(found: History, words: str) -> tuple[str, int, int | None]:
    return next(value for what, value in said(found).items() if words in what)


def test_a_job_has_its_submission_duration_width_tenant_and_demand(written: Write) -> None:
    trace = read(written(*lines(JOB | {"JobID": "1"}, JOB | {"Submit": "2024-01-01T00:00:30"}), name="a.txt"), "slurm")
    assert trace.job_id == ("1", "7")
    assert trace.submitted_s.tolist() == [0, 30]
    assert trace.duration_s.tolist() == [3600, 3600]
    assert trace.scale_factor.tolist() == [2, 2]
    assert trace.tenant == ("vision", "vision")
    assert trace.status == ("finished", "finished")
    assert trace.cpus.tolist() == [8, 8]
    assert trace.memory_gib.tolist() == [64, 64]
    assert trace.job_type is None
    assert str(trace.began) == "2024-01-01 00:00:00"


def test_the_schedule_as_it_was_is_kept_beside_the_trace(written: Write) -> None:
    found = history(written(*lines(JOB, JOB | {"JobID": "8", "AllocTRES": "gres/gpu=2", "ReqTRES": "gres/gpu:h100=2"})))
    assert found.started_s.tolist() == [600, 600]
    assert found.ended_s.tolist() == [4200, 4200]
    assert found.machines == (("gpu01",), ("gpu01",))
    assert found.ran_on == ("a100", "")
    assert found.asked_for == ("", "h100")
    assert finding(found, "name no accelerator type")[:2] == ("missing", 1)


def test_fields_may_be_in_any_order_and_case_with_others_between_them(written: Write) -> None:
    mixed = ("comment", *reversed(FIELDS))
    path = written("|".join(name.upper() for name in mixed), "|".join((JOB | {"comment": "x"})[name] for name in mixed))
    found = history(path)
    assert found.trace.job_id == ("7",)
    assert found.trace.unread == ("COMMENT",)


def test_the_form_with_a_separator_at_the_end_and_windows_line_ends_is_read_too(written: Write) -> None:
    rows = "".join(text + "|\r\n" for text in lines(JOB))
    assert history(written(raw=rows.encode())).trace.duration_s.tolist() == [3600]


@pytest.mark.parametrize(
    ("state", "status"),
    [("COMPLETED", "finished"), ("FAILED", "failed"), ("TIMEOUT", "failed"), ("OUT_OF_MEMORY", "failed"),
     ("NODE_FAIL", "failed"), ("CANCELLED by 1001", "cancelled"), ("CANCELLED+", "cancelled"), ("RUNNING", ""),
     ("PREEMPTED", "cancelled"), ("TELEPORTED", "")],
)  # fmt: skip
def test_states(written: Write, state: str, status: str) -> None:
    found = history(written(*lines(JOB | {"State": state})))
    assert found.trace.status == (status,)
    assert any("state that is not known" in what for what in said(found)) == (state == "TELEPORTED")


def test_steps_repeated_headers_and_damaged_lines_are_left_out_with_their_line_numbers(written: Write) -> None:
    header, job = lines(JOB)
    path = written(
        "sacct: warning", header, job, line(JobID="7.batch"), "", header, "8|bob|nlp|COMPL", line(JobID="9") + "|x"
    )
    found = history(path)
    assert found.trace.job_id == ("7",)
    assert finding(found, "lines before the header") == ("left out", 1, 1)
    assert finding(found, "lines of steps") == ("left out", 1, 4)
    assert finding(found, "lines repeat the header") == ("left out", 1, 6)
    assert finding(found, "do not have the 12 fields") == ("left out", 2, 7)
    assert next(one.example for one in found.findings if "12 fields" in one.what) == "8|bob|nlp|COMPL"


def test_the_example_of_a_finding_is_the_line_itself(written: Write) -> None:
    rows = [JOB, JOB | {"JobID": "8", "State": "TIMEOUT"}, JOB | {"JobID": "9", "Account": ""}]
    path = written(*lines(*rows))
    texts = path.read_text().splitlines()
    for one in history(path).findings:
        assert one.example == texts[one.line - 1]  # type: ignore[operator]


def test_a_requeued_job_is_one_job_of_all_its_runs(written: Write) -> None:
    first = JOB | {"State": "REQUEUED", "End": "2024-01-01T00:20:00", "ElapsedRaw": "600"}
    second = JOB | {"Submit": "2024-01-01T00:20:00", "Start": "2024-01-01T00:30:00"}
    path = written(*lines(second, first))
    found = history(path)
    assert found.trace.submitted_s.tolist() == [0]
    assert str(found.trace.began) == "2024-01-01 00:00:00"
    assert found.trace.duration_s.tolist() == [4200]
    assert found.trace.retries.tolist() == [1]
    assert found.started_s.tolist() == [600]
    assert finding(found, "were requeued")[:2] == ("assumed", 1)
    assert history(path, requeues="last").trace.duration_s.tolist() == [3600]


def test_a_run_that_ended_is_continued_by_one_that_was_submitted_soon_after(written: Write) -> None:
    again = JOB | {"Submit": "2024-01-01T01:10:05", "Start": "2024-01-01T01:20:00", "End": "2024-01-01T02:20:00"}
    found = history(written(*lines(JOB, again)))
    assert found.trace.job_id == ("7",)
    assert found.trace.duration_s.tolist() == [7200]


def test_restarts_count_where_earlier_runs_are_not_listed(written: Write) -> None:
    assert history(written(*lines(JOB | {"Restarts": "3"}))).trace.retries.tolist() == [3]


def test_an_id_that_is_given_again_years_later_is_another_job(written: Write) -> None:
    later = {"Submit": "2026-01-01T00:00:00", "Start": "2026-01-01T00:10:00", "End": "2026-01-01T01:10:00"}
    found = history(written(*lines(JOB, JOB | later)))
    assert found.trace.job_id == ("7", "7#2")
    assert finding(found, "id of an earlier job")[:2] == ("repaired", 1)


def test_a_run_that_two_files_list_counts_once_as_the_later_one_says(written: Write) -> None:
    running = JOB | {"State": "RUNNING", "End": "Unknown", "ElapsedRaw": "60"}
    one, two = written(*lines(running), name="january"), written(*lines(JOB), name="february")
    found = slurm.read_history([one, two])
    assert found.trace.duration_s.tolist() == [3600]
    assert found.trace.status == ("finished",)
    assert finding(found, "lines repeat a run")[:2] == ("repaired", 1)


def test_files_may_have_other_fields_each(written: Write) -> None:
    short = [name for name in FIELDS if name != "User"]
    one = written(*lines(JOB), name="a")
    two = written("|".join(short), "|".join((JOB | {"JobID": "8"})[name] for name in short), name="b")
    assert slurm.read_history([one, two]).trace.job_id == ("7", "8")


def test_one_file_may_have_job_ids_and_another_raw_ones(written: Write) -> None:
    raw = tuple("JobIDRaw" if name == "JobID" else name for name in FIELDS)
    one, two = written(*lines(JOB), name="a"), written("|".join(raw), line(JobID="8"), name="b")
    assert slurm.read_history([one, two]).trace.job_id == ("7", "8")


def test_array_tasks_are_jobs_and_those_that_never_started_are_left_out(written: Write) -> None:
    rows = [JOB | {"JobID": "7_1"}, JOB | {"JobID": "7_2"}, JOB | {"JobID": "7_[3-9%2]", "State": "PENDING"}]
    found = history(written(*lines(*rows)))
    assert found.trace.job_id == ("7_1", "7_2")
    assert finding(found, "array tasks that never started") == ("left out", 1, 4)


@pytest.mark.parametrize("absent", ["Unknown", "None", ""])
def test_jobs_that_never_ran_and_jobs_without_accelerators_are_counted_apart(written: Write, absent: str) -> None:
    never = {"JobID": "8", "State": "CANCELLED by 0", "Start": absent, "ElapsedRaw": "0", "AllocTRES": ""}
    plain = {"JobID": "9", "AllocTRES": "cpu=8,mem=1G", "ReqTRES": "cpu=8,mem=1G"}
    found = history(written(*lines(JOB, JOB | never, JOB | plain)))
    assert found.trace.job_id == ("7",)
    assert finding(found, "never ran") == ("left out", 1, 3)
    assert finding(found, "asked for no accelerator") == ("left out", 1, 4)


def test_a_running_job_is_cut_off_and_a_job_of_0_s_lasts_1_s(written: Write) -> None:
    rows = [JOB | {"State": "RUNNING", "End": "Unknown"}, JOB | {"JobID": "8", "ElapsedRaw": "0", "End": JOB["Start"]}]
    found = history(written(*lines(*rows)))
    assert found.trace.duration_s.tolist() == [3600, 1]
    assert np.isnan(found.ended_s).tolist() == [True, False]
    assert finding(found, "still ran")[:2] == ("assumed", 1)
    assert finding(found, "ran for 0 s")[:2] == ("repaired", 1)


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        ({"Elapsed": "1-02:03:04"}, 93_784),
        ({"Elapsed": "02:03"}, 123),
        ({}, 3600),
        ({"Suspended": "00:10:00"}, 3000),
        ({"Elapsed": "2 hours"}, 3600),
    ],
)
def test_the_duration_is_elapsed_else_end_less_start_and_suspension(
    written: Write, cells: dict[str, str], seconds: float
) -> None:
    found = history(written(*lines(JOB | {"ElapsedRaw": ""} | cells)))
    assert found.trace.duration_s.tolist() == [seconds]
    assert any("values of Elapsed cannot be read" in what for what in said(found)) == (
        cells.get("Elapsed") == "2 hours"
    )


def test_clock_changes_and_suspensions_are_said(written: Write) -> None:
    found = history(
        written(*lines(JOB | {"End": "2024-01-01T02:10:00"}, JOB | {"JobID": "8", "Suspended": "01:00:00"}))
    )
    assert finding(found, "another time between Start and End")[1] == 2
    assert finding(found, "were suspended")[1] == 1


def test_times_may_be_seconds_since_1970(written: Write) -> None:
    times = {"Submit": "1704067200", "Start": "1704067800", "End": "1704071400"}
    found = history(written(*lines(JOB | times)))
    assert str(found.trace.began) == "2024-01-01 00:00:00"
    assert found.started_s.tolist() == [600]


def test_bytes_that_are_no_utf_8_are_replaced_and_said(written: Write) -> None:
    raw = "\n".join(lines(JOB | {"Account": "m\xfcller"})).encode("latin-1") + b"\n"
    found = history(written(raw=raw))
    assert found.trace.tenant == ("m\ufffdller",)
    assert finding(found, "not UTF-8")[0] == "repaired"


def test_quotes_and_spaces_in_values_mean_nothing(written: Write) -> None:
    found = history(
        written(*lines(JOB | {"JobName": '"a', "Account": "x y"}, JOB | {"JobID": "8", "JobName": "b\" 'c"}))
    )
    assert found.trace.tenant == ("x y", "vision")


@pytest.mark.parametrize("tenant", ["user", "account"])
def test_the_tenant_is_the_account_or_the_user(written: Write, tenant: str) -> None:
    expected = {"user": "ann", "account": "vision"}
    assert read(written(*lines(JOB)), "slurm", tenant=tenant).tenant == (expected[tenant],)


@pytest.mark.parametrize(
    ("text", "accelerators", "kind"),
    [
        ("cpu=8,gres/gpu=4,mem=64G", 4, ""),
        ("gres/gpu:a100=4,gres/gpu=4", 4, "a100"),
        ("gres/gpu:a100=4", 4, "a100"),
        ("gres/gpu:a100=1,gres/gpu:v100=3,gres/gpu=4", 4, "v100"),
        ("gres/gpu:nvidia_a100-sxm4-80gb=2", 2, "nvidia_a100-sxm4-80gb"),
        ("gres/gpumem=0,gres/gpuutil=3,cpu=1", 0, ""),
        ("", 0, ""),
        ("=,gres/gpu=,gres/gpu:=x", 0, ""),
    ],
)
def test_trackable_resources(text: str, accelerators: int, kind: str) -> None:
    found = parse_tres(text)
    assert (found.accelerators, found.type) == (accelerators, kind)


@pytest.mark.parametrize(
    ("text", "accelerators", "kind"),
    [
        ("gpu:a100:4(S:0-1)", 4, "a100"),
        ("gpu:4", 4, ""),
        ("gpu", 1, ""),
        ("gpu:t4", 1, "t4"),
        ("gres:gpu:2", 2, ""),
        ("gpu:2(IDX:0,1),shard:16", 2, ""),
        ("gpu:2,gpu:t4:1", 3, "t4"),
        ("gpu:a100_1g.5gb:7", 7, "a100_1g.5gb"),
        ("(null)", 0, ""),
    ],
)
def test_generic_resources_of_machines_and_of_old_versions(text: str, accelerators: int, kind: str) -> None:
    found = parse_gres(text)
    assert (found.accelerators, found.type) == (accelerators, kind)


def test_memory_and_shards() -> None:
    assert parse_tres("mem=1.5T,gres/shard=4") == Resources(memory_gib=1536, shares=4)
    assert parse_tres("mem=512M").memory_gib == 0.5


def test_shards_mixed_types_and_requests_without_allocation_are_said(written: Write) -> None:
    rows = [
        JOB | {"JobID": "1", "AllocTRES": "cpu=1,gres/shard=4", "ReqTRES": "gres/shard=4"},
        JOB | {"JobID": "2", "AllocTRES": "gres/gpu:a100=1,gres/gpu:v100=3"},
        JOB | {"JobID": "3", "AllocTRES": "cpu=8"},
    ]
    found = history(written(*lines(*rows)))
    assert found.trace.job_id == ("1", "2", "2@a100", "3")
    assert found.trace.scale_factor.tolist() == [1, 3, 1, 2]
    assert finding(found, "share an accelerator")[:2] == ("assumed", 1)
    assert finding(found, "several types")[:2] == ("assumed", 1)
    assert finding(found, "what they asked for counts")[:2] == ("assumed", 1)


def test_gres_of_old_versions_is_for_each_node(written: Write) -> None:
    old = {name: value for name, value in JOB.items() if name not in ("AllocTRES", "ReqTRES")}
    names = (*old, "AllocGRES", "ReqGRES")
    values = old | {"NNodes": "2", "AllocGRES": "gpu:v100:4", "ReqGRES": "gpu:4"}
    found = history(written("|".join(names), "|".join(values[name] for name in names)))
    assert found.trace.scale_factor.tolist() == [8]
    assert found.ran_on == ("v100",)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu[01-03,07],login1", ("gpu01", "gpu02", "gpu03", "gpu07", "login1")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("a", ("a",)),
        ("n[03,7]-ib", ("n03-ib", "n7-ib")),
        ("v100-[0-1],k80-0", ("v100-0", "v100-1", "k80-0")),
        ("None assigned", ()),
        ("", ()),
        ("x[1-999999999]", ()),
    ],
)
def test_lists_of_hosts(text: str, names: tuple[str, ...]) -> None:
    assert expand_hosts(text) == names


def refusal(path: Path) -> str:
    with pytest.raises(InvalidInput) as error:
        history(path)
    return str(error.value)


def test_files_that_are_not_of_sacct_are_refused_with_the_command_that_writes_one(written: Write) -> None:
    assert "the file is empty" in refusal(written(raw=b""))
    assert "JSON of sacct" in refusal(written('{"items": []}'))
    assert "in which long values are cut short" in refusal(written("JobID    JobName  State", "-----  ---- ----"))
    assert "leave out --noheader" in refusal(written("7|ann|vision|COMPLETED"))
    assert "sacct --allusers" in refusal(written("a,b,c", "1,2,3"))


def test_every_missing_field_is_named(written: Write) -> None:
    text = refusal(written("JobID|State|User", "1|COMPLETED|ann"))
    for name in ("Submit", "ElapsedRaw, Elapsed, End", "AllocTRES, ReqTRES"):
        assert name in text


def test_a_file_without_usable_jobs_says_why(written: Write) -> None:
    assert "there is no line of a job" in refusal(written(*lines(JOB | {"JobID": "7.batch"})))
    assert "1 lines name gres/npu" in refusal(written(*lines(JOB | {"AllocTRES": "gres/npu=4", "ReqTRES": ""})))
    held = "billing=8,cpu=8,gres/npu910=4,mem=64G,node=1"  # as Slurm writes it: other resources come first
    assert "1 lines name gres/npu910" in refusal(written(*lines(JOB | {"AllocTRES": held, "ReqTRES": "cpu=8"})))
    assert "SLURM_TIME_FORMAT" in refusal(written(*lines(JOB | {"Submit": "Mon 12:00"})))
    assert "other fields than the first" in refusal(written(*lines(JOB), "JobID|State|Submit|a|b|c|d|e|f|g|h|i"))


def test_another_generic_resource_may_be_the_accelerator(written: Write) -> None:
    path = written(*lines(JOB | {"AllocTRES": "gres/npu:910b=4"}))
    assert read(path, "slurm", gres="npu").scale_factor.tolist() == [4]


def test_the_format_is_detected_by_its_header(written: Write) -> None:
    assert len(read(written(*lines(JOB), name="sacct.txt"), "auto")) == 1


def test_what_slurm_itself_wrote_is_read_as_it_was_run() -> None:
    """Output of sacct 22.05.8: one job was requeued, one suspended for 14 s, one reached its limit, one had no GPU."""
    found = history(Path(__file__).parent / "sacct-22.05.txt")
    ran = dict(zip(found.trace.job_id, found.trace.duration_s.tolist(), strict=True))
    tasks = {f"4_{k}": 2 for k in range(4)}
    assert ran == {"1": 4, "2": 3, "3": 4, "6": 70, "7": 11 + 40, "8": 16, "10": 1, "16": 107} | tasks
    by_id = {name: m for m, name in enumerate(found.trace.job_id)}
    assert found.trace.submitted_s[by_id["7"]] == 0  # Slurm says 00:50:00 on the line of the second run
    assert found.trace.scale_factor[by_id["3"]] == 8
    assert found.machines[by_id["3"]] == ("v100-0", "v100-1")
    assert (found.ran_on[by_id["2"]], found.asked_for[by_id["2"]]) == ("v100", "")
    assert [found.trace.status[by_id[name]] for name in ("6", "10", "16", "7")] == [
        "failed",
        "failed",
        "cancelled",
        "finished",
    ]
    counts = {one.what.split(";")[0].split(":")[0]: one.count for one in found.findings}
    assert counts == {
        "components of heterogeneous jobs (123+0) are read as jobs of their own": 2,
        "runs were suspended for a while": 1,
        "jobs were requeued": 1,
        "jobs asked for no accelerator": 1,
        "jobs with accelerators never ran": 2,
        "jobs reached their time limit (TIMEOUT, DEADLINE)": 1,
    }
