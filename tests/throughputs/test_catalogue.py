"""The built-in accelerator types and job types."""

from __future__ import annotations

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.throughputs import load, price_usd_per_hour
from eunomia.throughputs.catalogue import accelerators, find
from eunomia.throughputs.job_type_facts import job_types


def test_the_catalogue_reaches_from_k80_to_h200_and_to_amd():
    assert {"k80", "p100", "v100", "t4", "a100-40gb", "a100-80gb", "h100", "h200"} <= set(accelerators())
    assert {each.vendor for each in accelerators().values()} == {"NVIDIA", "AMD"}


@pytest.mark.parametrize("each", accelerators().values(), ids=lambda each: each.name)
def test_every_fact_is_positive_and_has_its_source(each):
    facts = (each.memory_gb, each.fp32_tflops, each.bandwidth_gb_s, each.link_gb_s, each.efficiency)
    assert min(facts) > 0
    assert each.fp16_tflops is None or each.fp16_tflops > each.fp32_tflops
    assert each.source


@pytest.mark.parametrize("each", accelerators().values(), ids=lambda each: each.name)
def test_a_price_says_its_terms_date_region_and_source_and_a_missing_one_is_noted(each):
    if each.price_usd_per_hour is None:
        assert "No price" in each.note
    else:
        assert each.price_terms in {"spot", "on-demand"}
        assert all((each.price_date, each.price_region, each.price_source))


def test_the_prices_of_gavels_types_are_gavels():
    assert [price_usd_per_hour(each) for each in ("v100", "p100", "k80")] == [0.74, 0.43, 0.135]
    assert price_usd_per_hour("abacus") is None


def test_names_resolve_by_alias_in_any_case():
    assert [find(name).name for name in ("A100", "Tesla V100", "V100M32", "quadro_rtx_6000")] == [
        "a100-40gb", "v100", "v100-32gb", "rtx6000",
    ]  # fmt: skip


def test_no_two_types_share_a_spelling():
    spellings = [name for each in accelerators().values() for name in (each.name, *each.aliases)]
    assert len(spellings) == len(set(spellings))


def test_unknown_types_are_all_named_with_the_nearest():
    with pytest.raises(InvalidInput, match="did you mean 'v100'") as caught:
        load("catalogue", ["v101", "h100", "abacus"])
    assert [problem.value for problem in caught.value.problems] == ["v101", "abacus"]


def test_a_cluster_keeps_the_names_it_uses_for_its_types():
    assert load("catalogue", ["A100", "H100"]).types == ("A100", "H100")


def test_there_are_current_job_types_beside_gavels():
    families = {job.family for job in job_types().values()}
    assert {"BERT-Base fine-tuning", "GPT-2", "Llama-7B fine-tuning", "Stable-Diffusion fine-tuning"} <= families


@pytest.mark.parametrize("job", job_types().values(), ids=lambda job: job.name)
def test_every_job_type_has_a_source_and_marks_only_fields_it_has(job):
    assert job.source
    assert all(hasattr(job, name) for name in (*job.fitted, *job.assumed))
    assert job.precision in {"fp32", "fp16"}
