"""A file that a command writes appears whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pytest

from eunomia.inputs.atomic_write import check_place, replacing, write_output, write_whole
from eunomia.inputs.problems import InvalidInput


def test_a_file_is_replaced_in_one_step_and_its_folder_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    write_whole(path, b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_a_writer_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def fails(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyError("no such column")

    with pytest.raises(KeyError):
        write_output(path, fails)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_to_is_named_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written here") as caught:
        write_output(tmp_path / "absent" / "a.csv", b"", column="--out")
    assert caught.value.problems[0].column == "--out"


@pytest.mark.parametrize(
    ("name", "rule"), [("a.txt", "must end in"), ("absent/a.csv", "no such folder"), ("here.csv", "it exists")]
)
def test_a_wrong_name_is_refused_before_anything_is_computed(tmp_path: Path, name: str, rule: str) -> None:
    (tmp_path / "here.csv").write_bytes(b"")
    with pytest.raises(InvalidInput, match=rule):
        check_place(tmp_path / name, force=False, endings=(".csv",))
    check_place(tmp_path / "here.csv", force=True, endings=(".csv",))
