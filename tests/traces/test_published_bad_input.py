"""Every error of a published table of jobs is reported with its file, row and column, for every reader."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import read

Write = Callable[..., Path]
GOOD = {  # format → a whole row, by column
    "philly-deadlines": {
        "job_id": "0", "submit_time": "5", "real_iteration": "9", "model_name": "vgg16", "ddl": "900",
        "batch_size": "64", "num_gpu": "4", "real_duration": "70", "duration": "70", "iteration": "9",
    },
    "outcomes": {
        "row": "0", "submit_time": "2017-08-07 10:03:01", "user": "1", "gpus": "2", "nodes": "1",
        "run_time_s": "70", "status": "Killed", "job_index": "",
    },
    "helios": {
        "job_id": "14", "user": "ua", "vc": "vcb", "gpu_num": "4", "cpu_num": "16", "node_num": "1", "state": "FAILED",
        "submit_time": "2020-06-09 18:41:27", "start_time": "x", "end_time": "x", "duration": "70", "queue": "0",
    },
    "rfold": {
        "#job id": "0", "arrival time (sec)": "5", "topology": "CLOS", "shape": "48", "size": "48",
        "duration (sec)": "70",
    },
    "itp": {
        "cluster": "c1", "job_id": "a-b", "submission_time": "5", "duration": "70", "num_gpu": "8",
        "model_name": "gpt2", "batch_size": "64", "num_iteration": "9", "deadline": "900",
    },
    "pai": {
        "job_name": "e29", "task_name": "worker", "task_row": "38", "start_s": "5", "gpus": "8",
        "service_s": "70", "clamped": "0",
    },
    "openb": {
        "name": "pod-0", "cpu_milli": "1", "memory_mib": "1", "num_gpu": "1", "gpu_milli": "460", "gpu_spec": "",
        "qos": "LS", "pod_phase": "Failed", "creation_time": "5", "deletion_time": "90", "scheduled_time": "20",
    },
    "alibaba-2026": {
        "job_name": "1", "organization": "57", "gpu_model": "A10", "cpu_request": "20", "gpu_request": "8",
        "worker_num": "4", "submit_time": "5", "duration": "70", "job_type": "Spot",
    },
    "lingjun": {"job_index": "0", "submit_s": "5", "gpus": "48", "service_s": "720"},
    "kalos": {
        "job_id": "0", "submit_s": "5", "nodes": "8", "gpus_per_node": "8.0", "gpus": "64", "service_s": "70",
        "iteration_networking_time": "0.25",
    },
    "muri": {
        "job_id": "0", "num_gpu": "2", "submit_time": "5000", "iterations": "9", "model_name": "dqn",
        "batch_size": "128", "duration": "70000", "interval": "1", "iteration_time": "490",
        "resource_time_0": "446.0", "resource_time_1": "8", "resource_time_2": "0.0", "priority": "1",
    },
    "pollux": {
        "set": "w", "workload": "1", "name": "ncf-0", "time": "5", "application": "ncf", "num_replicas": "6",
        "batch_size": "2048",
    },
    "tiresias": {
        "job_id": "0", "num_gpu": "2", "submit_time": "5", "iterations": "9", "model_name": "vgg19",
        "duration": "70", "interval": "1",
    },
}  # fmt: skip
ID = {
    "philly-deadlines": "job_id", "outcomes": "row", "helios": "job_id", "rfold": "#job id", "itp": "job_id",
    "pai": "task_row", "openb": "name", "alibaba-2026": "job_name",
    "lingjun": "job_index", "kalos": "job_id", "muri": "job_id",
    "pollux": "name", "tiresias": "job_id",
}  # fmt: skip
TIMES = {
    "philly-deadlines": ("submit_time", "duration", "real_duration", "ddl"),
    "outcomes": ("run_time_s",),
    "helios": ("duration",),
    "rfold": ("arrival time (sec)", "duration (sec)"),
    "itp": ("submission_time", "duration", "deadline"),
    "pai": ("start_s", "service_s"),
    "openb": ("creation_time", "deletion_time", "scheduled_time"),
    "alibaba-2026": ("submit_time", "duration"),
    "lingjun": ("submit_s", "service_s"),
    "kalos": ("submit_s", "service_s"),
    "muri": ("submit_time", "duration"),
    "pollux": ("time",),
    "tiresias": ("submit_time", "duration"),
}
SIZE = {
    "philly-deadlines": "num_gpu", "outcomes": "gpus", "helios": "gpu_num", "rfold": "size", "itp": "num_gpu",
    "pai": "gpus", "openb": "num_gpu", "alibaba-2026": "worker_num",
    "lingjun": "gpus", "kalos": "gpus", "muri": "num_gpu",
    "pollux": "num_replicas", "tiresias": "num_gpu",
}  # fmt: skip
NO_NUMBERS = ("-1", "nan", "inf", "1e999", "soon", "0x10")
FURTHER = [
    ("philly-deadlines", "ddl", "4"),
    ("outcomes", "submit_time", "yesterday"),
    ("outcomes", "submit_time", "2017-13-07 10:03:01"),
    ("outcomes", "status", "ok"),
    ("outcomes", "user", ""),
    ("helios", "state", "Pass"),
    ("helios", "vc", ""),
    ("helios", "submit_time", "2020-06-31 00:00:00"),
    ("itp", "cluster", ""),
    ("itp", "deadline", "4"),
    ("pai", "clamped", "2"),
    ("pai", "job_name", ""),
    ("openb", "deletion_time", "19"),
    ("openb", "pod_phase", "Gone"),
    ("openb", "gpu_milli", "1001"),
    ("alibaba-2026", "job_type", "spot"),
    ("alibaba-2026", "organization", ""),
    ("alibaba-2026", "gpu_model", ""),
    ("alibaba-2026", "gpu_request", "-1"),
    ("alibaba-2026", "cpu_request", "many"),
    ("kalos", "nodes", "0"),
    ("pollux", "application", "chess"),
    ("pollux", "batch_size", "0"),
    ("pollux", "set", ""),
    *[(format, ID[format], "") for format in ID],
]


def table(format: str, *changes: dict[str, str]) -> list[str]:
    """Return the header, a good row, and a row with another id for each change."""
    good = GOOD[format]
    rows = [good | {ID[format]: f"{m}7"} | change for m, change in enumerate(changes)]
    return [",".join(cells) for cells in (good, good.values(), *(row.values() for row in rows))]


def problems_of(path: Path, format: str, **options: object) -> list[tuple[int | None, str | None]]:
    """Return (row, column) of each problem; every one names the file and says how to fix it."""
    with pytest.raises(InvalidInput) as caught:
        read(path, format, **options)
    for problem in caught.value.problems:
        assert problem.file == str(path)
        assert problem.rule
        assert problem.fix
    return [(problem.row, problem.column) for problem in caught.value.problems]


def wrong() -> Iterator[tuple[str, str, str]]:
    """Yield (format, column, value): every number of every format, wrong in every way."""
    for format, columns in TIMES.items():
        for column in columns:
            yield from ((format, column, value) for value in NO_NUMBERS)
    for format, column in SIZE.items():
        yield from ((format, column, value) for value in ("1.5", "1e300", "two", *NO_NUMBERS))
    yield from FURTHER


@pytest.mark.parametrize(("format", "column", "value"), list(wrong()))
def test_a_wrong_value_is_reported_with_its_row_and_column(
    format: str, column: str, value: str, written: Write
) -> None:
    path = written(*table(format, {}, {column: value}))
    assert problems_of(path, format) == [(4, column)]


@pytest.mark.parametrize("format", GOOD)
def test_a_good_row_is_a_job(format: str, written: Write) -> None:
    trace = read(written(*table(format)), format)
    assert len(trace) == 1
    assert trace.submitted_s.tolist() == [0 if format in ("outcomes", "helios") else 5]
    if format != "pollux":
        assert trace.duration_s.tolist() == [720 if format == "lingjun" else 70]


@pytest.mark.parametrize("format", GOOD)
def test_a_repeated_id_is_reported_with_the_later_row(format: str, written: Write) -> None:
    path = written(*table(format, {ID[format]: GOOD[format][ID[format]]}))
    assert problems_of(path, format) == [(3, ID[format])]


@pytest.mark.parametrize("format", GOOD)
def test_a_missing_column_is_reported_once(format: str, written: Write) -> None:
    for column in (ID[format], SIZE[format]):
        kept = [name for name in GOOD[format] if name != column]
        path = written(",".join(kept), ",".join(GOOD[format][name] for name in kept))
        assert problems_of(path, format) == [(1, column)]


@pytest.mark.parametrize("format", GOOD)
def test_all_problems_are_counted_and_the_first_twenty_reported(format: str, written: Write) -> None:
    path = written(*table(format, *[{SIZE[format]: "-1", TIMES[format][0]: "-1"}] * 40), "short,row")
    with pytest.raises(InvalidInput) as caught:
        read(path, format)
    assert caught.value.count == 81
    assert [problem.row for problem in caught.value.problems] == [3 + m // 2 for m in range(20)]


@pytest.mark.parametrize("format", [*GOOD, "shockwave"])
@pytest.mark.parametrize("raw", [b"", b"\n\n", gzip.compress(b"", mtime=0)])
def test_a_file_without_a_word_is_an_empty_trace(raw: bytes, format: str, written: Write) -> None:
    assert problems_of(written(raw=raw), format)[0] == (None, None)


@pytest.mark.parametrize("format", GOOD)
def test_a_gzip_cut_short_is_refused(format: str, written: Write) -> None:
    packed = gzip.compress("\n".join(table(format)).encode(), mtime=0)
    path = written(raw=packed[:-12], name="jobs.csv.gz")
    with pytest.raises(InvalidInput, match="cut short"):
        read(path, format)


@pytest.mark.parametrize("format", GOOD)
def test_damaged_bytes_give_a_trace_or_an_answer_but_no_accident(format: str, written: Write) -> None:
    whole = "\n".join(table(format, {})).encode()
    edit = st.tuples(st.integers(0, len(whole)), st.integers(0, 4), st.binary(max_size=3))

    @settings(max_examples=30)
    @given(st.lists(edit, min_size=1, max_size=4))
    def is_answered(edits: list[tuple[int, int, bytes]]) -> None:
        raw = whole
        for start, length, instead in edits:
            raw = raw[:start] + instead + raw[start + length :]
        with suppress(InvalidInput):
            assert len(read(written(raw=raw), format)) >= 1

    is_answered()


SHOCKWAVE = [
    "LM (batch size 10)",
    "python3 main.py",
    "lm",
    "--steps",
    "1",
    "134583",
    "1",
    "gns",
    "1",
    "-1.0",
    "1418",
    "5",
]
COLUMNS = (
    "job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor",
    "mode", "priority_weight", "SLO", "duration", "arrival_time",
)  # fmt: skip


@pytest.mark.parametrize(
    ("column", "value"),
    [("job_type", ""), ("needs_data_dir", "yes"), ("total_steps", "0"), ("total_steps", "nan"), ("scale_factor", "0"),
     ("mode", "faster"), ("priority_weight", "0"), ("SLO", "0"), ("duration", "0"), ("duration", "inf"),
     ("arrival_time", "-1"), ("arrival_time", "4")],
)  # fmt: skip
def test_a_wrong_value_in_a_shockwave_file_is_reported(column: str, value: str, written: Write) -> None:
    row = [value if name == column else cell for name, cell in zip(COLUMNS, SHOCKWAVE, strict=True)]
    assert problems_of(written("\t".join(SHOCKWAVE), "\t".join(row)), "shockwave") == [(2, column)]


def test_a_job_list_says_its_durations_in_one_column(written: Write) -> None:
    assert problems_of(written("job_id,num_gpu,submit_time", "0,1,5"), "tiresias") == [(1, "duration")]
    both = written("job_id,num_gpu,submit_time,duration,work_s", "0,1,5,7,7")
    assert problems_of(both, "tiresias") == [(1, "duration")]


@pytest.mark.parametrize(
    ("format", "option", "value"),
    [
        ("itp", "cluster", "c2"),
        ("itp", "cluster", 7),
        ("itp", "models", "yes"),
        ("helios", "tenant", "group"),
        ("openb", "fraction", "floor"),
        ("pollux", "workload", 9),
        ("pollux", "set", "v"),
        ("kalos", "models", 1),
        ("muri", "models", "no"),
        ("tiresias", "models", None),
        ("philly-deadlines", "models", 0),
        ("tiresias", "modles", True),
    ],
)
def test_a_wrong_option_is_refused(format: str, option: str, value: object, written: Write) -> None:
    assert problems_of(written(*table(format)), format, **{option: value}) == [(None, option)]


def test_a_trace_from_which_all_pods_would_be_dropped_is_refused(written: Write) -> None:
    path = written(*table("openb"))
    with pytest.raises(InvalidInput, match="1 pods ask for a part of one accelerator and are left out"):
        read(path, "openb", fraction="drop")


@pytest.mark.parametrize(
    ("format", "lines"),
    [
        ("venus", ("job_id,submit_s,gpus,service_s,clamped", "1,0,1,no,1")),
        ("pai", ("task_row,job_name,start_s,gpus,service_s,clamped", "1,a,0,1,no,1")),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_cut_duration_that_is_no_number_is_reported_once_without_warnings(
    format: str, lines: tuple[str, str], written: Callable[..., Path]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(written(*lines), format)
    assert [(problem.row, problem.column) for problem in caught.value.problems] == [(2, "service_s")]
