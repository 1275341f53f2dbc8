"""Scripts made for Slurm run against a service, with the written commands first in PATH."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra service")
from tests.service.bench import LiveService, until
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.slurm_commands.written_commands import write_commands

SITE = """\
[service]
listen = "127.0.0.1:0"
socket = "lab.sock"
supervisor_lease_s = 30
[cluster]
accelerators = { cpu = 2 }
[policy]
name = "fifo"
"""
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --output=%x-%j.out
#SBATCH --time=00:10:00 --gres=gpu:cpu:1
#SBATCH --account=lab --qos=long
echo "job $SLURM_JOB_ID of $SLURM_JOB_NAME with $1 in $SLURM_SUBMIT_DIR on $SLURM_JOB_NODELIST"
"""


class Login:
    """A shell of a user whose PATH begins with the written commands."""

    def __init__(self, service: LiveService, folder: Path) -> None:
        self.service, self.folder = service, folder
        write_commands(folder / "bin", force=False)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EUNOMIA_", "SLURM_"))}
        self.env = {
            **kept,
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "EUNOMIA_URL": f"unix:{service.folder}/lab.sock",
        }

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def do(self, line: str) -> str:
        done = self.run(line)
        assert done.returncode == 0, f"{line}: {done.stdout} {done.stderr}"
        return done.stdout.strip()

    def script(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def ended(self, number: str) -> str:
        """Wait until all of a job is over; return the states as sacct has them."""
        form = f"sacct -X -n -P -o State -j {number}"
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")
        said = until(lambda: (out := self.do(form)) and all(one.startswith(over) for one in out.split("\n")) and out)
        return " ".join(sorted({one.split()[0] for one in said.split("\n")}))


@pytest.fixture(scope="module")
def login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Login]:
    service = LiveService(tmp_path_factory.mktemp("service"), SITE)
    service.start()
    yield Login(service, tmp_path_factory.mktemp("home"))
    service.kill(signal.SIGTERM)
    service.stop_jobs()


def test_a_script_runs_as_it_was_when_it_was_submitted(login: Login) -> None:
    login.script("train.sh", SCRIPT)
    done = login.run("sbatch train.sh 0.1; echo 'exit 9' >> train.sh")
    assert done.stderr == "sbatch: --account, --qos: not known here, ignored\n"
    number = re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout)
    assert number is not None
    assert login.ended(number[1]) == "COMPLETED"
    said = (login.folder / f"train-{number[1]}.out").read_text()
    assert said.startswith(f"job {number[1]} of train with 0.1 in {login.folder} on ")
    job = login.service.operator.get("/v1/jobs", limit=1)["jobs"][0]
    assert said in login.service.operator.text(f"/v1/jobs/{job['id']}/log")[0]
    assert login.do(f"scontrol write batch_script {number[1]} -") == SCRIPT.strip()


def test_a_chain_stops_where_a_job_fails_and_its_exit_code_is_kept(login: Login) -> None:
    first = login.do("sbatch --parsable --wrap 'sleep 5; exit 3'")
    second = login.do(f"sbatch --parsable -d afterok:{first} --wrap true")
    assert login.ended(f"{first},{second}") == "CANCELLED FAILED"
    assert login.do(f"sacct -X -n -P -o JobID,State,ExitCode -j {first}") == f"{first}|FAILED|3:0"
    late = login.run(f"sbatch -d afterok:{first} --wrap true")
    assert "it has failed" in late.stderr
    assert login.run("sbatch --wait --wrap 'exit 5'").returncode == 5
    assert login.do(f"sacct -nPo JobID,JobName -j {first}").splitlines() == [f"{first}|wrap", f"{first}.batch|batch"]


def test_an_array_is_one_number_with_elements(login: Login) -> None:
    words = "--parsable --array=2-3,6 -o 'part-%A_%a' --wrap"
    number = login.do(f"sbatch {words} 'echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_MAX'")
    after = login.do(f"sbatch --parsable -d afterok:{number} --wrap true")
    assert login.ended(f"{number},{after}") == "COMPLETED"
    for index in (2, 3, 6):
        assert (login.folder / f"part-{number}_{index}").read_text() == f"{number} {index} 6\n"
    rows = login.do(f"sacct -X -n -P -o JobID -j {number}").splitlines()
    assert rows == [f"{number}_2", f"{number}_3", f"{number}_6"]


def test_scancel_ends_an_array_and_one_of_its_elements(login: Login) -> None:
    number = login.do("sbatch --parsable --array=0-5 --wrap 'sleep 600'")
    until(lambda: login.do(f"squeue -h -j {number} -t R -o %i").split() == [f"{number}_0", f"{number}_1"])
    assert login.do(f"squeue -h -j {number} -t PD -o '%i %t %r'") == f"{number}_[2-5] PD Resources"
    login.do(f"scancel {number}_3")
    assert login.do(f"squeue -h -j {number} -t PD -o %i") == f"{number}_[2,4-5]"
    assert len(login.do("squeue -h -r --me -o '%F' | grep -c . ").split()) == 1
    login.do(f"scancel {number}")
    assert login.ended(number) == "CANCELLED"
    assert login.do("squeue -h --me") == ""
    assert login.run(f"scancel {number}").returncode == 0  # it is over


def test_of_a_throttled_array_so_many_run_at_once(login: Login) -> None:
    number = login.do("sbatch --parsable --array=0-2%1 --wrap 'sleep 600'")
    until(lambda: login.do(f"squeue -h -j {number} -t R -o %i") == f"{number}_0")
    assert login.do(f"squeue -h -j {number} -t PD -o '%i %r'") == f"{number}_[1-2%1] JobArrayTaskLimit"
    login.do(f"scancel {number}")


def test_jobs_follow_others_by_how_they_end(login: Login) -> None:
    first = login.do("sbatch --parsable -J twin --wrap 'sleep 5; exit 3'")
    kinds = [f"afternotok:{first}", f"afterany:{first}", "singleton"]
    others = [login.do(f"sbatch --parsable -J twin -d {kind} --wrap true") for kind in kinds]
    assert "afternotok" in login.do(f"squeue -h -j {others[0]} -o %E")
    assert login.ended(",".join(others)) == "COMPLETED"


def test_requeue_of_what_is_over_submits_it_again(login: Login) -> None:
    number = login.do("sbatch --parsable --wait --array=4 -o 'again-%A-%a' --wrap true")
    done = login.run(f"scontrol requeue {number}_4")
    again = done.stderr.split()[-1]
    assert login.ended(again) == "COMPLETED"
    assert (login.folder / f"again-{again}-4").exists()


def test_held_jobs_wait_for_their_release_and_limits_are_changed(login: Login) -> None:
    blocker = login.do("sbatch --parsable -G 2 --wrap 'sleep 600'")
    number = login.do("sbatch --parsable -G 2 --hold --comment=later --wrap true")
    assert login.do(f"squeue -h -j {number} -o '%i %T %R %l'") == f"{number} PENDING (JobHeldUser) UNLIMITED"
    login.do(f"scontrol update JobId={number} TimeLimit=1:00:00 JobName=again")
    shown = login.do(f"scontrol show job {number}")
    assert f"JobId={number} JobName=again\n" in shown
    assert "JobState=PENDING Reason=JobHeldUser" in shown
    assert "TimeLimit=01:00:00" in shown
    assert "Comment=later" in shown
    login.do(f"scontrol release {number}")
    assert "(Resources)" in login.do(f"squeue -h -j {number}")
    assert "no longer pending" in login.run(f"scontrol hold {blocker}").stderr
    login.do(f"scancel {blocker}")
    assert login.ended(number) == "COMPLETED"


def test_srun_shows_output_and_ends_with_the_exit_code(login: Login) -> None:
    done = login.run("srun -Q -G1 sh -c 'echo out; echo err >&2; exit 4'")
    assert (done.returncode, done.stdout) == (4, "out\n")
    assert "err\n" in done.stderr
    done = login.run("srun -Q -n 3 --label sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'")
    assert sorted(done.stdout.splitlines()) == ["0: 0 of 3", "1: 1 of 3", "2: 2 of 3"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_srun_cancels_its_job_on_ctrl_c_also_in_the_background_of_a_script(login: Login, number: int) -> None:
    line = "trap '' INT; exec srun -Q -J stopped sleep 600"  # as in the background
    process = subprocess.Popen(["bash", "-c", line], cwd=login.folder, env=login.env)
    until(lambda: login.do("squeue -h -n stopped -t R"))
    process.send_signal(number)
    assert process.wait(120) == 130
    until(lambda: not login.do("squeue -h -n stopped"))


def test_a_signal_comes_before_the_limit_and_the_limit_is_a_timeout(login: Login) -> None:
    trap = "trap 'echo warned; exit 0' USR1; while :; do sleep 0.1; done"
    login.script("warned.sh", f"#!/bin/bash\n{trap}\n")
    number = login.do("sbatch --parsable -t 10:00 --signal=B:USR1@598 -o warned.out warned.sh")
    assert login.ended(number) == "COMPLETED"
    assert (login.folder / "warned.out").read_text() == "warned\n"
    late = login.do("sbatch --parsable -t 0:02 --wrap 'sleep 600'")
    assert login.ended(late) == "TIMEOUT"
    assert login.do(f"sacct -X -n -P -o State,ExitCode -j {late}") == "TIMEOUT|0:15"


def test_jobs_submit_jobs(login: Login) -> None:
    login.script("outer.sh", "#!/bin/sh\nsbatch --wrap 'echo inner' -o inner.out\n")
    outer = login.do("sbatch --parsable -o outer.out outer.sh")
    assert login.ended(outer) == "COMPLETED"
    inner = (login.folder / "outer.out").read_text().split()[-1]
    assert login.ended(inner) == "COMPLETED"
    assert (login.folder / "inner.out").read_text() == "inner\n"


def test_partitions_are_types_and_sinfo_counts_their_nodes(login: Login) -> None:
    until(lambda: "idle" in login.do("sinfo -h -o '%P %D %t'"))
    assert login.do("sinfo -h -o '%P %D %G'").splitlines() == ["main* 1 gpu:cpu:2", "cpu 1 gpu:cpu:2"]
    assert login.do("sinfo -h -N -p cpu -o '%N %t'").startswith("cpu-0 ")
    assert "Gres=gpu:cpu:2" in login.do("scontrol show node cpu-0")
    assert "eunomia|" in login.do("sacctmgr -nP show assoc")
    assert "only show" in login.run("sacctmgr add user ann").stderr
    assert login.do("scontrol show hostnames 'a[1-2],b'").split() == ["a1", "a2", "b"]


def test_what_snakemake_and_submitit_and_nextflow_type_works(login: Login) -> None:
    """Calls as in snakemake-executor-plugin-slurm, submitit.slurm and nextflow's SlurmExecutor."""
    name = "3f1c0a52-9d5e-4d0f-9a55-2f8c7a2b6f11"
    number = login.do(
        f"sbatch --parsable --job-name {name} --output %j.log --export=ALL --comment rule_train -A lab -p cpu -t 60 "
        f"--mem 100 --ntasks=1 --cpus-per-task=1 -D {login.folder} --wrap='true' 2>/dev/null"
    )
    assert login.ended(number) == "COMPLETED"
    said = login.do(
        "sacct -X --parsable2 --clusters all --noheader --format=JobIdRaw,State --starttime 2020-01-01T00:00 "
        f"--endtime now --name {name} 2>/dev/null"
    )
    assert said == f"{number}|COMPLETED"
    login.script(
        "submission.sh",
        "#!/bin/bash\n#SBATCH --cpus-per-task=1\n#SBATCH --error=%A_%a_0_log.err\n#SBATCH --gpus-per-node=1\n"
        "#SBATCH --job-name=submitit\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=2\n#SBATCH --open-mode=append\n"
        "#SBATCH --output=%A_%a_0_log.out\n#SBATCH --signal=USR2@90\n#SBATCH --time=5\n#SBATCH --wckey=submitit\n"
        "#SBATCH --array=0-1\nexport SUBMITIT_EXECUTOR=slurm\n"
        "srun --unbuffered --output %A_%a_%t_log.out --error %A_%a_%t_log.err "
        "sh -c 'echo $SLURM_NTASKS $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_JOB_NUM_NODES'\n",
    )  # fmt: skip
    number = login.do("sbatch submission.sh").split()[-1]
    assert login.ended(number) == "COMPLETED"
    assert (login.folder / f"{number}_1_1_log.out").read_text() == "2 1 1 0 1\n"
    states = login.do(f"sacct -o JobID,State,NodeList --parsable2 -j {number}").splitlines()
    assert states[0] == "JobID|State|NodeList"
    assert f"{number}_0|COMPLETED|" in {line[: len(f"{number}_0|COMPLETED|")] for line in states}
    assert login.do("squeue --noheader -o '%i %t' -t all -u root,stranger1 | head -1").split()[1] in (
        "CD",
        "F",
        "CA",
        "TO",
    )


def test_squeue_and_sacct_write_json(login: Login) -> None:
    number = login.do("sbatch --parsable --wait --wrap true")
    (found,) = json.loads(login.do(f"sacct --json -j {number}"))["jobs"]
    assert (found["job_id"], found["job_state"]) == (int(number), ["COMPLETED"])
    assert json.loads(login.do("squeue --json"))["errors"] == []


def test_a_refusal_of_the_service_names_the_key_and_the_fix(login: Login) -> None:
    done = login.run("sbatch --gres=gpu:h100:1 --wrap true")
    assert done.returncode == 1
    assert "types is 'h100': no such type in this cluster; it has cpu" in done.stderr
    assert "sbatch" in login.run("EUNOMIA_URL=http://127.0.0.1:9 sbatch --wrap true").stderr


def test_files_of_others_are_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\n")
    done = CliRunner().invoke(app, ["slurm-shim", str(tmp_path / "bin")])
    assert done.exit_code == 2
    assert [one.name for one in (tmp_path / "bin").iterdir()] == ["squeue"]
    for more in (["--force"], []):  # what slurm-shim has written it may write again
        assert CliRunner().invoke(app, ["slurm-shim", str(tmp_path / "bin"), *more]).exit_code == 0
    text = (tmp_path / "bin" / "squeue").read_text()
    assert f"exec {sys.executable} -m eunomia.slurm_commands squeue" in text


@pytest.mark.parametrize("name", ["sbatch", "srun", "squeue", "scancel", "sacct", "sinfo", "scontrol", "sacctmgr"])
def test_each_command_explains_itself_without_a_service(tmp_path: Path, name: str) -> None:
    (command,) = [one for one in write_commands(tmp_path, force=False) if one.name == name]
    done = subprocess.run([command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: {name} ")
    assert max(map(len, done.stdout.splitlines())) <= 100


PAGE = Path(__file__).parents[2] / "docs" / "coming-from-slurm.md"
ROWS = re.findall(r"^\| `(?!JOB)((?:s|e)[^|]+)` \| (`eunomia .+`) \|$", PAGE.read_text(), re.MULTILINE)


def test_the_page_puts_all_commands_beside_ours() -> None:
    assert len(ROWS) >= 24
    assert {row[0].split()[0] for row in ROWS} == {
        "sbatch", "srun", "squeue", "scancel", "sacct", "sinfo", "scontrol", "sacctmgr",
    }  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), ROWS, ids=[row[0] for row in ROWS])
def test_both_commands_of_a_row_of_the_page_work(login: Login, theirs: str, ours: str) -> None:
    login.script("train.sh", "#!/bin/sh\necho trained\n")
    needs_waiting, needs_live = "hold" in theirs or "release" in theirs, "60" in theirs or "60" in ours
    made = []
    for shown in (theirs, *re.findall(r"`([^`]+)`", ours)):
        command = shown
        if needs_live and "60" in shown:
            words = "--parsable" + " -H" * needs_waiting
            wait = "true" if "logs" in shown else "sleep 600"
            made.append(login.do(f"sbatch {words} --wrap '{wait}'"))
            job_id = next(one["id"] for one in login.service.operator.get("/v1/jobs")["jobs"]
                          if one["id"].startswith(f"{made[-1]}-"))  # fmt: skip
            command = shown.replace("60-k3f9a", job_id).replace("60", made[-1])
        login.do(re.sub(r"^eunomia", f"{sys.executable} -m eunomia", command))
    for number in made:
        login.do(f"scancel {number}")
