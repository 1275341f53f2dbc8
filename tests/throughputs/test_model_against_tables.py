"""How far the analytic model is from measured tables: no further than its page says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tools.throughput_model.calibrate import fit_memory, fit_steps, non_negative_least_squares
from tools.throughput_model.compare import compare, summary

from eunomia.throughputs.job_type_facts import job_types

BOUNDS = {  # median, p90: rounded up from docs/throughputs.md
    ("gavel", "one accelerator"): (1.1, 1.6),
    ("gavel", "2 to 8, consolidated"): (1.3, 1.9),
    ("gavel", "2 to 8, one a node"): (1.2, 1.4),
    ("pollux", "imagenet on T4: rate"): (1.3, 1.6),
    ("elasticflow", "resnet50 on A100: speed-up over 1, 2 to 64"): (1.1, 1.2),
    ("zeus", "squad/bert_base_uncased: speed relative to V100"): (1.2, 1.2),
}


def test_the_model_is_as_near_to_the_tables_as_its_page_says(reference):
    found = {(each.table, each.what): (each.median, each.p90) for each in compare(reference)}
    far = {key: found[key] for key, bound in BOUNDS.items() if found[key][0] > bound[0] or found[key][1] > bound[1]}
    assert not far


def test_the_fitted_facts_are_those_that_fitting_finds(reference):
    for fit in fit_steps(reference):
        job = next(job for job in job_types().values() if job.family == fit.family)
        stated = {name: getattr(job, name) for name in fit.facts}
        assert stated == pytest.approx(fit.facts, rel=0.01)


def test_the_memory_of_the_job_types_predicts_which_pairs_of_gavels_run(reference):
    _, predicted = fit_memory(reference, steps=300)
    assert predicted > 0.95


def test_a_row_that_only_one_side_can_run_is_counted_and_has_no_ratio():
    each = summary("t", "w", [(2.0, 1.0), (1.0, 2.0), (0.0, 3.0), (0.0, 0.0)])
    assert (each.rows, each.mismatched, each.median, each.worst) == (4, 1, 2.0, 2.0)


NUMBERS = st.integers(0, 1000).map(lambda n: n / 100)  # measured times, not denormals


@given(matrix=arrays(float, (6, 3), elements=NUMBERS), x=arrays(float, 3, elements=NUMBERS))
def test_non_negative_least_squares_finds_a_point_as_good_as_the_one_that_made_the_data(matrix, x):
    found = non_negative_least_squares(matrix, matrix @ x)
    assert (found >= 0).all()
    assert np.linalg.norm(matrix @ found - matrix @ x) <= 1e-6 * (1 + np.linalg.norm(matrix @ x))
