"""Shapes and learning curves come as columns, and a job is read once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eunomia.core.job_shapes import JobShapes
from eunomia.model.curves import Curve
from eunomia.model.job import Job
from eunomia.model.job_table import SubmittedJobs

JOBS = st.lists(
    st.tuples(
        st.sampled_from(["text", "image"]),
        st.sampled_from([1, 4]),
        st.lists(st.sampled_from([2, 8, 16]), max_size=3, unique=True),
        st.none() | st.just(Curve(2.0, 1.0, 0.5)),
    ),
    min_size=1,
    max_size=12,
)


@given(JOBS, st.integers(0, 12), st.randoms(use_true_random=False))
def test_columns_hold_what_each_job_says_whenever_they_are_asked_for(drawn, read_after: int, rng) -> None:  # type: ignore[no-untyped-def]
    jobs, columns = SubmittedJobs(), None
    for m, (job_type, size, others, loss) in enumerate(drawn):
        columns = columns or JobShapes(jobs)
        if m == read_after:
            columns.groups_of(np.arange(m))
        jobs.append(
            Job(
                job_id=str(m),
                sequence=m,
                total_steps=1.0,
                job_type=job_type,
                scale_factor=size,
                other_shapes=tuple(others),
                loss=loss,
            )
        )
    assert columns is not None
    rows = np.array(rng.sample(range(len(jobs)), rng.randint(1, len(jobs))))
    asked = [jobs[row] for row in rows.tolist()]
    most = max(len(job.shapes) for job in asked)
    assert columns.sizes_of(rows).tolist() == [[*job.shapes, *[0] * (most - len(job.shapes))] for job in asked]
    assert columns.counts_of(rows).tolist() == [len(job.shapes) for job in asked]
    last = columns.counts_of(rows) - 1
    assert columns.size_in(rows, last).tolist() == [job.shapes[-1] for job in asked]
    assert columns.curves_of(rows).tolist() == [list(job.loss or Curve()) for job in asked]
    groups = columns.groups_of(rows).tolist()
    alike = {(job.job_type, job.shapes) for job in asked}
    assert len(set(groups)) == len(alike)
