"""Every column of a source is in the native file, or is named as not written: no reader forgets one silently."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from eunomia.traces import FORMATS, Trace, read, write_native
from eunomia.traces.writing import list_losses

Write = Callable[..., Path]
ENGINES = ("slurm", "kubernetes", "ray", "swf")  # cluster managers, whose readers have tests of their own
FILES = {  # format → header, a row, and a later row, as published
    "native": (
        "job_id,submitted_s,scale_factor,job_type,duration_s,tenant,app,weight,deadline_s,cpus,memory_gib,status,retries,"
        "command,checkpoint_dir",
        "a,1,2,LM,7,ann,x,2,900,3,4,failed,3,,ck",
        'b,5,2,LM,7,ann,x,2,900,3,4,failed,3,"[""python3""]",ck',
    ),
    "philly": (
        "job_index,submit_time,submit_s,gpus,span_s,service_s,vc,vc_source,status,status_source",
        "0,2017-08-14 23:27:00,0,8,70,,6214e9,a,Pass,b",
        "1,2017-08-14 23:27:05,5,8,70,60,6214e9,a,Pass,b",
    ),
    "venus": (
        "job_id,log_row,submit_time,submit_s,gpus,service_s,clamped",
        "7,9,2020-03-18 04:01:39,0,8,70,0",
        "8,11,2020-03-18 04:01:44,5,8,70,0",
    ),
    "philly-deadlines": (
        "job_id,submit_time,real_iteration,model_name,ddl,batch_size,num_gpu,real_duration,duration,iteration",
        "0,5,9,vgg16,900,64,4,70,70,9",
        "1,5,9,vgg16,900,64,4,70,70,9",
    ),
    "helios": (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
        "14,ua,vcb,4,16,1,TIMEOUT,2020-06-09 18:41:27,x,x,70,0",
        "15,ua,vcb,4,16,1,FAILED,2020-06-09 18:41:29,x,x,70,0",
    ),
    "rfold": (
        "#job id,arrival time (sec),topology,shape,size,duration (sec)",
        "0,5,CLOS,48,48,70",
        "1,5,CLOS,48,48,70",
    ),
    "outcomes": (
        "row,submit_time,submit_s,user,gpus,cpus,nodes,run_time_s,status,job_id,job_index",
        "0,2017-08-07 10:03:01,0,1,2,6,1,70,Killed,x,8",
        "1,2017-08-07 10:03:06,5,1,2,6,1,70,Killed,y,9",
    ),
    "itp": (
        "cluster,job_id,submission_time,duration,num_gpu,model_name,batch_size,num_iteration,deadline",
        "c1,a-b,5,70,8,gpt2,64,9,900",
        "c1,a-c,5,70,8,gpt2,64,9,900",
    ),
    "pai": (
        "job_name,task_name,task_row,start_s,gpus,service_s,clamped",
        "e29,worker,38,5,8,70,0",
        "e29,worker,39,5,8,70,0",
    ),
    "openb": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
        "pod-0,6500,1536,1,460,,LS,Running,5,90,20",
        "pod-1,6500,1536,1,1000,,LS,Failed,5,90,20",
    ),
    "alibaba-2026": (
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type",
        "1,13,A10,20,1,1,0,7200,HP",
        "2,57,A100-SXM4-80GB,15,1,94,700,3600,Spot",
    ),
    "lingjun": ("job_index,submit_s,gpus,service_s", "0,5,48,720", "1,5,48,720"),
    "kalos": (
        "job_id,submit_s,nodes,gpus_per_node,gpus,service_s,iteration_networking_time",
        "0,5,8,8.0,64,70,0.25",
        "1,5,8,8.0,64,70,0.25",
    ),
    "muri": (
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,"
        "resource_time_1,resource_time_2,priority",
        "0,2,5000,9,dqn,128,70000,1,490,446.0,8,0.0,1",
        "1,2,5000,9,dqn,128,70000,1,490,446.0,8,0.0,1",
    ),
    "pollux": (
        "set,workload,name,time,application,num_replicas,batch_size",
        "w,1,ncf-0,5,ncf,6,2048",
        "w,1,ncf-1,5,ncf,6,2048",
    ),
    "tiresias": (
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval,user,expect_time",
        "0,2,5,9,vgg19,70,1,ann,3",
        "1,2,5,9,vgg19,70,1,ann,3",
    ),
    "gavel": (
        "job_type\tcommand\tworking_directory\tnum_steps_arg\tneeds_data_dir\ttotal_steps\tscale_factor\tpriority_weight\t"
        "SLO\tarrival_time",
        "LM\tpython3\tlm\t--steps\t1\t100\t2\t1\t-1\t5",
        "LM\tpython3\tlm\t--steps\t1\t100\t2\t1\t-1\t5",
    ),
    "shockwave": (
        "job_type\tcommand\tworking_directory\tnum_steps_arg\tneeds_data_dir\ttotal_steps\tscale_factor\tmode\t"
        "priority_weight\tSLO\tduration\tarrival_time",
        "LM\tpython3\tlm\t--steps\t1\t100\t2\tgns\t1\t-1\t70\t5",
        "LM\tpython3\tlm\t--steps\t1\t100\t2\tgns\t1\t-1\t70\t5",
    ),
    "philly-log": (
        "jobid\tsubmitted_time\tvc\tuser\tstatus\tattempts\tname",
        "j0\t2017-10-03 00:00:00\tv\tu\tPass\t[60, 1]\tx",
        "j1\t2017-10-03 00:00:09\tv\tu\tPass\t[60, 1]\tx",
    ),
}
WITH_OPTIONS = [
    *((format, {}) for format in FILES),
    *((format, {"models": True}) for format in ("itp", "muri", "tiresias", "kalos", "philly-deadlines")),
    ("shockwave", {"work": "duration"}),
    ("alibaba-2026", {"tenant": "job_type"}),
    ("alibaba-2026", {"spot_weight": 0.1}),
    *((format, {"tenant": "user"}) for format in ("helios", "philly-log")),
]
ANOTHER = {  # a value that its column may have too, where one more, or a letter more, will not do
    "Pass": "Failed", "Killed": "Failed", "Failed": "Succeeded", "FAILED": "COMPLETED", "failed": "finished",
    "2017-08-14 23:27:05": "2017-08-14 23:27:06", "2020-03-18 04:01:44": "2020-03-18 04:01:45",
    "2020-06-09 18:41:29": "2020-06-09 18:41:30", "2017-08-07 10:03:06": "2017-08-07 10:03:07",
    "2017-10-03 00:00:09": "2017-10-03 00:00:10", "ncf": "bert", "gns": "static", '"[""python3""]"': '"[""sh""]"',
    "[60, 1]": "[70, 2]", "0.25": "0.75", "Spot": "HP", "-1": "3", "1000": "460",
}  # fmt: skip
FLAGS = ("clamped", "needs_data_dir")


def other(column: str, value: str) -> str:
    """Return another value that a column may have."""
    if value in ANOTHER:
        return ANOTHER[value]
    if column in FLAGS:
        return "10"[int(value)]
    try:
        return f"{float(value) + 1:g}"
    except ValueError:
        return f"{value}x"


def columns_of(format: str) -> list[str]:
    return re.split(r"[,\t]", FILES[format][0])


def split(line: str) -> list[str]:
    return (
        re.findall(r'("(?:""|[^"])*"|[^,]*)(?:,|$)', line)[: line.count(",") + 1]
        if "\t" not in line
        else line.split("\t")
    )


def native_of(trace: Trace, folder: Path) -> bytes:
    write_native(trace, folder / "native.csv")
    return (folder / "native.csv").read_bytes()


def put(format: str, last: list[str], write: Write) -> Path:
    """Write a file of the format with the first row, and `last` as the second."""
    header, first, _ = FILES[format]
    if format == "philly-log":
        jobs = [dict(zip(header.split("\t"), cells, strict=True)) for cells in (first.split("\t"), last)]
        return write(raw=json.dumps([{**job, "attempts": attempts(job["attempts"])} for job in jobs]).encode())
    lines = (first, "\t".join(last)) if "\t" in header else (header, first, ",".join(last))
    return write(*lines)


def attempts(said: str) -> list[dict[str, object]]:
    """Return one attempt of so many seconds on so many accelerators."""
    seconds, gpus = json.loads(said)
    detail = [{"ip": "m1", "gpus": [f"gpu{k}" for k in range(gpus)]}]
    return [
        {
            "start_time": "2017-10-03 01:00:00",
            "end_time": f"2017-10-03 01:0{seconds // 60}:{seconds % 60:02}",
            "detail": detail,
        }
    ]


def test_every_format_is_here() -> None:
    assert set(FILES) | {"venus", *ENGINES} == set(FORMATS)


@pytest.mark.parametrize(("format", "options"), WITH_OPTIONS)
def test_each_column_is_written_or_named(
    format: str, options: dict[str, object], written: Write, tmp_path: Path
) -> None:
    """A column is written if another value of it makes another file; then it is not among those that are left out."""
    row = split(FILES[format][2])
    path = put(format, row, written)
    trace = read(path, format, **options)
    before, result = native_of(trace, tmp_path), " ".join(list_losses(trace))
    left_out = {name.partition(" (")[0] for name in trace.unread}
    for k, column in enumerate(columns_of(format)):
        changed = [*row[:k], other(column, row[k]), *row[k + 1 :]]
        differs = native_of(read(put(format, changed, written), format, **options), tmp_path) != before
        assert differs != (column in left_out) or column in " ".join(trace.partly), column
        assert differs or column in result, column


def test_the_units_of_openb_become_ours(written: Write, tmp_path: Path) -> None:
    trace = read(put("openb", split(FILES["openb"][2]), written), "openb")
    assert trace.cpus.tolist() == [6.5, 6.5]
    assert trace.memory_gib.tolist() == [1.5, 1.5]
    assert trace.notes[-1] == "CPUs are thousandths and memory is MiB in the file, read as CPUs and GiB"
    native_of(trace, tmp_path)
    assert read(tmp_path / "native.csv").memory_gib.tolist() == [1.5, 1.5]


@pytest.mark.parametrize(("format", "column"), [("helios", "cpu_num"), ("outcomes", "cpus")])
def test_the_cpus_of_a_job_are_read(format: str, column: str, written: Write) -> None:
    row = split(FILES[format][2])
    assert read(put(format, row, written), format).cpus.tolist() == [float(row[columns_of(format).index(column)])] * 2


def test_what_is_written_in_part_is_reported(written: Write) -> None:
    result = {format: list_losses(read(put(format, split(FILES[format][2]), written), format)) for format in FILES}
    assert "span_s of jobs that have a service_s" in result["philly"]
    assert "of state TIMEOUT: they become failed" in result["helios"]
    assert "of gpu_milli the parts of an accelerator: they become whole ones" in result["openb"]
    assert "of pod_phase Running: they become not said" in result["openb"]
    assert result["itp"] == ("columns model_name (with --option models=true, as job_type), batch_size, num_iteration",)
    assert result["shockwave"][0].endswith("duration (with --option work=duration)")
    assert result["native"] == ()


def test_the_columns_of_a_status_file_are_reported_with_its_name(written: Write) -> None:
    status = written("row,user,gpus,cpus,status,job_id", "0,ann,8,6,Pass,7", name="status.csv")
    trace = read(put("venus", split(FILES["venus"][2]), written), "venus", status_file=status.name)
    assert trace.unread[-3:] == ("row of status.csv", "gpus of status.csv", "cpus of status.csv")


def test_of_many_strange_keys_of_a_log_the_first_are_named_and_the_others_counted(written: Write) -> None:
    job = {
        "jobid": "j",
        "submitted_time": "2017-10-03 00:00:00",
        "vc": "v",
        "status": "Pass",
        "attempts": attempts("[60, 1]"),
    }
    path = written(raw=json.dumps([job | {f"key-{k}": 1 for k in range(1025)}]).encode())
    found = read(path, "philly-log").unread
    assert (found[0], len(found), found[-1]) == ("key-0", 21, "and 1,005 more")
