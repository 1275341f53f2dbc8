"""What the published traces mean; the real ones hold what their publications say, row for row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import read, window
from eunomia.traces.statistics import describe

Real = Callable[[str], Path]
Write = Callable[..., Path]
OPENB = "name,num_gpu,gpu_milli,gpu_spec,pod_phase,creation_time,deletion_time,scheduled_time"


def test_a_part_of_an_accelerator_is_a_whole_one_or_dropped_and_either_is_reported(written: Write) -> None:
    path = written(
        OPENB,
        "a,1,460,,Running,5,100,10",
        "b,2,1000,V100M16|V100M32,Failed,6,106,16",
        "c,0,0,,Running,7,100,10",
        "d,1,1000,,Pending,8,100,",
        "e,1,1000,,Succeeded,9,40,40",
    )
    trace = read(path, "openb")
    assert (trace.job_id, trace.scale_factor.tolist()) == (("a", "b", "e"), [1, 2, 1])
    assert trace.duration_s.tolist() == [90, 90, 1]  # from scheduling to deletion
    assert trace.submitted_s.tolist() == [5, 6, 9]  # creation
    assert trace.status == ("", "failed", "finished")
    result = [note.split(" ")[0] + note.split(" ", 3)[2] for note in trace.notes]
    assert result == ["1ask", "1were", "1ask", "1may", "1still", "1have"]
    dropped = read(path, "openb", fraction="drop")
    assert dropped.job_id == ("b", "e")
    assert "1 pods ask for a part of one accelerator and are left out" in dropped.notes


def test_milliseconds_of_muri_are_read_as_seconds_and_noted(written: Write) -> None:
    header = "job_id,num_gpu,submit_time,duration,resource_time_0,resource_time_1,resource_time_2,model_name"
    path = written(header, "0,1,2500,70000,1,2,3,dqn")
    trace = read(path, "muri")
    assert (trace.submitted_s.tolist(), trace.duration_s.tolist(), trace.job_type) == ([2.5], [70], None)
    assert "milliseconds" in trace.notes[0]
    assert read(path, "muri", models=True).job_type == ("dqn",)


def test_starts_that_are_no_submissions_are_noted(written: Write) -> None:
    lingjun = read(written("job_index,submit_s,gpus,service_s", "0,5,8,0", "1,5,8,60"), "lingjun")
    assert lingjun.duration_s.tolist() == [1, 60]
    assert "starts of the jobs" in lingjun.notes[0]
    assert lingjun.notes[1].startswith("1 jobs have a duration of 0 s")
    pai = read(written("task_row,job_name,start_s,gpus,service_s,clamped", "3,j,9,8,172800,1", "4,j,7,8,60,0"), "pai")
    assert (pai.job_id, pai.app, pai.status) == (("4", "3"), ("j", "j"), ("finished",) * 2)
    assert "starts of the tasks" in pai.notes[0]
    assert pai.notes[-1].startswith("1 jobs ran longer than the 172,800 s")


def test_each_cluster_of_itp_is_a_tenant_or_named_alone(written: Write) -> None:
    path = written(
        "cluster,job_id,submission_time,duration,num_gpu,model_name,deadline", "c1,x,9,5,1,bert,20", "c2,y,3,5,2,gpt2,"
    )
    both = read(path, "itp")
    assert (both.job_id, both.tenant, both.job_type) == (("y", "x"), ("c2", "c1"), None)
    assert both.deadline_s.tolist() == [np.inf, 20]
    assert read(path, "itp", cluster="c1", models=True).job_type == ("bert",)


def test_a_pollux_job_trains_the_measured_iterations_of_its_batch_size(written: Write) -> None:
    path = written(
        "set,workload,name,time,application,num_replicas,batch_size",
        "w,1,a,5,cifar10,6,2048",
        "w,2,a,4,cifar10,6,4096",
        "v,1,a,3,cifar10,6,3000",
    )
    whole = read(path, "pollux")
    assert whole.job_id == ("v/1/a", "w/2/a", "w/1/a")
    assert whole.tenant == ("v/1", "w/2", "w/1")
    assert whole.total_steps[1:].tolist() == [2011, 3178]
    assert 2011 < whole.total_steps[0] < 3178
    one = read(path, "pollux", set="w", workload=1)
    assert (one.job_id, one.job_type) == (("w/1/a",), ("cifar10 (batch size 2048)",))


def test_a_shockwave_job_is_known_by_steps_or_by_its_nominal_duration(written: Write) -> None:
    row = "LM (batch size 10)\tpython3\tlm\t--steps\t1\t134583\t2\tgns\t1\t-1.0\t1418\t5"
    path = written(row, row.replace("gns", "static"))
    steps, nominal = read(path, "shockwave"), read(path, "shockwave", work="duration")
    assert (steps.total_steps.tolist(), nominal.duration_s.tolist()) == ([134583] * 2, [1418] * 2)
    assert np.isnan(steps.duration_s).all() and np.isnan(nominal.total_steps).all()
    assert steps.notes[0].startswith("1 jobs change their batch size in training (gns 1)")


def test_lists_in_tiresias_format_may_name_users_and_call_durations_work(written: Write) -> None:
    astraea = read(written("job_id,user,num_gpu,submit_time,duration", "0,ann,1,5,7", "1,bo,1,3,7"), "tiresias")
    assert (astraea.job_id, astraea.tenant) == (("1", "0"), ("bo", "ann"))
    assert read(written("job_id,num_gpu,submit_time,work_s", "0,1,5,7.25"), "tiresias").duration_s.tolist() == [7.25]


def test_a_published_table_may_be_parquet(tmp_path: Path) -> None:
    columns = {
        "row": [0, 1],
        "submit_time": [datetime(2017, 8, 7, 10), datetime(2017, 8, 7, 11)],
        "user": [1, 2],
        "gpus": [1, 8],
        "nodes": [1, 1],
        "run_time_s": [7.5, 8.0],
        "status": ["Pass", "Failed"],
    }
    pq.write_table(pa.table(columns), tmp_path / "jobs.parquet")
    trace = read(tmp_path / "jobs.parquet", "auto")
    assert (trace.submitted_s.tolist(), trace.duration_s.tolist()) == ([0, 3600], [7.5, 8])


def test_times_written_as_dates_are_counted_from_the_first(written: Write) -> None:
    header = "row,submit_time,user,gpus,nodes,run_time_s,status"
    path = written(
        header,
        "0,2017-08-08 00:00:00,4,1,1,60,Pass",
        "1,2017-08-07 23:59:00,5,1,1,0,Failed",
        "2,2017-08-08 00:00:00,4,0,1,60,Pass",
    )
    trace = read(path, "outcomes")
    assert (trace.job_id, trace.submitted_s.tolist(), trace.began) == (
        ("1", "0"),
        [0, 60],
        datetime(2017, 8, 7, 23, 59),
    )
    assert (trace.tenant, trace.status) == (("5", "4"), ("failed", "finished"))
    assert [note.split(" ")[0] for note in trace.notes] == ["1", "1"]


def test_a_helios_log_gives_clusters_or_users_as_tenants(written: Write) -> None:
    path = written(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
        "2,ua,va,4,16,1,TIMEOUT,2020-06-09 18:41:27,,,249,0",
        "1,ub,vb,1,1,1,COMPLETED,2020-06-09 18:41:01,,,36848,0",
        "3,ub,vb,0,1,1,COMPLETED,2020-06-09 18:41:01,,,1,0",
    )
    trace = read(path, "auto")
    assert (trace.job_id, trace.submitted_s.tolist()) == (("1", "2"), [0, 26])
    assert (trace.tenant, trace.status) == (("vb", "va"), ("finished", "failed"))
    assert read(path, "helios", tenant="user").tenant == ("ub", "ua")


def test_a_workload_of_pollux_as_its_authors_published_it_has_no_set(written: Write) -> None:
    path = written("name,time,application,num_replicas,batch_size", "cifar10-0,107,cifar10,6,2048")
    trace = read(path, "auto")
    assert (trace.job_id, trace.tenant, len(trace.notes)) == (("cifar10-0",), ("",), 1)


def test_a_date_beyond_the_calendar_is_no_date(written: Write) -> None:
    header = "row,submit_time,user,gpus,nodes,run_time_s,status"
    assert read(written(header, "0,0000-08-08 00:00:00,4,1,1,60,Pass"), "outcomes").began is None
    philly = "job_index,submit_time,submit_s,gpus,span_s,service_s,vc,status"
    for submitted in ("1e12", "1e300", "nan", ""):
        row = f"0,2017-08-14 23:27:00,{submitted},1,5,5,,Pass"
        with suppress(InvalidInput):
            assert read(written(philly, row), "philly").began is None
    trace = read(written(philly, "0,2017-08-14 23:27:00,0,1,5,5,,Pass", "1,,1e12,1,5,5,,Pass"), "philly")
    assert trace.began == datetime(2017, 8, 14, 23, 27)
    assert window(trace, start_s=9e11).began is None
    assert window(trace, end_s=1e11).began == trace.began
    assert window(trace, end_s=1e11, load=2).began is None


PUBLISHED: list[tuple[str, str, dict[str, Any], int]] = [  # file or folder, format, options, jobs its README counts
    ("philly", "philly", {}, 84_605),
    ("philly/philly_status_first15k.csv.gz", "outcomes", {}, 15_000),
    ("philly-vc103959-deadlines", "philly-deadlines", {}, 527),
    ("helios-venus", "venus", {"status_file": "venus_status_15k.csv.gz"}, 99_707),
    ("helios-venus/venus_status_15k.csv.gz", "outcomes", {}, 10_796),
    ("elasticflow-itp", "itp", {}, 39_392),
    *[("elasticflow-itp", "itp", {"cluster": f"cluster{n:02}"}, jobs)
      for n, jobs in ((1, 1595), (3, 3011), (4, 15802), (5, 3629), (6, 2396), (7, 12699), (10, 260))],
    ("alibaba-pai-2020", "pai", {}, 39_043),
    ("crux-lingjun-2023", "lingjun", {}, 2_498),
    ("acme-kalos", "kalos", {}, 319),
    ("muri/trace1_7f04ca.csv.gz", "muri", {}, 1_079),
    ("muri/trace2_ee9e8c.csv.gz", "muri", {}, 3_795),
    ("muri/trace3_2869ce.csv.gz", "muri", {}, 670),
    ("muri/trace4_0e4a51.csv.gz", "muri", {}, 1_977),
    ("pollux-workloads", "pollux", {}, 7_680),
    *[("pollux-workloads", "pollux", {"set": "workloads", "workload": n}, 160) for n in range(1, 9)],
    ("tiresias", "tiresias", {}, 60),
    ("../peers/tiresias/w480", "tiresias", {}, 480),
    ("../peers/tiresias/j60_16gpu", "tiresias", {}, 60),
    ("../peers/helios/w480", "tiresias", {}, 480),
    ("../peers/astraea/fake500", "tiresias", {}, 500),
    ("../peers/astraea/a400", "tiresias", {}, 400),
    ("../peers/astraea/a400h", "tiresias", {}, 400),
    ("../peers/blox/load1_20gpu", "tiresias", {}, 600),
    ("../peers/shockwave", "shockwave", {}, 120),
]  # fmt: skip


@pytest.mark.parametrize(("name", "format", "options", "jobs"), PUBLISHED)
def test_a_published_trace_is_read_whole(
    name: str, format: str, options: dict[str, Any], jobs: int, real: Real
) -> None:
    trace = read(real(f"traces/{name}"), format, **options)
    assert len(trace) == jobs
    assert (np.diff(trace.submitted_s) >= 0).all()
    assert (np.nan_to_num(trace.duration_s, nan=1) > 0).all()
    assert (np.isnan(trace.total_steps) != np.isnan(trace.duration_s)).all()


def test_the_shockwave_traces_hold_the_jobs_that_their_names_say(real: Real) -> None:
    files = sorted(real("traces/shockwave").glob("*.trace.gz"))
    assert len(files) == 5
    for file in files:
        assert len(read(file, "shockwave")) == int(file.name.split("_")[0])


def test_the_real_pods_are_classified_as_published(real: Real) -> None:
    folder = real("traces/alibaba-openb-2023")
    trace = read(folder / "openb_pod_list_default.csv.gz", "openb")
    left_out = [int(note.split(" ")[0].replace(",", "")) for note in trace.notes[:2]]
    assert left_out[0] == 1_088
    assert len(trace) + sum(left_out) == 8_152
    assert Counter(trace.status)["failed"] <= 1_870
    with pytest.raises(InvalidInput, match="creation_time: this column is missing"):
        read(folder / "openb_pod_list_multigpu20.csv.gz", "openb")
    spec = read(folder / "openb_pod_list_gpuspec33.csv.gz", "openb")
    assert any("gpu_spec" in note for note in spec.notes)


def test_the_four_virtual_clusters_of_muri_are_those_of_philly(real: Real) -> None:
    """Every job is in Philly's log; where time 0 of a file stands on Philly's clock is as published."""
    philly = read(real("traces/philly"), "philly")
    known = set(zip(philly.submitted_s.tolist(), philly.scale_factor.tolist(), strict=True))
    zeros = {"1_7f04ca": 337_998, "2_ee9e8c": 2_601_211, "3_2869ce": 2_998_619, "4_0e4a51": 3_711_442}
    for name, zero in zeros.items():
        muri = read(real(f"traces/muri/trace{name}.csv.gz"), "muri")
        assert set(zip((muri.submitted_s + zero).tolist(), muri.scale_factor.tolist(), strict=True)) <= known


def test_sizes_and_statuses_of_the_real_traces_are_as_published(real: Real) -> None:
    assert Counter(read(real("traces/helios-venus/venus_status_15k.csv.gz"), "outcomes").status).total() == 10_796
    kalos = read(real("traces/acme-kalos"), "kalos")
    assert (kalos.scale_factor.max(), np.median(kalos.scale_factor) >= 256) == (1_024, True)
    lingjun = read(real("traces/crux-lingjun-2023"), "lingjun")
    time = lingjun.scale_factor * lingjun.duration_s
    assert np.mean(lingjun.scale_factor > 64) == pytest.approx(0.10, abs=0.01)
    assert time[lingjun.scale_factor > 8].sum() / time.sum() == pytest.approx(0.93, abs=0.005)
    pai = read(real("traces/alibaba-pai-2020"), "pai")
    demand = (pai.scale_factor * pai.duration_s).sum() / (pai.submitted_s[-1] - pai.submitted_s[0])
    assert demand == pytest.approx(450, rel=0.1)
    for cluster, mean_demand in {1: 28, 3: 140, 4: 495, 5: 10, 6: 87, 7: 257, 10: 5}.items():
        itp = describe(read(real("traces/elasticflow-itp"), "itp", cluster=f"cluster{cluster:02}"))
        assert itp.mean_demand is not None and round(itp.mean_demand) == mean_demand
    venus = read(real("traces/helios-venus"), "venus")
    assert np.mean(venus.scale_factor == 1) == pytest.approx(0.52, abs=0.02)
    assert venus.began == datetime(2020, 3, 18, 4, 1, 39)
    assert read(real("traces/philly"), "philly").began == datetime(2017, 8, 14, 23, 27)
