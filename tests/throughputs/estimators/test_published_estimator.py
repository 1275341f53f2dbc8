"""Gavel's estimator: completion, matching, and the invariants of its description."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.throughputs.estimators.completion import (
    SOLVERS,
    als,
    complete,
    shrink,
    soft_impute,
)
from eunomia.throughputs.estimators.matching import (
    Fingerprint,
    GrowingMatches,
    ReferenceSet,
    cosine_distances,
    draw_profile,
    draw_references,
    matched_rates,
    take_fingerprint,
)
from eunomia.throughputs.estimators.pair_table import PairTable
from eunomia.throughputs.measured_table import Measurements


def low_rank(n: int, rank: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))


def small_table(jobs: int = 6, types: int = 2, seed: int = 0) -> PairTable:
    rng = np.random.default_rng(seed)
    names = tuple(f"model-{m}" for m in range(jobs))
    alone = rng.uniform(1, 9, (jobs, types))
    kept = rng.uniform(0.2, 1.0, (jobs, types, jobs))
    return PairTable("a table", ("k80", "v100")[:types], names, alone, kept)


def als_by_loops(values: np.ndarray, known: np.ndarray, rng: np.random.Generator, sweeps: int) -> np.ndarray:
    """An oracle: the published algorithm, row by row with LAPACK."""
    rows, columns = values.shape
    k = min(10, min(rows, columns) - 1)
    u, v = rng.normal(size=(rows, k)), rng.normal(size=(columns, k))
    for _ in range(sweeps):
        for i in range(rows):
            w = np.diag(known[i].astype(float))
            u[i] = np.linalg.solve(v.T @ w @ v + 1e-2 * np.eye(k), v.T @ w @ values[i])
        for j in range(columns):
            w = np.diag(known[:, j].astype(float))
            v[j] = np.linalg.solve(u.T @ w @ u + 1e-2 * np.eye(k), u.T @ w @ values[:, j])
    return u @ v.T


def test_alternating_least_squares_is_the_published_algorithm() -> None:
    rng = np.random.default_rng(4)
    values, known = rng.uniform(0, 1, (7, 12)), rng.random((7, 12)) < 0.8
    found = als(np.where(known, values, 0), known, np.random.default_rng(9), most_sweeps=5, least_sweeps=5)
    assert np.allclose(found, als_by_loops(np.where(known, values, 0), known, np.random.default_rng(9), 5), atol=1e-8)


def test_shrinking_is_that_of_the_singular_value_decomposition() -> None:
    matrix = low_rank(9, 5, 1)[:, :6]
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    assert np.allclose(shrink(matrix, 0.7), u @ np.diag(np.maximum(s - 0.7, 0)) @ vt, atol=1e-9)


@pytest.mark.slow
def test_an_exact_matrix_of_rank_two_is_recovered_from_half_of_its_entries() -> None:
    truth, known = low_rank(40, 2, 3), np.random.default_rng(5).random((40, 40)) < 0.5
    largest = np.linalg.svd(np.where(known, truth, 0), compute_uv=False)[0]
    found = soft_impute(np.where(known, truth, 0), known, mu=1e-4 * largest, tolerance=1e-6)
    assert np.linalg.norm(found - truth) / np.linalg.norm(truth) < 1e-3


def noise_bound(rows: int, columns: int, share: float, delta: float) -> float:
    """4 √((2 + p) min(n1, n2) / p) δ + 2 δ, the bound on the error of a matrix completed from noisy entries.

    E. Candès and Y. Plan, "Matrix Completion With Noise", Proc. IEEE 98(6), 2010; p the share of known entries, δ the
    norm of their noise.
    """
    return float(4 * np.sqrt((2 + share) * min(rows, columns) / share) * delta + 2 * delta)


@pytest.mark.parametrize("share", [0.4, 0.6])
def test_noise_stays_within_the_bound_and_near_the_oracle(share: float) -> None:
    rng = np.random.default_rng(11)
    n, rank, sigma = 40, 2, 0.1
    truth, known = low_rank(n, rank, 7), rng.random((n, n)) < share
    noise = rng.normal(0, sigma, (n, n))
    found = soft_impute(np.where(known, truth + noise, 0), known, mu=float(np.sqrt(2 * n * share)) * sigma)
    error = np.linalg.norm(found - truth)
    assert error <= noise_bound(n, n, share, float(np.linalg.norm(noise[known])))
    assert error / n <= 3 * np.sqrt(rank * (2 * n - rank) / known.sum()) * sigma


def test_the_bound_has_its_published_values() -> None:
    assert noise_bound(100, 100, 0.3, 1.0) == pytest.approx(112.75, abs=0.01)
    assert noise_bound(26, 26, 0.5, 1.0) == pytest.approx(47.61, abs=0.01)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_known_entries_stay_and_the_rest_is_between_0_and_1_and_repeats_by_seed(solver: str) -> None:
    rng = np.random.default_rng(2)
    values, known = rng.uniform(0, 1, (8, 14)), rng.random((8, 14)) < 0.7
    found = complete(values, known, solver, np.random.default_rng(1))
    assert np.array_equal(found[known], values[known])
    assert (found >= 0).all() and (found <= 1).all()
    assert found.tobytes() == complete(values, known, solver, np.random.default_rng(1)).tobytes()


def test_without_gaps_no_solver_is_called() -> None:
    values = np.full((2, 3), 0.5)
    assert np.array_equal(
        complete(values, np.ones((2, 3), dtype=bool), "no such solver", np.random.default_rng()), values
    )


@pytest.mark.parametrize("solve", [als, soft_impute])
def test_a_row_of_rank_one_is_recovered_from_one_column(solve) -> None:  # type: ignore[no-untyped-def]
    left, right = np.linspace(0.5, 1.0, 6), np.array([0.9, *np.linspace(0.1, 0.3, 7)])  # the largest column is known:
    # the least nuclear norm recovers a row only from a column that is large beside the rest
    truth = np.outer(left, right)
    known = np.ones((6, 8), dtype=bool)
    known[-1, 1:] = False
    options = {"factors": 1, "mu": 1e-9} if solve is als else {"mu": 1e-6, "tolerance": 1e-9, "most_rounds": 5000}
    found = solve(np.where(known, truth, 0), known, np.random.default_rng(0), **options)
    assert np.abs(found[-1] - truth[-1]).max() < 1e-3


def test_a_reference_that_is_profiled_whole_matches_itself() -> None:
    table = small_table()
    refs = draw_references(table, 4, np.random.default_rng(0))
    everything = draw_profile(2, 4, 1.0, np.random.default_rng(0))
    for place, job in enumerate(refs.jobs.tolist()):
        seen = take_fingerprint(table, job, refs, everything)
        match, row = refs.match(seen, "als", np.random.default_rng(0))
        assert match == place
        assert cosine_distances(row, refs.rows)[place] == pytest.approx(0, abs=1e-12)


def test_a_fingerprint_that_grows_ends_at_the_match_of_the_whole_one() -> None:
    table = small_table()
    refs = draw_references(table, 3, np.random.default_rng(0))
    new = int(np.setdiff1d(np.arange(6), refs.jobs)[0])
    growing = GrowingMatches(2, 6, refs, "als", 0)
    for w in range(2):
        for k in refs.jobs.tolist():
            growing.observe(new, w, k, float(table.kept[new, w, k]))
    whole = take_fingerprint(table, new, refs, np.ones((2, 3), dtype=bool))
    match, _ = refs.match(whole, "als", np.random.default_rng(0))
    assert (growing.estimate()[new][:, refs.jobs] == refs.kept[match]).all()
    assert (growing.estimate()[refs.jobs][:, :, refs.jobs] == refs.kept).all()


def test_both_indexings_agree_only_where_every_job_is_a_reference() -> None:
    table = small_table()
    asked = np.ones((2, 6), dtype=bool)
    every = ReferenceSet(np.arange(6), table.kept)
    assert np.array_equal(
        take_fingerprint(table, 2, every, asked).kept, take_fingerprint(table, 2, every, asked, legacy=True).kept
    )
    some = ReferenceSet(np.array([1, 3, 5]), table.kept[np.ix_([1, 3, 5], [0, 1], [1, 3, 5])])
    right = take_fingerprint(table, 2, some, asked[:, :3]).kept
    legacy = take_fingerprint(table, 2, some, asked[:, :3], legacy=True).kept
    assert np.array_equal(right[0], table.kept[2, 0, [1, 3, 5]])
    assert np.array_equal(legacy.ravel(), table.kept[2].ravel()[:6])  # the first columns, whatever they are


def test_the_members_of_a_pair_are_swapped_with_its_jobs() -> None:
    table = small_table()
    refs = ReferenceSet(np.arange(6), table.kept)
    both = matched_rates(refs, [1, 4])
    x, y = both[0, :, 1], both[1, :, 0]
    assert np.array_equal(x, table.kept[1, :, 4]) and np.array_equal(y, table.kept[4, :, 1])
    swapped = matched_rates(refs, [4, 1])
    assert np.array_equal(y, swapped[0, :, 1]) and np.array_equal(x, swapped[1, :, 0])


def test_the_order_of_the_types_does_not_change_a_match() -> None:
    table = small_table(seed=3)
    kept, known = table.kept[0][:, 1:5], np.random.default_rng(1).random((2, 4)) < 0.9
    refs = ReferenceSet(np.arange(1, 5), table.kept[1:5][:, :, 1:5])
    turned = ReferenceSet(refs.jobs, np.ascontiguousarray(refs.kept[:, ::-1]))
    first = refs.match(Fingerprint(kept, known), "soft_impute", np.random.default_rng(0))[0]
    assert (
        turned.match(Fingerprint(kept[::-1].copy(), known[::-1].copy()), "soft_impute", np.random.default_rng(0))[0]
        == first
    )


def test_a_fingerprint_of_zeros_takes_a_reference_by_seed() -> None:
    refs = ReferenceSet(np.arange(3), small_table().kept[:3][:, :, :3])
    nothing = Fingerprint(np.zeros((2, 3)), np.ones((2, 3), dtype=bool))
    matches = {refs.match(nothing, "als", np.random.default_rng(seed))[0] for seed in range(20)}
    assert len(matches) > 1
    assert (
        refs.match(nothing, "als", np.random.default_rng(5))[0]
        == refs.match(nothing, "als", np.random.default_rng(5))[0]
    )


def test_more_references_than_jobs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 to 6"):
        draw_references(small_table(), 7, np.random.default_rng(0))


def measurements(types: tuple[str, ...] = ("k80", "v100"), **changed: float) -> Measurements:
    jobs = ("A (batch size 1)", "A (batch size 2)", "B", "C", "D")
    alone = {(type, job, 1): 5.0 * (1 + w) + m for w, type in enumerate(types) for m, job in enumerate(jobs)}
    alone |= {(*key.split("/"), 1): rate for key, rate in changed.items()}
    pairs = {(type, a, b, 1): 0.5 * alone[type, a, 1] for type in types for a in jobs for b in jobs}
    return Measurements("table.json", alone, pairs)


def test_a_table_with_one_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match="two accelerator types or more"):
        PairTable.of(measurements(types=("v100",)))


def test_a_job_type_that_cannot_run_on_a_type_is_no_reference() -> None:
    table = PairTable.of(measurements(**{"k80/B": 0.0}))
    assert "B" not in table.job_types
    with pytest.raises(InvalidInput, match="run on every type"):
        draw_references(table, 5, np.random.default_rng(0))


def test_a_rate_in_another_unit_is_named_with_its_factor() -> None:
    with pytest.raises(InvalidInput, match=r"steps_per_s of C.*factor of 948 off .* another unit"):
        PairTable.of(measurements(**{"v100/C": 13000.0}))
