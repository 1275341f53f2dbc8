"""Any valid trace that is written natively reads back equal, in every container."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.bounds import LEAST, MOST_DEMAND, MOST_WEIGHT
from eunomia.traces import Trace, read, write_native
from eunomia.traces.table import COLUMNS, trace_of

ENDINGS = [".csv", ".csv.gz", ".parquet"]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
ID = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6)
POSITIVE = st.floats(LEAST, MOST_WEIGHT)
SECONDS = st.floats(0, MOST_DEMAND)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Small traces in which every column may say something strange but valid."""
    jobs = draw(st.integers(1, 6))

    def column(cell: st.SearchStrategy[Any]) -> Any:
        return tuple(draw(st.lists(cell, min_size=jobs, max_size=jobs)))

    by_steps = np.array(column(st.booleans()))
    work = np.array(column(POSITIVE))
    submitted_s = np.sort(np.array(column(SECONDS)))
    return trace_of(
        "drawn",
        draw(st.lists(ID, min_size=jobs, max_size=jobs, unique=True)),
        submitted_s,
        np.array(column(st.integers(1, 1024))),
        job_type=column(WORD) if draw(st.booleans()) else None,
        total_steps=np.where(by_steps, work, nan),
        duration_s=np.where(by_steps, nan, work),
        tenant=column(TEXT),
        app=column(TEXT),
        weight=np.array(column(POSITIVE)),
        deadline_s=np.where(column(st.booleans()), inf, np.maximum(submitted_s, np.array(column(SECONDS)))),
        cpus=np.array(column(SECONDS)),
        memory_gib=np.array(column(SECONDS)),
        status=column(st.sampled_from(["", "finished", "failed", "cancelled"])),
        retries=np.array(column(st.integers(0, 9))),
        checkpoint_dir=column(TEXT),
        interruptible=np.array(column(st.booleans())),
        command=column(st.lists(WORD, max_size=3).map(tuple)),
    )


def differing(one: Trace, other: Trace) -> list[str]:
    """Return the columns in which two traces differ; the line in the file is none of them."""
    names = [name for name in COLUMNS if name != "row"]
    return [name for name in names if not _same(getattr(one, name), getattr(other, name))]


def _same(one: Any, other: Any) -> bool:
    return np.array_equal(one, other, equal_nan=True) if isinstance(one, np.ndarray) else bool(one == other)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_written_trace_reads_back_equal(ending: str, folder: Path) -> None:
    @given(traces())
    def reads_back(trace: Trace) -> None:
        path = folder / f"jobs{ending}"
        write_native(trace, path)
        assert differing(trace, read(path)) == []

    reads_back()


@given(trace=traces())
def test_the_same_trace_is_written_as_the_same_bytes(trace: Trace, folder: Path) -> None:
    for ending in ENDINGS:
        once, again = folder / f"once{ending}", folder / f"again{ending}"
        write_native(trace, once)
        write_native(trace, again)
        assert once.read_bytes() == again.read_bytes()


def test_only_columns_that_say_something_are_written(tmp_path: Path) -> None:
    trace = trace_of(
        "two jobs", ["001", "2"], np.array([0.0, 1.5]), np.array([1, 4]), duration_s=np.array([10.0, 0.25])
    )
    write_native(trace, tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_text() == (
        "job_id,submitted_s,scale_factor,job_type,duration_s\n001,0,1,,10\n2,1.5,4,,0.25\n"
    )
    assert not list(tmp_path.glob("*.part"))
