"""The analytic model: formulas by hand, and rules that hold for every job type."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.throughputs import analytic
from eunomia.throughputs.catalogue import Accelerator, accelerators
from eunomia.throughputs.job_type_facts import JobFacts, job_types

JOBS = st.sampled_from(list(job_types().values()))
ACCELERATORS = st.sampled_from(list(accelerators().values()))
CHIP = Accelerator(
    name="chip", vendor="", memory_gb=10, fp32_tflops=1, bandwidth_gb_s=100, link="", link_gb_s=10, source="",
    network_gbit_s=10,
)  # fmt: skip
TASK = JobFacts(
    name="task", family="task", batch_size=2, kind="", source="", flops_per_sample=35e9, bytes_per_sample=2e9,
    step_bytes=1e9, step_overhead_s=0.02, host_s_per_sample=0.01, gradient_bytes=0.1e9, memory_gb=4,
    memory_gb_per_sample=2,
)  # fmt: skip


def test_one_accelerator_adds_compute_memory_host_and_overhead():  # worked by hand
    # 2 · 35e9 / (0.7 · 1e12) + (2 · 2e9 + 1e9) / 100e9 + 0.02 + 2 · 0.01 = 0.1 + 0.05 + 0.04
    assert analytic.step_rate(TASK, CHIP, 1) == pytest.approx(1 / 0.19)


def test_a_ring_within_a_node_and_one_across_nodes_are_added():  # worked by hand
    within = 2 * 1 / 2 * 0.1 / (0.1 * 10)  # 2 accelerators a node
    across = 2 * 1 / 2 * 0.1 / (0.8 * 10 / 8)  # 2 nodes
    assert analytic.sync_seconds(TASK, CHIP, 4, 2) == pytest.approx(within + across)
    assert analytic.sync_seconds(TASK, CHIP, 2, 2) == pytest.approx(across)
    assert analytic.sync_seconds(TASK, CHIP, 1, 1) == 0


def test_two_jobs_interleave_until_the_accelerator_is_always_busy():  # worked by hand
    busy = 0.15 / 0.19
    task = replace(TASK, memory_gb=1, memory_gb_per_sample=1)
    assert analytic.shared_rate(task, task, CHIP, 1) == pytest.approx(1 / 0.19 / (2 * busy))
    idle = replace(task, flops_per_sample=0, bytes_per_sample=0, step_bytes=0)
    assert analytic.shared_rate(task, idle, CHIP, 1) == pytest.approx(1 / 0.19)


def test_two_jobs_that_do_not_fit_together_do_not_run_together():
    assert analytic.shared_rate(TASK, TASK, CHIP, 1) == 0


def test_half_precision_uses_the_matrix_units_where_there_are_any():
    half = replace(TASK, precision="fp16")
    assert analytic.device_seconds(half, replace(CHIP, fp16_tflops=4.0)) == pytest.approx(70e9 / (0.4 * 4e12) + 0.05)
    assert analytic.device_seconds(half, CHIP) == pytest.approx(70e9 / (0.4 * 1e12) + 0.05)


@given(job=JOBS, accelerator=ACCELERATORS, n=st.integers(1, 64), extra=st.floats(0, 500))
def test_more_memory_never_stops_a_job(job, accelerator, n, extra):
    roomier = replace(accelerator, memory_gb=accelerator.memory_gb + extra)
    assert analytic.step_rate(job, roomier, n) >= analytic.step_rate(job, accelerator, n)


@given(job=JOBS, n=st.integers(1, 64), batch=st.integers(1, 64))
def test_a_larger_batch_never_needs_less_memory(job, n, batch):
    small, large = replace(job, batch_size=batch), replace(job, batch_size=batch + 1)
    assert analytic.memory_gb(large, n) >= analytic.memory_gb(small, n)


@given(job=JOBS, accelerator=ACCELERATORS, n=st.integers(2, 64))
def test_a_gang_never_beats_its_accelerators_working_apart(job, accelerator, n):
    assert analytic.unlimited_rate(job, accelerator, n) <= n * analytic.unlimited_rate(job, accelerator, 1) * (1 + 1e-9)


@given(job=JOBS, accelerator=ACCELERATORS, faster=st.floats(1, 10))
def test_a_faster_accelerator_never_slows_a_job(job, accelerator, faster):
    quick = replace(accelerator, fp32_tflops=accelerator.fp32_tflops * faster, link_gb_s=accelerator.link_gb_s * faster)
    assert analytic.step_rate(job, quick, 4) >= analytic.step_rate(job, accelerator, 4) * (1 - 1e-12)


def test_llama_needs_more_memory_than_an_h100_has():
    llama = job_types()["Llama-7B fine-tuning (batch size 1)"]
    assert analytic.step_rate(llama, accelerators()["h100"], 8) == 0
    assert analytic.step_rate(llama, accelerators()["mi300x"], 8) > 0
