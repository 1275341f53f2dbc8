"""What sbatch's options become: a table of words and of what the job document has."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from eunomia.slurm_commands.command_line import Given, WrongUsage, read_words
from eunomia.slurm_commands.job_runner import filled, slurm_variables
from eunomia.slurm_commands.submission import Batch, batch_options, documents, elements_of, limit_s, read_batch
from eunomia.slurm_commands.tables import SACCT, SALLOC, SBATCH, SCANCEL, SCONTROL, SINFO, SQUEUE, SRUN

SCRIPT = "#!/bin/sh\ntrue\n"


def given(*words: str) -> Given:
    return read_words("sbatch", SBATCH, words, intermixed=False)


def made(*words: str) -> dict[str, Any]:
    """The one document of these options, without what all have."""
    (document,), _ = documents(Batch(given(*words), SCRIPT), lambda number: [f"{number}-abc"], "/home/ann")
    return document


def settings(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made(*words)["command"][3])
    return found


DOCUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("-J train", {"name": "train"}),
    ("--job-name=a/b", {"name": "a_b", "labels": {"slurm.name": "a/b"}}),
    ("-t 90", {"max_run_s": 5400.0}),
    ("--time=1-12:30", {"max_run_s": 131_400.0}),
    ("-t 2-00:00:10", {"max_run_s": 172_810.0}),
    ("--gres=gpu:a100:2", {"accelerators": 2, "types": ["a100"]}),
    ("--gres gpu:3", {"accelerators": 3}),
    ("--gres=gpu", {"accelerators": 1}),
    ("-G 4", {"accelerators": 4}),
    ("--gpus=v100:8", {"accelerators": 8, "types": ["v100"]}),
    ("-N 2 --gpus-per-node=a100:4", {"accelerators": 8, "types": ["a100"]}),
    ("-N2 --gres=gpu:4", {"accelerators": 8}),
    ("-n 4 --gpus-per-task=1", {"accelerators": 4}),
    ("-G1 -p a100", {"accelerators": 1, "types": ["a100"]}),
    ("-G1 -p a100,v100", {"types": ["a100", "v100"]}),
    ("-G1 -p main -C a100|v100", {"types": ["a100", "v100"]}),
    ("-c 8 -n 2", {"cpus": 16.0}),
    ("--mem=16G", {"memory_gib": 16.0}),
    ("--mem 512", {"memory_gib": 0.5}),
    ("-N 2 -G 2 --mem=16G", {"memory_gib": 32.0}),
    ("--mem-per-cpu=2G -c 4", {"memory_gib": 8.0}),
    ("-G 2 --mem-per-gpu=10G", {"memory_gib": 20.0}),
    ("-d afterok:1:2", {"after": ["1-abc", "2-abc"]}),
    ("--dependency=afterany:3,singleton", {"after": ["afterany:3-abc", "singleton"]}),
    ("-d afternotok:7", {"after": ["afternotok:7-abc"]}),
    ("-a 0-99", {"array": "0-99"}),
    ("--array=0-99%4", {"array": "0-99%4"}),
    ("-a 5", {"array": "5-5"}),
    ("-D sub", {"cwd": "/home/ann/sub"}),
    ("-D /data", {"cwd": "/data"}),
    ("--requeue", {"interruptible": True}),
    ("--no-requeue", {"interruptible": False}),
    ("--nice=100", {"priority": -100}),
    ("--nice", {"priority": -100}),
    ("--priority=5", {"priority": 5}),
    ("--deadline=now+2h", {"deadline_s": 7200.0}),
    ("--mail-type=END,FAIL --mail-user=ann@lab.org", {"notify": ["mail@ended", "mail@failed"]}),
    ("--export=NONE,A=1", {"env": {"PATH": "/bin", "A": "1"}}),
    ("--export=ALL,A=1", {"env": {"PATH": "/bin", "HOME": "/home/ann", "A": "1"}}),
    ("--export=HOME", {"env": {"HOME": "/home/ann"}}),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small environment with what does not travel in it."""
    kept = {"PATH": "/bin", "HOME": "/home/ann", "EUNOMIA_URL": "http://127.0.0.1:1", "SLURM_JOB_ID": "7"}
    monkeypatch.setattr("os.environ", kept)


@pytest.mark.parametrize(("words", "expected"), DOCUMENTS, ids=[words for words, _ in DOCUMENTS])
def test_an_option_is_in_the_document(words: str, expected: dict[str, Any]) -> None:
    found = made(*words.split())
    found["env"].pop("PYTEST_CURRENT_TEST", None)
    assert {key: found.get(key) for key in expected} == expected


def test_the_service_takes_the_documents() -> None:
    from eunomia.service.job_document import JobDocument, parse_job

    for words, _ in DOCUMENTS:
        document = made(*words.split())
        if set(document) <= set(JobDocument.model_fields) and "%" not in document.get("array", ""):
            parse_job(document)


def test_indices_with_gaps_are_documents_of_their_own_that_know_the_whole_array() -> None:
    pieces, _ = documents(Batch(given("--array=1,3,7-9", "-o", "o-%A_%3a"), SCRIPT), lambda number: [], "/home/ann")
    assert [one["array"] for one in pieces] == ["1-1", "3-3", "7-9"]
    assert len({one["labels"]["slurm.array"] for one in pieces}) == 1
    last = json.loads(pieces[-1]["command"][3])
    assert last["array"] == {"from": 7, "before": 2, "count": 5, "min": 1, "max": 9, "step": 1}
    of_job = {"EUNOMIA_JOB_ID": "64-xyz", "EUNOMIA_ARRAY_INDEX": "9", "EUNOMIA_EPOCH": "1"}
    variables = slurm_variables(last, of_job)
    wanted = {
        "SLURM_JOB_ID": "64",
        "SLURM_ARRAY_JOB_ID": "60",
        "SLURM_ARRAY_TASK_ID": "9",
        "SLURM_ARRAY_TASK_COUNT": "5",
    }
    assert {name: variables[name] for name in wanted} == wanted
    assert filled(last["output"], variables) == "o-60_009"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [("0-10:5", ((0, 0), (5, 5), (10, 10))), ("3,1,2", ((1, 3),)), ("0-1,1-2", ((0, 2),)), ("[4-5]", ((4, 5),))],
)
def test_indices_are_sorted_and_joined(text: str, pieces: tuple[tuple[int, int], ...]) -> None:
    assert elements_of(text).pieces == pieces


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", 300.0), ("5:30", 330.0), ("1:00:00", 3600.0), ("1-0", 86_400.0), ("2-12:30", 217_800.0),
     ("UNLIMITED", None), ("0", None)],
)  # fmt: skip
def test_times_are_read_as_slurm_reads_them(text: str, expected: float | None) -> None:
    assert limit_s(text) == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--foo x", "unrecognized option '--foo'"),
        ("--tiem=3", "did you mean '--time'?"),
        ("-t soon", "Invalid --time"),
        ("-n x", "Invalid numeric value"),
        ("--gres=fpga:1", "there are gpu:N"),
        ("--gres=gpu:a100:1,gpu:v100:1", "accelerators of one type"),
        ("-G 4 --gres=gpu:2", "give one"),
        ("--mem=lots", "Invalid --mem"),
        ("-a 5-1", "Invalid job array"),
        ("-a 1,3%2", "write it as A-B%2"),
        ("-a 0-99999999", "Invalid job array"),
        ("-d after:3", "none of afterok:ID"),
        ("-d afterok:1?afterok:2", "not known here"),
        ("--begin=tomorrow", "submit it with --hold"),
        ("--signal=FOO@1", "Invalid signal"),
        ("--parsable=1", "doesn't allow an argument"),
        ("--time", "requires an argument"),
        ("-Y", "invalid option"),
    ],
)
def test_a_wrong_word_is_an_error_that_says_how_to_write_it(words: str, said: str) -> None:
    with pytest.raises(WrongUsage) as error:
        made(*words.split())
    assert said in str(error.value)


def test_options_that_mean_nothing_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    given("-A", "lab", "--qos=long", "-A", "lab", "--exclusive", "x").say_ignored()
    assert capsys.readouterr().err == "sbatch: --account, --qos, --exclusive: not known here, ignored\n"


def test_lines_of_the_script_count_until_its_first_command_and_behind_the_command_line() -> None:
    script = '#!/bin/bash\n#SBATCH -J "my job" -t 10 # ten\n## no\n#SBATCH\t--gres=gpu:2\n\nset -e\n#SBATCH -t 99\n'
    assert batch_options(script) == ["-J", "my job", "-t", "10", "--gres=gpu:2"]
    batch = read_batch(given("-t", "20"), SBATCH, lambda: script)
    assert (batch.given.get("time"), batch.given.get("job-name"), batch.given.get("gres")) == ("20", "my job", "gpu:2")


@pytest.mark.parametrize(
    ("script", "said"), [("echo\n", "does not look like a batch script"), ("#!/bin/sh\r\nx\r\n", "DOS line breaks")]
)
def test_a_text_that_is_no_script_is_refused(script: str, said: str) -> None:
    with pytest.raises(WrongUsage, match=said):
        read_batch(given(), SBATCH, lambda: script)


def test_a_long_script_travels_in_parts() -> None:
    script = "#!/bin/sh\n" + "echo line\n" * 2000
    (document,), _ = documents(Batch(given(), script, ("a b",)), lambda number: [], "/")
    parts = json.loads(document["command"][3])["parts"]
    assert "".join(document["command"][4 : 4 + parts]) == script
    assert document["command"][4 + parts :] == ["a b"]
    assert max(map(len, document["command"])) <= 4096


def test_a_signal_before_the_limit_reaches_the_runner() -> None:
    assert settings("-t", "10", "--signal=B:USR1@90")["signal"] == {
        "script": True, "number": int(signal.SIGUSR1), "before_s": 90,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("%x-%j.out", "a_b-60.out"),
        ("%5j", "00060"),
        ("100%%", "100%"),
        ("%q", "%q"),
        ("\\\\%j", "%j"),
        ("%u.%N", "ann.n1"),
    ],
)
def test_patterns_of_files_are_filled(pattern: str, name: str) -> None:
    variables = {"SLURM_JOB_ID": "60", "SLURM_JOB_NAME": "a/b", "SLURM_JOB_USER": "ann", "SLURMD_NODENAME": "n1"}
    assert filled(pattern, variables) == name


@pytest.mark.parametrize("table", [SBATCH, SRUN, SALLOC, SQUEUE, SCANCEL, SACCT, SINFO, SCONTROL])
def test_no_name_stands_twice_in_a_table(table: Any) -> None:
    names = [one.long for one in table] + [one.short for one in table if one.short]
    assert len(names) == len(set(names))
