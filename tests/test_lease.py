"""What a training script may rely on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.lease import CALLED_BACK, Lease

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("EUNOMIA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EUNOMIA_CHECKPOINT_DIR", str(tmp_path / "checkpoint"))


def checkpoints(lease: Lease) -> list[Path]:
    return sorted(lease.checkpoint_dir.iterdir())


def test_outside_eunomia_all_steps_are_done_and_the_process_ends_well():
    with Lease() as lease:
        assert list(lease.steps(5, start=2)) == [2, 3, 4]
        assert lease.total_steps == float("inf")


def test_the_steps_submitted_are_the_default_total(monkeypatch):
    monkeypatch.setenv("EUNOMIA_TOTAL_STEPS", "3.0")
    with Lease() as lease:
        assert list(lease.steps()) == [0, 1, 2]


def test_called_back_the_steps_end_early_and_the_process_says_so():
    done = []

    def train():
        with Lease() as lease:
            for step in lease.steps(100):
                done.append(step)
                if step == 3:
                    os.kill(os.getpid(), signal.SIGTERM)
            lease.save({"step": 4})

    with pytest.raises(SystemExit) as ended:
        train()
    assert done == [0, 1, 2, 3]
    assert ended.value.code == CALLED_BACK
    assert Lease().load({"step": 0}) == {"step": 4}


def test_called_back_during_the_last_step_it_is_finished_all_the_same():
    with Lease() as lease:
        for step in lease.steps(2):
            if step == 1:
                os.kill(os.getpid(), signal.SIGTERM)
    assert lease.called_back


def test_a_script_that_exits_with_0_after_being_called_back_is_not_taken_for_finished():
    def train():
        with Lease() as lease:
            for _ in lease.steps(100):
                os.kill(os.getpid(), signal.SIGTERM)
            sys.exit(0)

    with pytest.raises(SystemExit) as ended:
        train()
    assert ended.value.code == CALLED_BACK


def test_an_error_while_saving_is_not_hidden_by_the_call_back():
    def train():
        with Lease() as lease:
            for _ in lease.steps(100):
                os.kill(os.getpid(), signal.SIGTERM)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()


def test_a_script_without_steps_may_leave_by_itself():
    with pytest.raises(SystemExit) as ended, Lease() as lease:
        lease.leave()
    assert ended.value.code == CALLED_BACK


def test_the_handler_of_before_is_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with Lease():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("steps", [3, 1])
def test_a_script_that_has_done_all_its_steps_is_not_ended_by_a_call_back_that_comes_as_it_leaves(
    monkeypatch, tmp_path, steps
):
    monkeypatch.setenv("EUNOMIA_LEASE_FILE", str(tmp_path / "lease"))
    before = signal.getsignal(signal.SIGTERM)
    try:
        with Lease() as lease:
            for step, _ in enumerate(lease.steps(3), 1):
                if step == steps < 3:
                    break
        assert signal.getsignal(signal.SIGTERM) == (signal.SIG_IGN if steps == 3 else before)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_expired_lease_ends_the_steps_though_no_signal_comes(monkeypatch, tmp_path):
    (tmp_path / "lease.json").write_text(json.dumps({"end_s": time.monotonic() - 10}))
    monkeypatch.setenv("EUNOMIA_LEASE_FILE", str(tmp_path / "lease.json"))
    with pytest.raises(SystemExit), Lease() as lease:
        assert list(lease.steps(100)) == []


@pytest.mark.parametrize("content", ['{"end_s": null}', "", "[]", '{"end_s": "soon"}'[:5]])
def test_an_endless_or_unreadable_lease_stops_nothing(monkeypatch, tmp_path, content):
    (tmp_path / "lease.json").write_text(content)
    monkeypatch.setenv("EUNOMIA_LEASE_FILE", str(tmp_path / "lease.json"))
    with Lease() as lease:
        assert list(lease.steps(3)) == [0, 1, 2]


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_what_is_saved_is_loaded(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("checkpoint")
    Lease(folder).save(state)
    assert Lease(folder).load({}) == state


def test_the_newest_of_two_checkpoints_is_loaded_and_older_ones_are_removed():
    lease = Lease()
    for step in range(12):
        lease.save({"step": step})
    assert lease.load({}) == {"step": 11}
    assert len(checkpoints(lease)) == 2


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda whole: whole[: len(whole) // 2], id="cut short"),
        pytest.param(lambda whole: b"", id="empty"),
        pytest.param(lambda whole: whole.replace(b"2", b"7"), id="altered"),
        pytest.param(lambda whole: b"\xff\xfe" + whole, id="not text"),
    ],
)
def test_a_damaged_checkpoint_is_passed_over_aloud(capsys, damage):
    lease = Lease()
    lease.save({"step": 1})
    lease.save({"step": 2})
    newest = checkpoints(lease)[-1]
    newest.write_bytes(damage(newest.read_bytes()))
    assert lease.load({"step": 0}) == {"step": 1}
    assert f"{newest} is damaged" in capsys.readouterr().err


def test_with_no_whole_checkpoint_the_default_is_loaded(capsys):
    lease = Lease()
    lease.save({"step": 1})
    checkpoints(lease)[0].write_text("{}")
    assert lease.load({"step": 0}) == {"step": 0}
    assert "is damaged" in capsys.readouterr().err


def test_after_damage_the_next_save_is_the_newest(capsys):
    lease = Lease()
    for step in (1, 2):
        lease.save({"step": step})
    checkpoints(lease)[-1].write_text("")
    lease.save({"step": 3})
    assert lease.load({}) == {"step": 3}


def test_a_state_that_is_not_json_changes_nothing_on_disk():
    lease = Lease()
    lease.save({"step": 1})
    with pytest.raises(TypeError):
        lease.save({"step": 2, "weights": object()})
    assert lease.load({}) == {"step": 1}
    assert len(checkpoints(lease)) == 1


def test_a_save_reports_its_step_as_safe(monkeypatch, tmp_path):
    monkeypatch.setenv("EUNOMIA_PROGRESS_FILE", str(tmp_path / "progress.json"))
    lease = Lease()
    lease.save({"step": 7})
    assert json.loads((tmp_path / "progress.json").read_text()) == {"step": 7}
    lease.save({"batch": 30}, step=7.5)
    assert json.loads((tmp_path / "progress.json").read_text()) == {"step": 7.5}


def test_it_needs_nothing_but_the_standard_library():
    script = "import sys; import eunomia.lease; print([m for m in sys.modules if m.startswith(('numpy', 'eunomia.'))])"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[1] / "src")},
    )
    assert ran.stdout.strip() == "['eunomia.lease']"


def test_opening_a_lease_says_that_the_script_can_save_and_keeps_an_earlier_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "progress.json"
    monkeypatch.setenv("EUNOMIA_PROGRESS_FILE", str(file))
    monkeypatch.setenv("RANK", "1")
    with Lease(tmp_path):
        assert not file.exists()  # the first process of a gang says it for all
    monkeypatch.delenv("RANK")
    with Lease(tmp_path):
        assert json.loads(file.read_text()) == {"step": 0}
    file.write_text('{"step": 5}')
    with Lease(tmp_path):
        assert json.loads(file.read_text()) == {"step": 5}


def test_a_lease_opens_where_the_first_report_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EUNOMIA_PROGRESS_FILE", str(tmp_path / "gone" / "progress.json"))
    with Lease(tmp_path) as lease:
        assert list(lease.steps(2)) == [0, 1]
