"""Analytic model of throughputs that were not measured: a roofline, an overhead and a ring all-reduce.

    t(n, m) = o + b (F / (e g P) + B / (g W) + h) + S / (g W) + 2 (k-1)/k · G / (λ L) + 2 (m-1)/m · G / (ν N)
    rate    = n / t(n, m)        steps/s of the gang, or 0 if the memory does not suffice

b batch, F FLOP and B bytes a sample, S bytes a step, o overhead a step, h host time a sample, G gradient bytes (job);
P peak of the job's precision, W memory bandwidth, L link, N network of the node, g efficiency (accelerator type);
n accelerators on m nodes, k = ⌈n/m⌉ of them on the fullest node; e share of the peak that matrix arithmetic reaches,
λ and ν shares of link and network that a ring all-reduce reaches. Compute-bound and memory-bound kernels alternate, so
their times add (a roofline for each kernel: S. Williams et al., "Roofline", CACM 52(4), 2009); nothing overlaps. The
all-reduce is a ring within each node and one across nodes (P. Patarasuk and X. Yuan, "Bandwidth Optimal All-reduce
Algorithms for Clusters of Workstations", JPDC 69(2), 2009).
"""

from __future__ import annotations

from eunomia.throughputs.catalogue import Accelerator
from eunomia.throughputs.job_type_facts import JobFacts

PEAK_SHARE = {"fp32": 0.7, "fp16": 0.4}  # e: assumed; large models report 0.3 to 0.5 of the half-precision peak
LINK_SHARE = 0.1  # λ: fitted on Gavel's consolidated tables, 2 to 8 accelerators
NETWORK_SHARE = 0.8  # ν: fitted on Gavel's unconsolidated tables, taking 10 Gbit/s a node
DEFAULT_NETWORK_GBIT_S = 100.0  # assumed where the catalogue has no rental of the type
ACCELERATORS_PER_NODE = 8
INTERVAL_FACTOR = 1.8  # rate · and ÷ this hold 80 % of the measured rows it was not fitted on (tools/throughput_errors)
GIGA = 1e9
TERA = 1e12


def step_rate(job: JobFacts, accelerator: Accelerator, scale_factor: int, nodes: int | None = None) -> float:
    """Return steps/s of the whole gang on `nodes` (default: the fewest that hold it); 0 if the memory is too small."""
    if memory_gb(job, scale_factor) > accelerator.memory_gb:
        return 0.0
    return unlimited_rate(job, accelerator, scale_factor, nodes)


def unlimited_rate(
    job: JobFacts,
    accelerator: Accelerator,
    scale_factor: int,
    nodes: int | None = None,
    *,
    accelerators_per_node: int = ACCELERATORS_PER_NODE,
) -> float:
    """Return steps/s of the whole gang as if memory always sufficed."""
    spread = -(-scale_factor // accelerators_per_node) if nodes is None else nodes
    alone = device_seconds(job, accelerator) + host_seconds(job)
    return scale_factor / (alone + sync_seconds(job, accelerator, scale_factor, spread))


def device_seconds(job: JobFacts, accelerator: Accelerator) -> float:
    """Return the seconds of a step during which the accelerator itself is busy."""
    half = accelerator.fp16_tflops if job.precision == "fp16" else None
    peak = (half or accelerator.fp32_tflops) * TERA * PEAK_SHARE[job.precision]
    traffic = job.batch_size * job.bytes_per_sample + job.step_bytes
    busy = job.batch_size * job.flops_per_sample / peak + traffic / (accelerator.bandwidth_gb_s * GIGA)
    return busy / accelerator.efficiency


def host_seconds(job: JobFacts) -> float:
    """Return the seconds of a step during which the accelerator waits for its host."""
    return job.step_overhead_s + job.batch_size * job.host_s_per_sample


def sync_seconds(job: JobFacts, accelerator: Accelerator, scale_factor: int, nodes: int) -> float:
    """Return the seconds of a step in which the gang reduces its gradients."""
    m = min(nodes, scale_factor)
    k = -(-scale_factor // m)
    network_gb_s = (accelerator.network_gbit_s or DEFAULT_NETWORK_GBIT_S) / 8
    within = 2 * (k - 1) / k / (LINK_SHARE * accelerator.link_gb_s)
    across = 2 * (m - 1) / m / (NETWORK_SHARE * network_gb_s)
    return job.gradient_bytes / GIGA * (within + across)


def memory_gb(job: JobFacts, scale_factor: int) -> float:
    """Return the memory in GB on each accelerator; a gang also buffers gradients to send and to receive."""
    copies = 2 * job.gradient_bytes / GIGA if scale_factor > 1 else 0.0
    return job.memory_gb + job.batch_size * job.memory_gb_per_sample + copies


def shared_rate(job: JobFacts, partner: JobFacts, accelerator: Accelerator, scale_factor: int) -> float:
    """Return steps/s of the first gang while both use the same accelerators: 0 if both do not fit in memory.

    Two jobs interleave until the accelerator is always busy, then share it in proportion:
    rate = rate alone / max(1, u + u'), where u is the share of a step during which the accelerator is busy.
    """
    if memory_gb(job, scale_factor) + memory_gb(partner, scale_factor) > accelerator.memory_gb:
        return 0.0
    alone = step_rate(job, accelerator, scale_factor)
    busy = sum(
        device_seconds(each, accelerator) * unlimited_rate(each, accelerator, scale_factor) / scale_factor
        for each in (job, partner)
    )
    return alone / max(1.0, busy)
