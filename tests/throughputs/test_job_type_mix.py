"""Job types for traces that name none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.throughputs import load
from eunomia.throughputs.job_mix import assign, describe, mix_of
from eunomia.throughputs.job_type_facts import gavel_job_types, job_types

K80 = load("catalogue", ["k80"])
DISTRIBUTED = ("ResNet", "Transformer", "LM")


@given(sizes=st.lists(st.sampled_from([1, 2, 4, 8, 16]), max_size=50), seed=st.integers(0, 2**32 - 1))
def test_nothing_is_assigned_that_no_accelerator_type_can_run(sizes, seed):
    for mix in ("mix:default", "mix:vision", "mix:language"):
        names = assign(mix, np.array(sizes, dtype=int), np.random.default_rng(seed), K80)
        assert len(names) == len(sizes)
        assert all(K80.solo_throughput(name, n).max() > 0 for name, n in zip(names, sizes, strict=True))


@given(seed=st.integers(0, 2**32 - 1))
def test_gangs_of_the_default_mix_draw_from_gavels_distributed_families_only(seed):
    names = assign("mix:default", np.array([2, 4, 8] * 20), np.random.default_rng(seed), K80)
    assert all(name.startswith(DISTRIBUTED) for name in names)


def test_the_same_seed_gives_the_same_job_types_and_another_gives_others():
    sizes = np.ones(40, dtype=int)
    first, again, other = (assign("mix:default", sizes, np.random.default_rng(seed), K80) for seed in (1, 1, 2))
    assert first == again != other


def test_a_jobs_draw_does_not_depend_on_the_sizes_of_others():
    draws = [assign("mix:default", np.array([n, 1]), np.random.default_rng(5), K80)[1] for n in (1, 2, 8)]
    assert len(set(draws)) == 1


def test_the_default_mix_draws_the_26_job_types_of_gavel_evenly():
    names = assign("mix:default", np.ones(26_000, dtype=int), np.random.default_rng(0), load("uniform", ["x"]))
    counts = {name: names.count(name) for name in gavel_job_types()}
    assert sum(counts.values()) == 26_000
    assert min(counts.values()) > 850


def test_a_given_mix_draws_by_its_weights():
    mix = {"A3C": 3, "CycleGAN": 1.0}
    names = assign(mix, np.ones(4000, dtype=int), np.random.default_rng(0), K80)
    assert names.count("A3C") / 4000 == pytest.approx(0.75, abs=0.03)


def test_a_given_mix_with_a_job_type_without_throughputs_is_answered_with_the_nearest():
    with pytest.raises(InvalidInput, match="did you mean 'CycleGAN'"):
        assign({"CycleGun": 1.0}, np.ones(1, dtype=int), np.random.default_rng(0), K80)


def test_a_gang_that_nothing_in_the_mix_can_run_is_refused():
    with pytest.raises(InvalidInput, match="on 4 accelerators"):
        assign({"Llama-7B fine-tuning (batch size 1)": 1.0}, np.array([4]), np.random.default_rng(0), K80)


@pytest.mark.parametrize("mix", ["mix:defalt", {}, {"A3C": 0.0}, {"A3C": -1.0}, {"A3C": float("nan")}, {"A3C": "x"}])
def test_what_is_no_mix_is_refused(mix):
    with pytest.raises(InvalidInput):
        mix_of(mix)


def test_a_mix_describes_itself():
    text = describe("mix:default")
    assert "26 job types" in text
    assert "ResNet-50 15%" in text
    assert describe({"A3C": 1, "mine": 3}) == "job_types: 2 job types (A3C 25%, mine 75%)"
    assert all(job_types()[name].kind == "vision" for name, _ in mix_of("mix:vision").share_by_job_type)
