"""Performance counters: noisy readings m_c = g_c(loads) (1 + ε), ε ~ N(0, 0.05), eight between two decisions.

Measured are the cycles of each core, the histogram of outstanding memory requests and the memory traffic of devices of
each socket, and the outstanding requests of each device. No counter shows a link or the network card. A counter is lost
with 5 % chance and keeps its former readings. There is one machine, so none is reported late.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.rounding import drawn
from eunomia_reproduction.symphony.machine import CPU, MEMORY, NIC, PCIE, PROCESSORS, SOCKETS

READINGS, NOISE, LOST = 8, 0.05, 0.05
BUCKETS = 16  # outstanding requests 0 to 14, and more
REQUESTS = 8.0  # mean outstanding requests at load 1
DEVICES = tuple(u for u, one in enumerate(PROCESSORS) if one.kind != CPU)
CORES_AT, HISTOGRAM_AT = 0, MEMORY  # first counter of each group; one for each core
TRAFFIC_AT = HISTOGRAM_AT + SOCKETS * BUCKETS
DEVICES_AT = TRAFFIC_AT + SOCKETS
NIC_AT = DEVICES_AT + len(DEVICES)
COUNTERS = NIC_AT + 1
_LOG_FACTORIAL = np.cumsum(elementary.log(np.maximum(np.arange(BUCKETS), 1.0)))


@dataclass(frozen=True, slots=True)
class Counters:
    """Readings and the true values behind them."""

    readings: Floats  # (reading, counter)
    truth: Floats  # (counter,)


def true_counters(load: Floats, demand: Floats) -> Floats:
    """Return the values (counter,) at loads (resource,) and demands (processor, resource) of what runs."""
    found = np.zeros(COUNTERS)
    found[:MEMORY] = np.minimum(load[:MEMORY], 1.0)
    for socket in range(SOCKETS):
        mean = max(REQUESTS * float(load[MEMORY + socket]), 1e-3)
        chance = np.asarray(elementary.exp(np.arange(BUCKETS) * elementary.log(mean) - mean - _LOG_FACTORIAL))
        chance[-1] = max(0.0, 1.0 - float(chance[:-1].sum()))
        begin = HISTOGRAM_AT + socket * BUCKETS
        found[begin : begin + BUCKETS] = chance
        found[TRAFFIC_AT + socket] = min(float(load[PCIE + socket]), 1.0)  # the link gives no more
    wait = 1.0 + 2.0 * np.maximum(load[PCIE : PCIE + SOCKETS] - 1.0, 0.0)
    for k, u in enumerate(DEVICES):
        socket = PROCESSORS[u].socket
        found[DEVICES_AT + k] = demand[u, PCIE + socket] * wait[socket]
    found[NIC_AT] = load[NIC] * wait[0] * max(1.0, float(load[NIC]))
    return found


def read_counters(load: Floats, demand: Floats, rng: np.random.Generator, before: Counters | None) -> Counters:
    """Read every counter; `before` are the readings of the last decision."""
    truth = true_counters(load, demand)
    readings = truth * (1.0 + NOISE * drawn(rng.standard_normal((READINGS, COUNTERS))))
    lost = rng.random(COUNTERS) < LOST
    if before is not None:
        readings = np.where(lost, before.readings, readings)
    return Counters(readings, truth)
