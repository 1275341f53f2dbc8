"""A machine of two sockets with CPUs, GPUs and FPGAs, and what each kernel needs of it.

Each socket has a memory controller and a PCIe link. Two threads share a core; GPUs, FPGAs and the network card share
links. The slowdown of a running kernel is max_q min(limit_q, max(1, load_q)) over the resources q that it uses, where
load_q is the sum of the demands on q: two kernels that each need 0.9 of a link are 1.8 times as slow.
Kernels and their numbers are our own. Times on CPU, GPU and FPGA differ by up to 67 times on the machine `STANDARD`,
and by 2 to 8 times on `EVEN`, where the choice of a processor is less plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Floats

SOCKETS, THREADS, CORES = 2, 4, 2  # per socket: CPU threads, and cores that they share
CPU, GPU, FPGA = 0, 1, 2
REMOTE = 1.15  # as slow with the data on the other socket
RECONFIGURE_S = 4.0


class Processor(NamedTuple):
    """Where a kernel can run."""

    kind: int  # CPU, GPU or FPGA
    socket: int
    core: int = -1


class GraphKernel(NamedTuple):
    """Isolated seconds by type of processor (0 = no implementation), and demands (shares of a resource)."""

    name: str
    seconds: tuple[float, float, float]
    core: float  # on CPUs
    memory: float  # on CPUs
    memory_device: float
    link: float  # PCIe, on GPUs and FPGAs
    network: float = 0.0  # always


PROCESSORS = tuple(
    one
    for socket, gpus in ((0, 2), (1, 1))
    for one in (
        *(Processor(CPU, socket, socket * CORES + thread // 2) for thread in range(THREADS)),
        *(Processor(GPU, socket) for _ in range(gpus)),
        Processor(FPGA, socket),
    )
)
RESOURCES = ("core0", "core1", "core2", "core3", "memory0", "memory1", "pcie0", "pcie1", "nic")
MEMORY, PCIE, NIC = 4, 6, 8  # rows of the first of each
LIMIT = np.array([1.67, 1.67, 1.67, 1.67, 2.5, 2.5, 1.8, 1.8, 1.8])
HIDDEN = (6, 7, 8)  # resources that no counter measures
KERNELS = (
    GraphKernel("align", (90, 14, 9), 0.80, 0.30, 0.10, 0.55),
    GraphKernel("indel_realign", (25, 0, 0), 0.70, 0.45, 0.0, 0.0),
    GraphKernel("pair_hmm", (400, 8, 6), 0.83, 0.20, 0.10, 0.35),
    GraphKernel("sort", (18, 0, 0), 0.50, 0.70, 0.0, 0.0),
    GraphKernel("eeg_filter", (40, 6, 10), 0.83, 0.30, 0.20, 0.85),
    GraphKernel("graph_inference", (60, 10, 0), 0.70, 0.50, 0.20, 0.70),
    GraphKernel("factor_graph", (30, 12, 0), 0.60, 0.40, 0.10, 0.30),
    GraphKernel("collect", (10, 0, 0), 0.30, 0.30, 0.0, 0.0, 0.6),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What kernels need of the machine."""

    kernels: tuple[GraphKernel, ...]
    seconds: Floats  # (kernel, processor, socket of the data) isolated; inf = no implementation
    demand: Floats  # (kernel, processor, socket of the data, resource)
    best_s: Floats  # (kernel,) alone on the best processor, with the data near


def machine_of(kernels: Sequence[GraphKernel]) -> Machine:
    """Return the machine with the isolated seconds and the demands of these kernels."""
    shape = (len(kernels), len(PROCESSORS), SOCKETS)
    seconds, demand = np.full(shape, np.inf), np.zeros((*shape, len(RESOURCES)))
    for k, kernel in enumerate(kernels):
        for u, processor in enumerate(PROCESSORS):
            own = processor.socket
            for data in range(SOCKETS):
                if kernel.seconds[processor.kind]:
                    seconds[k, u, data] = kernel.seconds[processor.kind] * (REMOTE if data != own else 1.0)
                need = demand[k, u, data]
                if processor.kind == CPU:
                    need[processor.core] += kernel.core
                    need[MEMORY + own] += kernel.memory
                else:
                    need[PCIE + own] += kernel.link
                    need[MEMORY + own] += kernel.memory_device
                if data != own:
                    need[MEMORY + data] += (kernel.memory if processor.kind == CPU else kernel.memory_device) / 2
                need[NIC] += kernel.network
                need[PCIE] += kernel.network  # the network card is behind the first link
    return Machine(tuple(kernels), seconds, demand, seconds.min(axis=(1, 2)))


_EVEN_S = {  # seconds on CPU, GPU and FPGA
    "align": (36, 14, 9), "pair_hmm": (48, 8, 6), "eeg_filter": (24, 6, 10), "graph_inference": (20, 10, 0),
    "factor_graph": (24, 12, 0),
}  # fmt: skip
STANDARD = machine_of(KERNELS)
EVEN = machine_of([one._replace(seconds=_EVEN_S.get(one.name, one.seconds)) for one in KERNELS])


def slowdown(load: Floats, demand: Floats) -> Floats:
    """Return how many times as slow kernels with demands (…, resource) run at loads (…, resource) of all together."""
    felt = np.where(demand > 0, np.minimum(LIMIT, np.maximum(load, 1.0)), 1.0)
    return np.asarray(felt.max(axis=-1))
